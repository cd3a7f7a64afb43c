"""The contract on SQLite."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from store.contract import Place, StoreContract

from kb.domain.protocols import Store
from kb.store.sqlite import open_store


@dataclass(frozen=True)
class SqlitePlace:
    path: Path

    def open(self, *, writable: bool, clock: Callable[[], int] | None = None) -> Store:
        return open_store(self.path, writable=writable, clock=clock or time.time_ns)


class TestSqlite(StoreContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return SqlitePlace(tmp_path / "new folder" / "a?b#c%20.db")
