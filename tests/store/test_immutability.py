"""Published rows cannot be changed, not even past the store and with SQLite's settings off."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from store.examples import case, prepared, record

from kb.domain.event import Event
from kb.store.connection import connect_writer
from kb.store.migrations import GUARDED, guard_names
from kb.store.sqlite import open_store

TABLES = [table for table, _ in GUARDED]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    store = open_store(path, writable=True)
    for text in ("1", "2"):
        made = store.publish(record(text=text, cases=[case(model_type="llm")]), prepared(), origin="workspace", author="ann")
    store.append(Event(kind="used", subject=made.sha256, author="ann", at_ns=1))
    store.close()
    return path


@pytest.fixture(params=["own", "foreign"])
def connection(request: pytest.FixtureRequest, path: Path) -> Iterator[sqlite3.Connection]:
    """The store's own kind of connection, and one that sets nothing, as any other program would."""
    connection = connect_writer(path) if request.param == "own" else sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


def rows(connection: sqlite3.Connection, table: str) -> list[tuple[object, ...]]:
    return connection.execute(f"SELECT * FROM {table}").fetchall()


@pytest.mark.parametrize("table", TABLES)
def test_no_statement_changes_a_row(connection: sqlite3.Connection, table: str) -> None:
    before = rows(connection, table)
    columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
    marks = ", ".join("?" * len(columns))
    assert before
    attempts: list[tuple[str, tuple[object, ...]]] = [
        *((f"UPDATE {table} SET {column} = {column}", ()) for column in columns),
        (f"DELETE FROM {table}", ()),
        (f"INSERT OR REPLACE INTO {table} VALUES ({marks})", before[0]),
        (f"INSERT OR IGNORE INTO {table} VALUES ({marks})", before[0]),
        (f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT DO UPDATE SET {columns[-1]} = excluded.{columns[-1]}", before[0]),
    ]
    for statement, values in attempts:
        with pytest.raises(sqlite3.IntegrityError, match="never changed"):
            connection.execute(statement, values)
    assert rows(connection, table) == before


def test_a_row_is_not_replaced_through_its_second_key(connection: sqlite3.Connection) -> None:
    before = rows(connection, "version")
    clone = (99, *before[0][1:])
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(f"INSERT OR REPLACE INTO version VALUES ({', '.join('?' * len(clone))})", clone)
    assert rows(connection, "version") == before


def test_own_connections_keep_replace_and_foreign_keys_honest(path: Path) -> None:
    connection = connect_writer(path)
    settings = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in
                ("recursive_triggers", "foreign_keys", "synchronous", "busy_timeout", "journal_mode")}  # fmt: skip
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        connection.execute("INSERT INTO facet (name, value, version_id) VALUES ('cause', 'x', 12345)")
    connection.close()
    assert settings == {"recursive_triggers": 1, "foreign_keys": 1, "synchronous": 2, "busy_timeout": 30_000, "journal_mode": "wal"}


def test_every_guard_is_in_the_file(path: Path) -> None:
    connection = sqlite3.connect(path)
    present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")}
    connection.close()
    assert guard_names() == present
