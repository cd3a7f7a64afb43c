"""A consistent copy of a store in use, and its return."""

from __future__ import annotations

import secrets
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from kb.errors import StoreError
from kb.files import sync_folder
from kb.store.connection import connect_reader, connect_writer
from kb.store.examination import examine
from kb.store.faults import store_error
from kb.store.migrations import applied, migrate, refuse_newer

PAGES: Final = 2048
"""Pages copied between two looks at writers that wait."""


def back_up(path: Path, target: Path) -> None:
    """Copy the store ``path`` to the new file ``target`` while others read and write it; the copy is one snapshot,
    examined, and durable on return.

    Raises StoreError: no store there, no room, or a store that is itself damaged (then nothing is left at ``target``).
    """
    if not path.is_file():
        raise StoreError(f"there is no store at {path}", allowed="an existing store", do="set KB_HOME to the right workspace")
    fresh = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        with closing(connect_reader(path)) as source, closing(sqlite3.connect(fresh, isolation_level=None)) as copy:
            source.backup(copy, pages=PAGES)
            copy.execute("PRAGMA journal_mode=DELETE")
        require_sound(fresh)
        fresh.replace(target)
        sync_folder(target.parent)
    except sqlite3.Error as error:
        raise store_error(error, path=path, doing="backing up the store") from error
    except OSError as error:
        raise StoreError(
            f"the backup was not written: {error.strerror}",
            allowed="a folder this user may write, with free space",
            do="name another place",
        ) from error
    finally:
        fresh.unlink(missing_ok=True)


def restore(backup: Path, path: Path) -> None:
    """Make the store ``path`` what ``backup`` holds: one transaction, so that a reader sees the old store or the new one.

    The store gets a new identity, so that no cache of what it was is believed, and the newest schema. ``backup`` is
    examined first and left as it is. Raises StoreError, and then ``path`` is as it was.
    """
    require_sound(backup)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(f"{backup.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as source:
            refuse_newer(applied(source, backup), backup)
            with closing(connect_writer(path)) as target:
                source.backup(target)
        with closing(connect_writer(path)) as target:
            migrate(target, path)
            target.execute("BEGIN IMMEDIATE")
            target.execute("UPDATE state SET value = lower(hex(randomblob(16))) WHERE key = 'identity'")
            target.execute("UPDATE counter SET generation = generation + 1")
            target.execute("COMMIT")
    except sqlite3.Error as error:
        raise store_error(error, path=path, doing="restoring the store") from error
    require_sound(path)


def require_sound(path: Path) -> None:
    """Raise StoreError naming what is wrong with a store file, if anything that derived rows cannot explain."""
    try:
        with closing(connect_reader(path)) as connection:
            if not applied(connection, path):
                raise StoreError(f"{path.name} holds no store", allowed="a backup made by `kb backup`", do="name another file")
            wrong = [text for found in examine(connection) if not found.repairable for text in found.wrong]
    except sqlite3.Error as error:
        raise store_error(error, path=path, doing="checking the store") from error
    if wrong:
        raise StoreError(f"{path.name} is damaged: {'; '.join(wrong)}", allowed="a sound store", do="use an older backup")
