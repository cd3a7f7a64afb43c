"""Several processes, and processes that die."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from store.examples import prepared, record

from kb.store.sqlite import SqliteStore, open_store


def run(checkout: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout), str(checkout / "tests")])}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def nursery(checkout: Path, folder: Path, *, writers: int, seconds: float, count: int) -> tuple[list[tuple[int, str]], str]:
    log = folder / "acknowledged"
    program = str(checkout / "tests" / "store" / "nursery.py")
    said = run(checkout, program, str(folder / "store.db"), str(log), str(writers), str(seconds), str(count))
    lines = (line.split() for line in log.read_text().splitlines())
    return [(int(number), sha256) for number, sha256 in lines], said


def check(store: SqliteStore, acknowledged: list[tuple[int, str]]) -> int:
    """Every acknowledged version is there, once, searchable data included; the number of versions."""
    history = store.history("shared")
    assert [version.n for version in history] == list(range(1, len(history) + 1))
    held = {version.n: version.sha256 for version in history}
    assert [pair for pair in acknowledged if held.get(pair[0]) != pair[1]] == []
    assert len({number for number, _ in acknowledged}) == len(acknowledged)
    assert len(store.vectors_since(0, "toy@1").ids) == 8 * len(history)
    assert len(store.events()) == len(history) == store.generation()
    newest = history[-1].record.body.en
    assert [len(found) for found in store.postings([newest]).values()] == [1]
    return len(history)


def test_two_writers_at_once_lose_and_repeat_nothing(tmp_path: Path, checkout: Path) -> None:
    # The file does not exist yet: both also race to make it.
    acknowledged, _ = nursery(checkout, tmp_path, writers=2, seconds=0, count=40)
    store = open_store(tmp_path / "store.db", writable=False)
    assert len(acknowledged) == check(store, acknowledged) == 80
    store.close()


def test_killed_writers_lose_nothing_acknowledged(tmp_path: Path, checkout: Path) -> None:
    acknowledged, said = nursery(checkout, tmp_path, writers=2, seconds=2.5, count=100_000)
    assert int(said) >= 10
    assert len(acknowledged) >= 10
    # A reader first: it meets the log the dead left behind.
    for writable in (False, True):
        store = open_store(tmp_path / "store.db", writable=writable)
        assert check(store, acknowledged) >= len(acknowledged)
    store.publish(record("shared", "after"), prepared({"after": 1}), origin="workspace", author="ann")
    store.close()
    connection = sqlite3.connect(tmp_path / "store.db")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()


READ_AND_REPORT = """
import json, sys
from pathlib import Path
from kb.domain.case import CaseQuery
from kb.domain.version import parse_ref
from kb.store.sqlite import open_store
store = open_store(Path(sys.argv[1]), writable=False)
found = store.get(parse_ref("sd3-attention@1"))
store.candidates(CaseQuery(soc_families=("A2",)))
store.postings(["attention"])
store.close()
print(json.dumps([found.n, *sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def test_reading_imports_nothing_heavy(tmp_path: Path, checkout: Path) -> None:
    path = tmp_path / "store.db"
    store = open_store(path, writable=True)
    store.publish(record(), prepared(), origin="workspace", author="ann")
    store.close()
    number, *modules = json.loads(run(checkout, "-c", READ_AND_REPORT, str(path)))
    assert number == 1
    assert {"sqlmodel", "pydantic", "sqlalchemy", "numpy", "yaml", "faiss", "typer"}.isdisjoint(modules)
