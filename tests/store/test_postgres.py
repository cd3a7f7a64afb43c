"""The contract on PostgreSQL, as a maintainer: the one role that may write every origin."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from store.contract import Place, StoreContract
from store.servers import TeamDatabase

from kb.domain.protocols import Store
from kb.store.postgres.store import open_store


@dataclass(frozen=True)
class TeamPlace:
    url: str

    def open(self, *, writable: bool, clock: Callable[[], int] | None = None) -> Store:
        return open_store(self.url, writable=writable, clock=clock or time.time_ns)


class TestPostgres(StoreContract):
    @pytest.fixture
    def place(self, team: TeamDatabase) -> Place:
        return TeamPlace(team.urls["mia"])
