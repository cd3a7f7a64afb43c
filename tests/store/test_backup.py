"""Backups of a store in use, and their return."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
from store.examples import prepared, record

from kb.domain.version import Ref
from kb.errors import StoreError
from kb.store.backup import back_up, require_sound, restore
from kb.store.sqlite import open_store


def publish(path: Path, *texts: str) -> None:
    store = open_store(path, writable=True)
    for text in texts:
        store.publish(record(text=text), prepared({text: 1}), origin="workspace", author="ann")
    store.close()


def texts(path: Path) -> list[str]:
    store = open_store(path, writable=False)
    found = [version.record.body.en for version in store.history("sd3-attention")]
    store.close()
    return found


def test_a_backup_is_the_store_and_leaves_it_alone(tmp_path: Path) -> None:
    publish(tmp_path / "a.db", "1", "2")
    back_up(tmp_path / "a.db", tmp_path / "b.db")
    publish(tmp_path / "a.db", "3")
    assert (texts(tmp_path / "a.db"), texts(tmp_path / "b.db")) == (["1", "2", "3"], ["1", "2"])
    assert {path.name for path in tmp_path.iterdir()} <= {"a.db", "a.db-wal", "a.db-shm", "b.db"}


def test_a_backup_during_writes_is_one_snapshot(tmp_path: Path) -> None:
    path, stop = tmp_path / "a.db", threading.Event()
    publish(path, "first")
    acknowledged: list[str] = []

    def write() -> None:
        store = open_store(path, writable=True)
        while not stop.is_set():
            text = f"t{len(acknowledged)}"
            store.publish(record(text=text), prepared({text: 1}), origin="workspace", author="ann")
            acknowledged.append(text)
        store.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            before = list(acknowledged)
            back_up(path, tmp_path / f"{number}.db")
            found = texts(tmp_path / f"{number}.db")
            assert found[: len(before) + 1] == ["first", *before]
            require_sound(tmp_path / f"{number}.db")
    finally:
        stop.set()
        writer.join()
    assert texts(path) == ["first", *acknowledged]


def test_restoring_is_seen_whole_and_changes_identity(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    publish(path, "1", "2")
    back_up(path, tmp_path / "b.db")
    publish(path, "3")
    reader = open_store(path, writable=False)
    identity, generation = reader.state("identity"), reader.generation()
    restore(tmp_path / "b.db", path)
    assert [version.record.body.en for version in reader.history("sd3-attention")] == ["1", "2"]
    assert reader.state("identity") != identity
    assert reader.get(Ref("sd3-attention")).n == 2
    reader.close()
    publish(path, "other 3")
    assert texts(path) == ["1", "2", "other 3"]
    assert generation == 3


def test_a_damaged_backup_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    publish(path, "1")
    back_up(path, tmp_path / "b.db")
    publish(path, "2")
    other = sqlite3.connect(tmp_path / "b.db")
    other.execute("DROP TRIGGER content_no_update")
    other.execute("UPDATE content SET body = CAST(replace(body, 'fused', 'fuzed') AS BLOB)")
    other.commit()
    other.close()
    with pytest.raises(StoreError, match="damaged"):
        restore(tmp_path / "b.db", path)
    assert texts(path) == ["1", "2"]


@pytest.mark.parametrize("content", [b"", b"not a database" * 500])
def test_what_is_no_backup_is_refused(tmp_path: Path, content: bytes) -> None:
    publish(tmp_path / "a.db", "1")
    (tmp_path / "b.db").write_bytes(content)
    with pytest.raises(StoreError):
        restore(tmp_path / "b.db", tmp_path / "a.db")
    assert texts(tmp_path / "a.db") == ["1"]


def test_without_a_store_there_is_nothing_to_back_up(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store"):
        back_up(tmp_path / "a.db", tmp_path / "b.db")
    assert list(tmp_path.iterdir()) == []
