"""Stores written by released versions of the program: each is kept as a file, opened, read and written by this one."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from store.examples import MODEL, prepared, record

from kb.domain.case import CaseQuery
from kb.domain.version import Ref
from kb.store.migrations import MIGRATIONS, guard_names
from kb.store.sqlite import open_store

RELEASED = Path(__file__).resolve().parents[1] / "data" / "store"


@pytest.fixture(params=[migration.__name__ for migration in MIGRATIONS])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the store of one released schema; every schema has one."""
    return Path(shutil.copy(RELEASED / f"{request.param}.db", tmp_path / "store.db"))


def test_a_released_store_is_upgraded_and_keeps_everything(path: Path) -> None:
    store = open_store(path, writable=True)
    first = store.get(Ref("sd3-attention", 1))
    assert (first.author, first.visibility, first.created_ns) == ("安", "team", 1_700_000_000_000_000_000)
    assert [str(item.ref) for item in store.summaries()] == ["workspace:sd3-attention@2", "library:shipped@1"]
    assert [item.status for item in store.revisions("sd3-attention")] == ["yanked", "published"]
    assert [str(item.ref) for item in store.candidates(CaseQuery(soc_families=("A2",), causes=("unfused_attention",)))] == [
        "workspace:sd3-attention@2"
    ]
    assert len(store.postings(["text"])["text"]) == 1
    assert len(store.vectors_since(0, MODEL).ids) == 3 * 8
    assert [event.kind for event in store.events(first.sha256)] == ["published", "yanked", "used"]
    assert [item.wrong for item in store.examine()] == [()] * len(store.examine())
    assert store.publish(record(text="three"), prepared({"three": 1}), origin="workspace", author="ann").n == 3
    store.close()
    connection = sqlite3.connect(path)
    present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")}
    steps = [name for (name,) in connection.execute("SELECT name FROM migration ORDER BY id")]
    connection.close()
    assert present == guard_names()
    assert steps == [migration.__name__ for migration in MIGRATIONS]
