"""What can be wrong with a file: every case says what, what is allowed and what to do, and loses nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy.engine import Engine
from store.examples import prepared, record

from kb.domain.case import CaseQuery
from kb.domain.version import Ref, Version
from kb.errors import StoreError
from kb.store.sqlite import open_store


def fill(path: Path, count: int = 20) -> None:
    store = open_store(path, writable=True)
    for number in range(count):
        store.publish(record(text=f"{number} " * 2000), prepared(), origin="workspace", author="ann")
    store.close()


def make_folder(path: Path) -> None:
    path.mkdir()


def make_text(path: Path) -> None:
    path.write_text("this is not a database\n" * 500)


def make_cut(path: Path) -> None:
    fill(path)
    os.truncate(path, path.stat().st_size // 2 + 100)


@pytest.mark.parametrize("writable", [True, False])
@pytest.mark.parametrize(
    ("make", "words"),
    [(make_folder, "is a folder"), (make_text, "not a SQLite database"), (make_cut, "cut short")],
)
def test_a_wrong_file_is_named_and_left_as_it_is(tmp_path: Path, make: Callable[[Path], None], words: str, writable: bool) -> None:
    path = tmp_path / "store.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError, match=words) as caught:
        open_store(path, writable=writable)
    assert caught.value.allowed
    assert caught.value.do
    assert before is None or path.read_bytes() == before


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.touch()], ids=["absent", "empty"])
def test_reading_a_store_that_was_never_made_tells_what_to_run(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "store.db"
    make(path)
    with pytest.raises(StoreError, match="no store") as caught:
        open_store(path, writable=False)
    assert "kb publish" in str(caught.value)
    open_store(path, writable=True).close()
    open_store(path, writable=False).close()


def test_a_lock_held_too_long_is_an_error_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    fill(path, 1)
    other = sqlite3.connect(path, isolation_level=None)
    store = open_store(path, writable=True, busy_timeout_s=0.05)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another process holds"):
        store.publish(record(text="late"), prepared(), origin="workspace", author="ann")
    assert store.get(Ref("sd3-attention")).n == 1
    other.execute("ROLLBACK")
    other.close()
    assert store.publish(record(text="late"), prepared(), origin="workspace", author="ann").n == 2
    store.close()


@pytest.fixture
def small_disk() -> Iterator[None]:
    """Connections whose database may not grow past 80 pages."""

    def limit(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA max_page_count=80")

    sqlalchemy.event.listen(Engine, "connect", limit)
    yield
    sqlalchemy.event.remove(Engine, "connect", limit)


@pytest.mark.usefixtures("small_disk")
def test_a_full_database_refuses_and_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = open_store(path, writable=True)
    kept: list[Version] = []
    with pytest.raises(StoreError, match="disk is full"):
        kept.extend(store.publish(record(text=f"{number} " * 4000), prepared(), origin="workspace", author="ann") for number in range(1000))
    assert kept
    assert store.publish(record("small", "x"), prepared(vectors={}), origin="workspace", author="ann").n == 1
    store.close()
    reader = open_store(path, writable=False)
    assert reader.history("sd3-attention") == tuple(kept)
    reader.close()


FILL_A_SMALL_DISK = """
import resource, sys
from pathlib import Path
from store.examples import prepared, record
from kb.errors import StoreError
from kb.store.sqlite import open_store
store = open_store(Path(sys.argv[1]), writable=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
try:
    for number in range(1000):
        version = store.publish(record(text=f"{number} " * 4000), prepared(), origin="workspace", author="ann")
        print(version.sha256, flush=True)
except StoreError as error:
    print(error, file=sys.stderr)
    sys.exit(1)
"""


def run(script: str, *arguments: str, checkout: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout), str(checkout / "tests")])}
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, env=environment, check=False)


def test_a_file_that_cannot_grow_loses_nothing_acknowledged(tmp_path: Path, checkout: Path) -> None:
    path = tmp_path / "store.db"
    done = run(FILL_A_SMALL_DISK, str(path), checkout=checkout)
    acknowledged = done.stdout.split()
    assert (done.returncode, "do: check space" in done.stderr) == (1, True), done.stderr
    store = open_store(path, writable=True)
    assert [version.sha256 for version in store.history("sd3-attention")][: len(acknowledged)] == acknowledged
    assert len(acknowledged) >= 2
    store.publish(record(text="room again"), prepared(), origin="workspace", author="ann")
    store.close()


def test_content_that_no_longer_fits_its_hash_is_not_served(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    fill(path, 1)
    other = sqlite3.connect(path)
    other.execute("DROP TRIGGER content_no_update")
    other.execute("UPDATE content SET body = CAST(replace(body, 'attention', 'intention') AS BLOB)")
    other.commit()
    other.close()
    store = open_store(path, writable=False)
    with pytest.raises(StoreError, match="changed after publication"):
        store.get(Ref("sd3-attention"))
    store.close()


READ_ONLY_FOLDER = """
import os, sys
from pathlib import Path
from kb.domain.case import CaseQuery
from kb.domain.version import Ref, Version
from kb.errors import StoreError
from kb.store.sqlite import open_store
from kb.store import writing
folder = Path(sys.argv[1])
folder.chmod(0o555)
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    (folder / "probe").touch()
except PermissionError:
    pass
else:
    sys.exit(77)
try:
    store = open_store(folder / "store.db", writable=False)
    print(store.get(Ref("sd3-attention")).n, len(store.candidates(CaseQuery())))
    store.close()
    open_store(folder / "store.db", writable=True)
except StoreError as error:
    print(error)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_read_only_folder_can_be_read_and_writing_says_why_not(open_folder: Path, checkout: Path) -> None:
    fill(open_folder / "store.db", 2)
    assert sorted(path.name for path in open_folder.iterdir()) == ["store.db"]
    done = run(READ_ONLY_FOLDER, str(open_folder), checkout=checkout)
    if done.returncode == 77:
        pytest.skip("this user may write everywhere")
    assert done.stdout.startswith("2 1\n"), done.stderr
    assert "KB_HOME" in done.stdout.partition("\n")[2]


def test_unmerged_writes_in_a_read_only_folder_are_never_ignored(open_folder: Path, checkout: Path) -> None:
    working = open_folder / "working.db"
    store = open_store(working, writable=True)
    for text in ("1", "2"):
        store.publish(record(text=text), prepared(), origin="workspace", author="ann")
    shutil.copy(working, open_folder / "store.db")
    shutil.copy(f"{working}-wal", open_folder / "store.db-wal")
    store.close()
    done = run(READ_ONLY_FOLDER, str(open_folder), checkout=checkout)
    if done.returncode == 77:
        pytest.skip("this user may write everywhere")
    assert done.stdout.startswith("2 1\n") or "store.db-wal" in done.stdout, done.stderr


def test_a_reader_leaves_no_lasting_files(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    fill(path, 1)
    store = open_store(path, writable=False)
    assert len(store.candidates(CaseQuery())) == 1
    store.close()
    assert {item.name for item in tmp_path.glob("store.db*")} <= {"store.db", "store.db-wal", "store.db-shm"}
    open_store(path, writable=True).close()
    assert [item.name for item in tmp_path.glob("store.db*")] == ["store.db"]
