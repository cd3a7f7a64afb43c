"""The store of one machine: a SQLite file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kb.domain.event import Event
from kb.domain.protocols import Prepared, Publication, Published
from kb.domain.provenance import StoreOrigin
from kb.domain.record import Record
from kb.domain.version import Version, Visibility
from kb.errors import StoreError
from kb.store.connection import BUSY_TIMEOUT_S, connect_reader, connect_writer
from kb.store.faults import store_error
from kb.store.migrations import MIGRATIONS, applied, migrate, refuse_newer
from kb.store.reading import SqliteReader

if TYPE_CHECKING:
    from kb.store.writing import SqliteWriter


class SqliteStore(SqliteReader):
    """``kb.domain.protocols.Store`` on a SQLite file; without a writer it only reads. Close it after use."""

    def __init__(self, connection: sqlite3.Connection, path: Path, writer: SqliteWriter | None = None) -> None:
        super().__init__(connection, path)
        self._writer = writer

    def publish(self, record: Record, prepared: Prepared, *, origin: StoreOrigin, author: str, visibility: Visibility = "private",
                expect_parent: str | None = None) -> Version:  # fmt: skip
        """Append the next version of ``record.slug`` in ``origin``, or return the equal newest one.

        Raises ConflictError when ``expect_parent`` is not the newest version's hash, StoreError when nothing was written.
        """
        item = Publication(
            record=record, prepared=prepared, origin=origin, author=author, visibility=visibility, expect_parent=expect_parent
        )
        return self.publish_all([item])[0].version

    def publish_all(self, items: Sequence[Publication]) -> tuple[Published, ...]:
        """Publish several versions in one transaction, all or none; see ``publish``."""
        return self._writing().publish_all(items)

    def append(self, event: Event) -> Event:
        """Add an event; returns it with its id. Raises NotFoundError for a subject no version has."""
        return self._writing().append(event)

    def set_state(self, key: str, value: str) -> None:
        """Set a named value."""
        self._writing().set_state(key, value)

    def rebuild_heads(self) -> None:
        """Derive the head of every slug, the one table that is a cache, anew."""
        self._writing().rebuild_heads()

    def close(self) -> None:
        """Release files and connections; further calls raise StoreError."""
        self._connection.close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _writing(self) -> SqliteWriter:
        if self._writer is None:
            raise StoreError(
                f"{self._path.name} is closed or open for reading only",
                allowed="reading, or a store opened with writable=True",
                do="open it for writing",
            )
        return self._writer


def open_store(
    path: Path, *, writable: bool, busy_timeout_s: float = BUSY_TIMEOUT_S, clock: Callable[[], int] = time.time_ns
) -> SqliteStore:
    """Open the database file ``path``; with ``writable`` it is made, with its folder, when absent, and upgraded when old.

    Raises StoreError for a missing file (reading), a folder, a foreign, newer, older (reading), damaged, locked
    or unreachable file. Reading imports neither sqlmodel, sqlalchemy nor pydantic.
    """
    if path.is_dir():
        raise StoreError(f"{path} is a folder", allowed="a database file", do="name the file inside it or set KB_HOME")
    try:
        return _open_writable(path, busy_timeout_s, clock) if writable else _open_readable(path, busy_timeout_s)
    except sqlite3.Error as error:
        raise store_error(error, path=path, doing="opening the store") from error


def _open_readable(path: Path, busy_timeout_s: float) -> SqliteStore:
    if not path.exists():
        raise _missing(path)
    connection = connect_reader(path, busy_timeout_s=busy_timeout_s)
    try:
        _require_current(connection, path)
    except BaseException:
        connection.close()
        raise
    return SqliteStore(connection, path)


def _open_writable(path: Path, busy_timeout_s: float, clock: Callable[[], int]) -> SqliteStore:
    from kb.store.writing import SqliteWriter

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"the folder of {path} cannot be made: {error.strerror}",
            allowed="a folder this user may write",
            do="change the permissions or set KB_HOME",
        ) from error
    connection = connect_writer(path, busy_timeout_s=busy_timeout_s)
    try:
        migrate(connection, path)
        reader = connect_reader(path, busy_timeout_s=busy_timeout_s)
    except BaseException:
        connection.close()
        raise
    return SqliteStore(reader, path, SqliteWriter(connection, path, clock=clock))


def _require_current(connection: sqlite3.Connection, path: Path) -> None:
    done = applied(connection, path)
    if not done:
        raise _missing(path)
    refuse_newer(done, path)
    if len(done) < len(MIGRATIONS):
        raise StoreError(
            f"{path.name} has the older schema {done[-1]}",
            allowed=f"schema {MIGRATIONS[-1].__name__}",
            do="run any command that writes, for example `kb publish`: it upgrades the store",
        )


def _missing(path: Path) -> StoreError:
    return StoreError(
        f"there is no store at {path}",
        allowed="a store made by a command that writes",
        do="run `kb publish FILE` (or `kb demo`) to make it, or set KB_HOME to the right workspace",
    )
