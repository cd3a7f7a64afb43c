"""Connections to the store file, with the settings every one of them needs."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Final

from kb.errors import StoreError
from kb.store.faults import store_error

BUSY_TIMEOUT_S: Final = 30.0
"""How long a writer waits for another one: publishing takes milliseconds, a sync of thousands of records well under this."""
_RETRY_S: Final = 0.02


def connect_writer(path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> sqlite3.Connection:
    """A read-write connection in WAL mode whose commits survive power loss; makes the file when absent.

    Raises sqlite3.Error for what SQLite refuses and StoreError where the file system has no WAL.
    """
    connection = _open(path, "mode=rwc", busy_timeout_s)
    try:
        _enter_wal(connection, path, busy_timeout_s)
        connection.execute("PRAGMA synchronous=FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> sqlite3.Connection:
    """A read-only connection to an existing store, also where the folder admits no side files.

    Raises sqlite3.Error for what SQLite refuses and StoreError for unmerged writes out of reach.
    """
    connection = _open(path, "mode=ro", busy_timeout_s)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if not _lacks_side_files(error):
            raise
        return _open_immutable(path, busy_timeout_s)
    except BaseException:
        connection.close()
        raise
    return connection


def _open(path: Path, mode: str, busy_timeout_s: float) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=busy_timeout_s, isolation_level=None)
    connection.execute("PRAGMA foreign_keys=ON")
    # Without this REPLACE removes rows and no delete trigger fires.
    connection.execute("PRAGMA recursive_triggers=ON")
    return connection


def _enter_wal(connection: sqlite3.Connection, path: Path, busy_timeout_s: float) -> None:
    # The switch to WAL does not call the busy handler, so two processes that make the file at once meet here.
    deadline = time.monotonic() + busy_timeout_s
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
            break
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_S)
    if mode != "wal":
        raise StoreError(
            f"{path.name} cannot use a write-ahead log here (journal mode {mode})",
            allowed="a local file system",
            do="set KB_HOME to a folder on a local disk",
        )


def _lacks_side_files(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorname.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY"))


def _open_immutable(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    log = path.with_name(path.name + "-wal")
    # An immutable connection ignores the log, so it may only be used where there is nothing in it.
    if log.exists() and log.stat().st_size:
        raise StoreError(
            f"{log.name} holds writes that cannot be read from a read-only folder",
            allowed="a store closed by its writer, or a folder this user may write",
            do=f"copy {path.name} and {log.name} together to a writable folder and open the copy",
        )
    connection = _open(path, "mode=ro&immutable=1", busy_timeout_s)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        connection.close()
        raise store_error(error, path=path, doing="opening the store") from error
    return connection
