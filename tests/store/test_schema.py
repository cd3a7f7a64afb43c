"""Migrations: order, refusals, and agreement with the writer's tables."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import inspect
from sqlalchemy.types import TypeEngine
from sqlmodel import AutoString, SQLModel, create_engine
from store.examples import prepared, record

import kb.store.tables  # noqa: F401  # registers the tables
from kb.domain.version import Ref
from kb.errors import StoreError
from kb.store import migrations, sqlite
from kb.store.connection import connect_writer
from kb.store.migrations import MIGRATIONS, guard_names, migrate
from kb.store.sqlite import open_store

OWN_TABLES = ("counter", "state", "content", "version", "head", "facet", "posting", "vector", "event")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    store = open_store(path, writable=True)
    store.publish(record(), prepared(), origin="workspace", author="ann")
    store.close()
    return path


def affinity(kind: TypeEngine[object]) -> type:
    """The general type a special one stands for."""
    return str if isinstance(kind, AutoString) else kind.python_type


def m002_note(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE note (id INTEGER PRIMARY KEY)")


def m002_careless(connection: sqlite3.Connection) -> None:
    connection.execute("DROP TRIGGER version_no_update")


def test_the_writers_tables_are_those_of_the_schema(path: Path) -> None:
    engine = create_engine(f"sqlite:///{path}")
    found = inspect(engine)
    for name in OWN_TABLES:
        table = SQLModel.metadata.tables[name]
        columns = {column["name"]: column for column in found.get_columns(name)}
        assert set(columns) == set(table.columns.keys()), name
        for key, column in table.columns.items():
            assert affinity(columns[key]["type"]) is affinity(column.type), (name, key)
            assert columns[key]["nullable"] == column.nullable or column.primary_key, (name, key)
        assert set(found.get_pk_constraint(name)["constrained_columns"]) == {column.name for column in table.primary_key}
    engine.dispose()


def test_an_upgrade_keeps_records_and_guards(path: Path) -> None:
    connection = connect_writer(path)
    migrate(connection, path, (*MIGRATIONS, m002_note))
    migrate(connection, path, (*MIGRATIONS, m002_note))
    names = [name for (name,) in connection.execute("SELECT name FROM migration ORDER BY id")]
    present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")}
    count = connection.execute("SELECT count(*) FROM version").fetchone()
    connection.close()
    assert (names, guard_names() - present, count) == (["m001_initial", "m002_note"], frozenset(), (1,))


def test_a_step_that_loses_a_guard_is_rolled_back(path: Path) -> None:
    connection = connect_writer(path)
    with pytest.raises(StoreError, match="version_no_update"):
        migrate(connection, path, (*MIGRATIONS, m002_careless))
    assert connection.execute("SELECT name FROM migration").fetchall() == [("m001_initial",)]
    connection.close()
    store = open_store(path, writable=True)
    assert store.get(Ref("sd3-attention")).n == 1
    store.close()


@pytest.mark.parametrize("writable", [True, False])
def test_a_newer_schema_asks_for_an_upgrade_of_the_program(path: Path, writable: bool) -> None:
    connection = connect_writer(path)
    migrate(connection, path, (*MIGRATIONS, m002_note))
    connection.close()
    with pytest.raises(StoreError, match="m002_note") as caught:
        open_store(path, writable=writable)
    assert "upgrade diagnosis-recipes" in str(caught.value)


def test_an_older_schema_is_upgraded_by_the_first_writer_and_named_by_readers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (*MIGRATIONS, m002_note)
    monkeypatch.setattr(sqlite, "MIGRATIONS", steps)
    monkeypatch.setattr(migrations.migrate, "__defaults__", (steps,))
    monkeypatch.setattr(migrations.refuse_newer, "__defaults__", (steps,))
    with pytest.raises(StoreError, match="older schema m001_initial"):
        open_store(path, writable=False)
    open_store(path, writable=True).close()
    reader = open_store(path, writable=False)
    assert reader.get(Ref("sd3-attention")).n == 1
    reader.close()


@pytest.mark.parametrize("writable", [True, False])
def test_the_database_of_another_program_is_left_alone(tmp_path: Path, writable: bool) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE thing (id INTEGER)")
    other.close()
    with pytest.raises(StoreError, match="another program"):
        open_store(path, writable=writable)
    other = sqlite3.connect(path)
    assert [name for (name,) in other.execute("SELECT name FROM sqlite_master")] == ["thing"]
    other.close()


def test_stores_have_different_identities(tmp_path: Path) -> None:
    seen = set()
    for name in ("a.db", "b.db"):
        store = open_store(tmp_path / name, writable=True)
        seen.add(store.state("identity"))
        store.close()
    assert len(seen) == 2
