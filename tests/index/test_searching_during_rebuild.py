"""Searches while the cache is written anew, cut, spoilt and deleted by another process: never empty, never another answer."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest
from store.examples import MODEL, prepared, record

from kb.index.cache import current, refresh
from kb.index.choice import make_index
from kb.store.sqlite import open_store

READS = 120


def spoil(folder: Path, dice: random.Random) -> None:
    files = sorted(path for path in folder.glob("*") if path.is_file())
    path = dice.choice(files)
    how = dice.choice(("flip", "cut", "delete"))
    if how == "delete":
        path.unlink()
    elif how == "cut":
        os.truncate(path, dice.randrange(path.stat().st_size + 1))
    else:
        with path.open("r+b") as file:
            file.seek(dice.randrange(max(1, path.stat().st_size)))
            file.write(bytes([dice.randrange(256)]))


def rebuild_for_ever(database: Path, folder: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        dice, store = random.Random(3), open_store(database, writable=False)
        while True:
            refresh(store, folder, MODEL)
            spoil(folder, dice)
    finally:
        os._exit(1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_no_search_is_empty_or_wrong_while_the_cache_comes_and_goes(tmp_path: Path) -> None:
    database, folder = tmp_path / "store.db", tmp_path / "cache"
    store = open_store(database, writable=True)
    for number in range(40):
        rows = {"title": (1.0, number / 40, 0.0), "body": (0.0, 1.0, number / 40)}
        store.publish(record(f"r{number}"), prepared(vectors=rows), origin="workspace", author="ann")
    truth = current(store, folder, MODEL)
    expected = make_index(*truth).search(truth[1][0], 5)[0].tolist()
    pid = rebuild_for_ever(database, folder)
    try:
        for _ in range(READS):
            ids, vectors = current(store, folder, MODEL)
            assert len(ids) == 80
            assert make_index(ids, vectors).search(truth[1][0], 5)[0].tolist() == expected
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        store.close()
