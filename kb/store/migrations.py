"""The schema as an ordered list of named steps; a step never changes once released."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from kb.errors import StoreError

Migration = Callable[[sqlite3.Connection], None]

APPLICATION_ID: Final = 0x6B624453
"""Marks the file as ours in SQLite's header ("kbDS")."""
GUARDED: Final[tuple[tuple[str, str], ...]] = (
    ("content", "sha256 = NEW.sha256"),
    ("version", "id = NEW.id OR (origin = NEW.origin AND slug = NEW.slug AND n = NEW.n)"),
    ("facet", "name = NEW.name AND value = NEW.value AND version_id = NEW.version_id"),
    ("posting", "token = NEW.token AND version_id = NEW.version_id"),
    ("vector", "model_id = NEW.model_id AND version_id = NEW.version_id AND field = NEW.field"),
    ("event", "id = NEW.id"),
)
"""Append-only tables, each with the condition under which an inserted row would replace one."""

_TABLES: Final[tuple[str, ...]] = (
    "CREATE TABLE counter (id INTEGER PRIMARY KEY CHECK (id = 1), generation INTEGER NOT NULL)",
    "CREATE TABLE state (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE content (sha256 TEXT NOT NULL PRIMARY KEY CHECK (length(sha256) = 64), body BLOB NOT NULL CHECK (typeof(body) = 'blob'))",
    """CREATE TABLE version (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        origin TEXT NOT NULL CHECK (origin IN ('library', 'workspace', 'team')),
        slug TEXT NOT NULL,
        n INTEGER NOT NULL CHECK (n > 0),
        sha256 TEXT NOT NULL REFERENCES content (sha256),
        kind TEXT NOT NULL,
        provenance TEXT NOT NULL,
        tier INTEGER NOT NULL,
        author TEXT NOT NULL,
        created_ns INTEGER NOT NULL,
        visibility TEXT NOT NULL CHECK (visibility IN ('private', 'team', 'public')),
        parent TEXT,
        language_share FLOAT NOT NULL CHECK (language_share BETWEEN 0 AND 1),
        length INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        UNIQUE (origin, slug, n))""",
    "CREATE INDEX version_by_slug ON version (slug)",
    "CREATE INDEX version_by_hash ON version (sha256)",
    """CREATE TABLE head (
        version_id INTEGER NOT NULL PRIMARY KEY REFERENCES version (id),
        slug TEXT NOT NULL UNIQUE)""",
    """CREATE TABLE facet (
        name TEXT NOT NULL CHECK (name IN ('cause', 'model_type', 'family')),
        value TEXT NOT NULL,
        version_id INTEGER NOT NULL REFERENCES version (id),
        PRIMARY KEY (name, value, version_id)) WITHOUT ROWID""",
    """CREATE TABLE posting (
        token TEXT NOT NULL,
        version_id INTEGER NOT NULL REFERENCES version (id),
        count INTEGER NOT NULL CHECK (count > 0),
        length INTEGER NOT NULL,
        PRIMARY KEY (token, version_id)) WITHOUT ROWID""",
    """CREATE TABLE vector (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        version_id INTEGER NOT NULL REFERENCES version (id),
        field TEXT NOT NULL,
        model_id TEXT NOT NULL,
        dim INTEGER NOT NULL CHECK (dim > 0),
        generation INTEGER NOT NULL,
        values_f32 BLOB NOT NULL CHECK (typeof(values_f32) = 'blob' AND length(values_f32) = 4 * dim),
        UNIQUE (version_id, model_id, field))""",
    "CREATE INDEX vector_by_generation ON vector (model_id, generation)",
    """CREATE TABLE event (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        subject TEXT NOT NULL REFERENCES content (sha256),
        author TEXT NOT NULL,
        at_ns INTEGER NOT NULL,
        detail TEXT NOT NULL,
        generation INTEGER NOT NULL)""",
    "CREATE INDEX event_by_subject ON event (subject, kind)",
    "CREATE INDEX event_by_kind ON event (kind, subject)",
)


def m001_initial(connection: sqlite3.Connection) -> None:
    """Versions, content by hash, postings, vectors, facets, events, and the guards that keep them as written."""
    for statement in _TABLES:
        connection.execute(statement)
    for table, same_row in GUARDED:
        for statement in guard_statements(table, same_row):
            connection.execute(statement)
    connection.execute("INSERT INTO counter (id, generation) VALUES (1, 0)")
    # Caches name the store they copy, so that a store made anew under the same path is not served old rows.
    connection.execute("INSERT INTO state (key, value) VALUES ('identity', lower(hex(randomblob(16))))")
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")


MIGRATIONS: Final[tuple[Migration, ...]] = (m001_initial,)


def guard_statements(table: str, same_row: str) -> tuple[str, ...]:
    """Triggers that refuse UPDATE, DELETE and an INSERT that would replace a row of ``table``.

    The INSERT guard also holds on connections that left ``recursive_triggers`` off.
    """
    refusal = f"SELECT RAISE(ABORT, '{table} rows are never changed');"
    exists = f"EXISTS (SELECT 1 FROM {table} WHERE {same_row})"  # noqa: S608  # both names come from GUARDED above
    return (
        f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} BEGIN {refusal} END",
        f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} BEGIN {refusal} END",
        f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {exists} BEGIN {refusal} END",
    )


def guard_names() -> frozenset[str]:
    """Names of the triggers a sound store has."""
    return frozenset(f"{table}_no_{verb}" for table, _ in GUARDED for verb in ("update", "delete", "replace"))


def migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring a store up to date, each step in one transaction with its record. Raises StoreError for a foreign
    or newer file and for a step that lost a guard (the step is then rolled back)."""
    done = applied(connection, path)
    refuse_newer(done, path, migrations)
    for migration in migrations[len(done) :]:
        _apply(connection, path, migration)


def applied(connection: sqlite3.Connection, path: Path) -> tuple[str, ...]:
    """Names of the steps a file has gone through; empty for a new file. Raises StoreError for a foreign database."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return ()
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreError(
            f"{path.name} is a SQLite database of another program",
            allowed="a store made by this program, or a file that does not exist yet",
            do="name another file or set KB_HOME",
        )
    return tuple(name for (name,) in connection.execute("SELECT name FROM migration ORDER BY id"))


def refuse_newer(done: Sequence[str], path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Raise StoreError when ``done`` holds steps this program does not know."""
    known = [migration.__name__ for migration in migrations]
    if list(done) != known[: len(done)]:
        newest = done[-1]
        raise StoreError(
            f"{path.name} was written by a newer version of this program (schema {newest})",
            allowed=f"schemas up to {known[-1]}",
            do="upgrade diagnosis-recipes",
        )


def _apply(connection: sqlite3.Connection, path: Path, migration: Migration) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have taken this step while we waited for the lock.
        if migration.__name__ not in applied(connection, path):
            connection.execute(
                "CREATE TABLE IF NOT EXISTS migration (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, applied_ns INTEGER NOT NULL)"
            )
            migration(connection)
            connection.execute("INSERT INTO migration (name, applied_ns) VALUES (?, ?)", (migration.__name__, time.time_ns()))
            _require_guards(connection, path)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _require_guards(connection: sqlite3.Connection, path: Path) -> None:
    present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")}
    missing = sorted(guard_names() - present)
    if missing:
        raise StoreError(
            f"an upgrade of {path.name} would have removed guards: {', '.join(missing)}",
            allowed="a schema whose published rows cannot change",
            do="report this as a defect; the store was left as it was",
        )
