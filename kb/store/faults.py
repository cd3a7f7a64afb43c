"""SQLite's error codes in the reader's words."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

import msgspec

from kb.errors import StoreError


class Fault(msgspec.Struct, frozen=True):
    """What a family of result codes means and what to do about it."""

    code: str
    what: str
    allowed: str
    do: str


_WAIT: Final = "let the other process finish and repeat the command"
# Result codes: https://www.sqlite.org/rescode.html. The first prefix that fits wins.
FAULTS: Final[tuple[Fault, ...]] = (
    Fault("SQLITE_FULL", "the disk is full", "free space for the store and its -wal file", "free space and repeat the command"),
    Fault("SQLITE_READONLY", "the store is read-only", "a file and folder this user may write", "change the permissions or set KB_HOME"),
    Fault("SQLITE_BUSY", "another process holds the store", "one writer at a time", _WAIT),
    Fault("SQLITE_LOCKED", "another process holds the store", "one writer at a time", _WAIT),
    Fault("SQLITE_NOTADB", "the file is not a SQLite database", "a store made by this program", "name another file or set KB_HOME"),
    Fault("SQLITE_CORRUPT", "the store file is damaged or cut short", "a whole store file", "restore the newest backup with `kb restore`"),
    Fault("SQLITE_CANTOPEN", "the store file cannot be opened", "a readable file in an existing folder",
          "check the path and its permissions"),
    Fault("SQLITE_IOERR", "the disk refused to read or write", "a local disk with free space and no quota reached",
          "check space, quota and the disk's health, then repeat the command"),
    Fault("SQLITE_CONSTRAINT", "the store refused the write", "new rows only: published rows never change",
          "publish a new version instead"),
)  # fmt: skip
OTHER: Final = Fault("", "the store cannot be used", "an open store, used by the thread that opened it", "open the store again")


def store_error(error: sqlite3.Error, *, path: Path, doing: str) -> StoreError:
    """A StoreError that says what failed while ``doing`` something to ``path``; chain it with ``from error``."""
    code = getattr(error, "sqlite_errorname", "")
    fault = next((known for known in FAULTS if code.startswith(known.code)), OTHER)
    return StoreError(f"{doing}: {fault.what} ({path.name}: {error})", allowed=fault.allowed, do=fault.do)
