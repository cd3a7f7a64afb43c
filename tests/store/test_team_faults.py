"""Bad addresses, servers, schemas and rights: each says what happened, what is allowed and what to do, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from store.examples import prepared, record
from store.servers import Server, TeamDatabase, drop

from kb.domain.version import Ref
from kb.errors import KbError, StoreError, UsageError
from kb.store import statements
from kb.store.postgres import migrations, pool
from kb.store.postgres.address import parse_address
from kb.store.postgres.administration import initialise
from kb.store.postgres.migrations import MIGRATIONS
from kb.store.postgres.statements import SPOKEN
from kb.store.postgres.store import open_store


def complete(error: KbError) -> str:
    """The message, after making sure that all three parts are there and no password is."""
    assert error.what
    assert error.allowed
    assert error.do
    assert "hunter2" not in str(error)
    return str(error)


def refusal(url: str) -> str:
    with pytest.raises(KbError) as caught:
        open_store(url, writable=True)
    return complete(caught.value)


@pytest.mark.parametrize(
    "url",
    ["postgresql://ann:hunter2@host:port/kb", "postgresql://ann:hunter2@host", "postgresql://ann:hunter2@host/a/b", "mysql://x/y",
     "postgresql://ann:hunter2@[::1/kb"],
)  # fmt: skip
def test_what_is_no_address_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_address(url)
    assert "postgresql://" in complete(caught.value)


def test_an_address_is_shown_without_its_password() -> None:
    address = parse_address("postgresql://ann:hunter2@db.example:6543/kb?sslmode=require")
    assert (address.shown, address.database) == ("postgresql://ann@db.example:6543/kb", "kb")


def test_a_server_that_is_not_there_is_said_so() -> None:
    assert "cannot be reached" in refusal("postgresql://ann:hunter2@127.0.0.1:9/kb")


def test_an_unknown_database_and_an_unknown_role_are_named(team: TeamDatabase) -> None:
    assert "no such database" in refusal(team.server.url("kb_test_absent"))
    assert "refused this login" in refusal(team.server.url(team.name, "nobody", "hunter2"))


@pytest.fixture
def bare(server: Server) -> Iterator[str]:
    """The admin URL of a database with nothing in it."""
    with psycopg.connect(server.admin_url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE kb_test_bare TEMPLATE template0")
    yield server.url("kb_test_bare")
    drop(server, "kb_test_bare", {})


def test_a_database_without_store_asks_for_initialisation(bare: str) -> None:
    assert "holds no team store" in (said := refusal(bare))
    assert "kb store init --admin-url" in said


def test_a_schema_of_another_program_is_left_alone(bare: str) -> None:
    with psycopg.connect(bare, autocommit=True) as admin:
        admin.execute("CREATE SCHEMA casebook CREATE TABLE thing (id int)")
    with pytest.raises(StoreError, match="another program") as caught:
        initialise(bare, {})
    complete(caught.value)


def test_a_missing_extension_is_named(bare: str, monkeypatch: pytest.MonkeyPatch) -> None:
    initialise(bare, {})
    with psycopg.connect(bare, autocommit=True) as admin:
        admin.execute("DROP EXTENSION vector CASCADE")
    assert "no extension vector" in refusal(bare)


def test_an_old_server_is_refused() -> None:
    pool.require_server(150_004, "x")
    with pytest.raises(StoreError, match="PostgreSQL 14") as caught:
        pool.require_server(140_011, "x")
    complete(caught.value)


def test_initialising_needs_an_administrator_and_leaves_nothing(team: TeamDatabase) -> None:
    with pytest.raises(StoreError, match="may not") as caught:
        initialise(team.urls["ann"], {"new_login": "maintainer"})
    complete(caught.value)
    with psycopg.connect(team.admin_url) as admin:
        assert admin.execute("SELECT count(*) FROM pg_roles WHERE rolname = 'new_login'").fetchone() == (0,)


def test_initialising_again_changes_nothing_and_keeps_passwords(team: TeamDatabase) -> None:
    store = open_store(team.urls["ann"], writable=True)
    made = store.publish(record("a"), prepared(), origin="team", author="ann", visibility="team")
    ann = team.urls["ann"].split("//")[1].split(":")[0]
    again = initialise(team.admin_url, {ann: "member"})
    assert (again.applied, again.passwords) == ((), {})
    assert store.get(Ref("a")) == made
    store.close()


def test_a_bad_login_name_is_a_usage_error(team: TeamDatabase) -> None:
    with pytest.raises(UsageError):
        initialise(team.admin_url, {'x"; DROP ROLE y': "member"})


def test_a_newer_schema_asks_for_an_upgrade_of_the_program(team: TeamDatabase) -> None:
    with psycopg.connect(team.admin_url, autocommit=True) as admin:
        admin.execute("INSERT INTO casebook.migration (name, applied_ns) VALUES ('m999_future', 1)")
        try:
            assert "upgrade diagnosis-recipes" in refusal(team.urls["ann"])
            with pytest.raises(StoreError, match="newer version"):
                initialise(team.admin_url, {})
        finally:
            admin.execute("DELETE FROM casebook.migration WHERE name = 'm999_future'")


def test_an_older_schema_is_upgraded_by_an_administrator_only(bare: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    initialise(bare, {})
    store = open_store(bare, writable=True)
    made = store.publish(record("a"), prepared(), origin="team", author="ann", visibility="team")
    store.close()
    folder = Path(migrations.__file__).parent / "schema"
    for name in MIGRATIONS:
        (tmp_path / f"{name}.sql").write_bytes((folder / f"{name}.sql").read_bytes())
    (tmp_path / "m998_note.sql").write_text("ALTER TABLE version ADD COLUMN remark text;\nGRANT SELECT ON version TO {guest};\n")
    steps = (*MIGRATIONS, "m998_note")
    monkeypatch.setattr(migrations.migrate, "__kwdefaults__", {"migrations": steps, "folder": tmp_path})
    for function in (migrations.refuse_newer, migrations.require_current):
        monkeypatch.setattr(function, "__defaults__", (steps,))
    assert "kb store init" in refusal(bare)
    assert initialise(bare, {}).applied == ("m998_note",)
    store = open_store(bare, writable=True)
    assert store.get(Ref("a")) == made
    store.close()


def test_a_step_that_loses_a_guard_is_rolled_back(bare: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    initialise(bare, {})
    (tmp_path / "m998_careless.sql").write_text("DROP TRIGGER version_no_change ON version;")
    monkeypatch.setattr(migrations.migrate, "__kwdefaults__", {"migrations": (*MIGRATIONS, "m998_careless"), "folder": tmp_path})
    with pytest.raises(StoreError, match="version_no_change"):
        initialise(bare, {})
    monkeypatch.undo()
    store = open_store(bare, writable=False)
    assert all(check.ok for check in store.examine())
    store.close()


def test_every_question_has_its_words_in_postgresql() -> None:
    asked = {text for name, text in vars(statements).items() if name.isupper() and not name.startswith("_")}
    only_sqlite = {statements.NEWEST_OF_ALL, statements.INSERT_POSTING}
    assert asked - only_sqlite == set(SPOKEN)


def test_text_the_server_cannot_keep_is_named(team: TeamDatabase) -> None:
    store = open_store(team.urls["ann"], writable=True)
    with pytest.raises(StoreError) as caught:
        store.publish(record("a"), prepared({"nul\x00": 1}), origin="team", author="ann", visibility="team")
    complete(caught.value)
    assert store.generation() == 0
    store.close()


def test_a_damaged_row_is_named_by_its_check(team: TeamDatabase) -> None:
    store = open_store(team.urls["mia"], writable=True)
    for slug in "ab":
        store.publish(record(slug), prepared(), origin="team", author="mia", visibility="team")
    damage = {
        "heads": ("DELETE FROM heads WHERE slug = 'a'", True),
        "words": ("DELETE FROM posting WHERE version_id = 1", False),
        "audiences": ("UPDATE facet SET audience = 'public'", False),
        "versions": ("DELETE FROM event WHERE id = 1", False),
    }
    for name, (statement, repairable) in damage.items():
        with psycopg.connect(team.admin_url, autocommit=True) as admin:
            admin.execute("SET session_replication_role = replica")
            admin.execute("SET search_path = casebook")
            admin.execute(sql.SQL(statement))
        assert {check.name: check.repairable for check in store.examine() if not check.ok} == {name: repairable}
        if repairable:
            store.rebuild_heads()
            assert all(check.ok for check in store.examine())
        else:
            break
    store.close()
