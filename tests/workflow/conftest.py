"""The shipped catalogue, two sessions, and a casebook to write into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from workflow.bench import casebook, run_of

from kb.domain.catalogue import Catalogue
from kb.library.catalogue import load_catalogue
from kb.session.session import Session
from kb.workflow.casebook import Casebook


@pytest.fixture(scope="session")
def catalogue(checkout: Path) -> Catalogue:
    return load_catalogue(checkout)


@pytest.fixture
def runs() -> tuple[Session, Session]:
    """Before and after a change that halves the step, on the simulator."""
    simulated: dict[str, Any] = {"origin": "simulated", "simulator": "1", "options": {"noise": 0.05}}
    return run_of(100, 102, 98, 101, name="before", **simulated), run_of(50, 51, 49, 50, name="after", **simulated)


@pytest.fixture
def book(tmp_path: Path, catalogue: Catalogue) -> Iterator[Casebook]:
    with casebook(tmp_path / "home", catalogue) as opened:
        yield opened
