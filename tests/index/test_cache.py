"""The cache never changes an answer: not when it is old, foreign, damaged, gone or half written."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from store.examples import MODEL, prepared, record

from kb.domain.protocols import VectorBlock
from kb.errors import StoreError
from kb.index.cache import IDENTITY, current, current_rows, open_cached, refresh, save
from kb.index.choice import make_index
from kb.store.sqlite import SqliteStore, open_store

DIM = 8


def add(store: SqliteStore, first: int, last: int, model_id: str = MODEL) -> None:
    for number in range(first, last):
        dice = np.random.default_rng(number)
        rows = {name: list(vector / np.linalg.norm(vector)) for name in ("title", "body") for vector in [dice.standard_normal(DIM)]}
        data = prepared(vectors=rows, model_id=model_id)
        store.publish(record(f"r{number}"), data, origin="workspace", author="ann")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled") / "store.db"
    store = open_store(path, writable=True)
    add(store, 0, 30)
    store.close()
    return path


@pytest.fixture
def store(tmp_path: Path, filled: Path) -> Iterator[SqliteStore]:
    store = open_store(Path(shutil.copy(filled, tmp_path / "store.db")), writable=True)
    yield store
    store.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def identity(store: SqliteStore) -> str:
    return store.state(IDENTITY) or ""


def same_as_the_store(store: SqliteStore, folder: Path) -> None:
    """The arrays are the store's, and so are the answers."""
    rows, truth = current_rows(store, folder, MODEL), store.vectors_since(0, MODEL)
    assert rows.ids.astype("<i8").tobytes() == truth.ids
    assert rows.vectors.astype("<f4").tobytes() == truth.vectors
    assert (rows.fields, rows.generation, rows.dim) == (truth.fields, truth.generation, truth.dim)
    ids, vectors = current(store, folder, MODEL)
    query = np.frombuffer(truth.vectors, dtype="<f4")[:DIM]
    assert make_index(ids, vectors).search(query, 1)[0].tolist() == np.frombuffer(truth.ids, "<i8")[:1].tolist()


def data_file(folder: Path) -> Path:
    (path,) = folder.glob("*.vectors")
    return path


def test_a_cache_holds_what_the_store_holds(store: SqliteStore, folder: Path) -> None:
    same_as_the_store(store, folder)
    refresh(store, folder, MODEL)
    cached = open_cached(folder, MODEL, identity=identity(store))
    assert cached is not None
    assert len(cached.ids) == 60
    assert not cached.vectors.flags.writeable
    assert not cached.vectors.flags.owndata
    same_as_the_store(store, folder)


def test_what_was_published_since_is_added(store: SqliteStore, folder: Path) -> None:
    refresh(store, folder, MODEL)
    add(store, 30, 35)
    same_as_the_store(store, folder)
    assert len(current(store, folder, MODEL)[0]) == 70


def test_writing_again_replaces_and_a_model_has_its_own(store: SqliteStore, folder: Path) -> None:
    refresh(store, folder, MODEL)
    add(store, 30, 31)
    add(store, 31, 32, "toy@2")
    refresh(store, folder, MODEL)
    refresh(store, folder, "toy@2")
    mine, other = (open_cached(folder, model, identity=identity(store)) for model in (MODEL, "toy@2"))
    assert mine is not None
    assert other is not None
    assert (len(mine.ids), len(other.ids)) == (62, 2)
    assert open_cached(folder, "toy@3", identity=identity(store)) is None
    same_as_the_store(store, folder)


def test_nothing_to_cache_writes_nothing(store: SqliteStore, folder: Path) -> None:
    refresh(store, folder, "toy@9")
    assert not folder.exists()
    ids, vectors = current(store, folder, "toy@9")
    assert (ids.shape, vectors.shape) == ((0,), (0, 0))


def test_the_cache_of_another_store_is_ignored(store: SqliteStore, folder: Path, tmp_path: Path) -> None:
    refresh(store, folder, MODEL)
    anew = open_store(tmp_path / "anew.db", writable=True)
    add(anew, 100, 180)
    assert anew.generation() > store.generation()
    same_as_the_store(anew, folder)
    anew.close()


def test_a_cache_ahead_of_its_store_is_ignored(store: SqliteStore, folder: Path) -> None:
    block = store.vectors_since(0, MODEL)
    ahead = msgspec.structs.replace(block, generation=block.generation + 1, vectors=block.vectors[::-1])
    save(folder, ahead, identity=identity(store))
    same_as_the_store(store, folder)


def test_a_cache_of_another_width_is_ignored(store: SqliteStore, folder: Path) -> None:
    narrow = VectorBlock(generation=1, model_id=MODEL, dim=2, ids=bytes(8), vectors=bytes(8), fields=("title",))
    save(folder, narrow, identity=identity(store))
    same_as_the_store(store, folder)


def flip(path: Path, dice: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    path.write_bytes(data)


def overwrite(path: Path, dice: random.Random) -> None:
    data = bytearray(path.read_bytes())
    start = dice.randrange(len(data))
    data[start : start + 16] = dice.randbytes(len(data[start : start + 16]))
    path.write_bytes(data)


def truncate(path: Path, dice: random.Random) -> None:
    os.truncate(path, dice.randrange(path.stat().st_size))


def lengthen(path: Path, dice: random.Random) -> None:
    path.write_bytes(path.read_bytes() + dice.randbytes(4096))


def delete(path: Path, dice: random.Random) -> None:
    path.unlink()


def replace_with_folder(path: Path, dice: random.Random) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("pattern", ["*.vectors", "*.json"])
@pytest.mark.parametrize("harm", [flip, overwrite, truncate, lengthen, delete, replace_with_folder])
def test_a_harmed_file_changes_no_answer(
    store: SqliteStore, folder: Path, tmp_path: Path, harm: Callable[[Path, random.Random], None], pattern: str
) -> None:
    refresh(store, folder, MODEL)
    # What a damaged generation number would hide: rows the cache does not have.
    add(store, 30, 40)
    names = {path.name: path.read_bytes() for path in folder.iterdir()}
    dice = random.Random(11)
    for attempt in range(1 if harm in (delete, replace_with_folder) else 40):
        damaged = tmp_path / f"damaged {attempt}"
        damaged.mkdir()
        for name, data in names.items():
            (damaged / name).write_bytes(data)
        (path,) = damaged.glob(pattern)
        harm(path, dice)
        same_as_the_store(store, damaged)


def test_a_data_file_from_an_earlier_time_is_ignored(store: SqliteStore, folder: Path) -> None:
    refresh(store, folder, MODEL)
    old = data_file(folder).read_bytes()
    add(store, 30, 31)
    refresh(store, folder, MODEL)
    newest = max(folder.glob("*.vectors"), key=lambda path: int(path.name.split("-")[1]))
    newest.write_bytes(old)
    same_as_the_store(store, folder)


def test_an_interrupted_write_leaves_the_old_cache(store: SqliteStore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refresh(store, folder, MODEL)
    add(store, 30, 31)
    calls = iter([None, None, OSError(28, "No space left on device")])

    def failing(_handle: int) -> None:
        error = next(calls)
        if error is not None:
            raise error

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        with pytest.raises(StoreError, match="No space left"):
            refresh(store, folder, MODEL)
    assert not list(folder.glob("*.part"))
    cached = open_cached(folder, MODEL, identity=identity(store))
    assert cached is not None
    assert len(cached.ids) == 60
    same_as_the_store(store, folder)


def test_old_files_go_after_their_grace(store: SqliteStore, folder: Path) -> None:
    refresh(store, folder, MODEL)
    first = data_file(folder)
    stray = first.with_name(f"{first.name}.0123.part")
    stray.touch()
    add(store, 30, 31)
    refresh(store, folder, MODEL)
    assert first.exists()
    for path in (first, stray):
        os.utime(path, (0, 0))
    refresh(store, folder, MODEL)
    assert not first.exists()
    assert not stray.exists()
    same_as_the_store(store, folder)
