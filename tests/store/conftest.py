"""Fixtures of the team store: one server a test process, one database a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from store.servers import Server, TeamDatabase, running_server, team_database


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running_server() as found:
        yield found


@pytest.fixture(scope="module")
def team_of_module(server: Server) -> Iterator[TeamDatabase]:
    with team_database(server, {"mia": "maintainer", "ann": "member", "bob": "member", "guy": "guest"}) as made:
        yield made


@pytest.fixture
def team(team_of_module: TeamDatabase) -> TeamDatabase:
    """An empty team store with a maintainer, two members and a guest."""
    return team_of_module.emptied()
