"""Who sees and who may do what, tried with raw SQL under each role: the database decides, not the client."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from psycopg import errors
from store.examples import case, prepared, record
from store.servers import TeamDatabase, close_all

from kb.domain.event import Event
from kb.domain.protocols import Publication
from kb.domain.version import Ref, Version, Visibility
from kb.errors import ConflictError, NotFoundError, StoreError
from kb.store.postgres.migrations import GUARDED
from kb.store.postgres.store import PostgresStore, open_store

SEEN = {
    "mia": {"annteam", "annpublic", "bobteam", "miaprivate"},
    "ann": {"annprivate", "annteam", "annpublic", "bobteam"},
    "bob": {"bobprivate", "annteam", "annpublic", "bobteam"},
    "guy": {"annpublic"},
}
ALL = sorted(set().union(*SEEN.values()))
READABLE = ("counter", "state", "content", "version", "heads", "head", "facet", "posting", "embedding", "event", "attachment", "artefact",
            "deposit", "migration")  # fmt: skip
TABLES = (*READABLE[:5], *READABLE[6:], "audit")
INNER = (
    "SELECT advance()", "SELECT queue()", "SELECT note('a', 'b', 1)", "SELECT refresh_head('annteam')",
    "SELECT withdrawn('a', 'b', '{}')", "SELECT newest_visible('bobprivate', ARRAY['@bob'])",
    "SELECT add_vectors(1, 'public', 'm', '{f}', '{[1]}', 1)", "SELECT add_remarks('a', 'public', '[]', 1)",
)  # fmt: skip


def publish(store: PostgresStore, slug: str, visibility: Visibility, **more: str) -> Version:
    """A record whose every row tells its slug: in body, token, cause and attached session."""
    sessions = {"sessions": (store.artefacts.put(f"capture of {slug}".encode()),)}
    item = record(slug, more.get("text", f"text of {slug}"), cases=[case(slug.replace("-", "_"))])
    item = item.__class__(**{**{name: getattr(item, name) for name in item.__struct_fields__}, **sessions})
    data = prepared({f"word-{slug}": 1}, {"title": (float(len(slug)), 1.0)})
    origin = "workspace" if visibility == "private" else "team"
    made = store.publish_all([Publication(record=item, prepared=data, origin=origin, author=slug, visibility=visibility)])  # type: ignore[arg-type]
    return made[0].version


@pytest.fixture
def stores(team: TeamDatabase) -> Iterator[dict[str, PostgresStore]]:
    """An open store a role, each with records of its own: see ``SEEN``."""
    opened = {name: open_store(team.urls[name], writable=True) for name in SEEN}
    publish(opened["ann"], "annprivate", "private")
    publish(opened["ann"], "annteam", "team")
    publish(opened["ann"], "annpublic", "public")
    publish(opened["bob"], "bobprivate", "private")
    publish(opened["bob"], "bobteam", "team")
    publish(opened["mia"], "miaprivate", "private")
    yield opened
    close_all(*opened.values())


def raw(url: str) -> psycopg.Connection[Any]:
    """A connection as any client makes one."""
    connection = psycopg.connect(url, autocommit=True)
    connection.execute("SET search_path = casebook, public")
    return connection


def everything(connection: psycopg.Connection[Any], tables: Sequence[str] = READABLE) -> str:
    """Every row of every table this role may read, as one text."""
    rows = [str(connection.execute(f"SELECT * FROM {table}".encode()).fetchall()) for table in tables]
    return "\n".join(rows)


@pytest.mark.parametrize("role", sorted(SEEN))
def test_raw_sql_reads_no_trace_of_what_is_others(team: TeamDatabase, stores: dict[str, PostgresStore], role: str) -> None:
    with raw(team.urls[role]) as connection:
        told = everything(connection)
        assert {slug for slug in ALL if slug in told} == SEEN[role]
        versions = {row for (row,) in connection.execute("SELECT id FROM version")}
        assert len(versions) == len(SEEN[role])
        for table in ("facet", "posting", "embedding", "attachment", "heads"):
            rows = {row for (row,) in connection.execute(f"SELECT DISTINCT version_id FROM {table}".encode())}
            assert rows == versions
        hashes = {row for (row,) in connection.execute("SELECT sha256 FROM artefact")}
        assert hashes == {hashlib.sha256(f"capture of {slug}".encode()).hexdigest() for slug in SEEN[role]}


@pytest.mark.parametrize("role", sorted(SEEN))
def test_the_store_shows_what_raw_sql_shows(stores: dict[str, PostgresStore], role: str) -> None:
    store = stores[role]
    assert {item.ref.slug for item in store.summaries()} == SEEN[role]
    for slug in ALL:
        held = store.postings([f"word-{slug}"])[f"word-{slug}"]
        assert bool(held) == (slug in SEEN[role])
        if slug not in SEEN[role]:
            with pytest.raises(NotFoundError) as caught:
                store.get(Ref(slug))
            assert not any(other in str(caught.value) for other in ALL if other not in SEEN[role] and other != slug)
    assert len(store.vectors_since(0, "toy@1").ids) == 8 * len(SEEN[role])
    assert len(store.events()) == len(SEEN[role])
    assert len({each.state("identity") for each in stores.values()}) == len(stores)


@pytest.mark.parametrize("role", sorted(SEEN))
def test_no_role_writes_past_the_functions(team: TeamDatabase, stores: dict[str, PostgresStore], role: str) -> None:
    with raw(team.urls[role]) as connection:
        before = everything(connection)
        for table in TABLES:
            columns = connection.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0", (f"casebook.{table}",)
            ).fetchall()
            column = columns[-1][0]
            for statement in (
                f"INSERT INTO {table} DEFAULT VALUES",
                f"UPDATE {table} SET {column} = {column}",
                f"DELETE FROM {table}",
                f"TRUNCATE {table} CASCADE",
                f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY",
                f"DROP TABLE {table} CASCADE",
                f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE",
            ):
                with pytest.raises((errors.InsufficientPrivilege, errors.NoActiveSqlTransaction)):
                    connection.execute(statement.encode())
        assert everything(connection) == before


@pytest.mark.parametrize("role", ["ann", "guy", "mia"])
def test_no_role_becomes_another_or_calls_what_is_inside(team: TeamDatabase, stores: dict[str, PostgresStore], role: str) -> None:
    bob = team.urls["bob"].split("//")[1].split(":")[0]
    with raw(team.urls[role]) as connection:
        for statement in (
            f"SET ROLE kb_owner_{team.name}", f"SET ROLE {bob}", f"SET SESSION AUTHORIZATION {bob}",
            "SET session_replication_role = replica",
            "CREATE TABLE casebook.mine (a int)", "CREATE TABLE public.mine (a int)", "CREATE TEMP TABLE mine (a int)",
            "CREATE OR REPLACE FUNCTION casebook.mine() RETURNS text LANGUAGE sql AS 'SELECT ''@bob'''",
            "CREATE POLICY all_rows ON version FOR SELECT USING (true)", f"GRANT kb_maintainer_{team.name} TO CURRENT_USER",
            "SELECT pg_read_file('/etc/hostname')", *INNER,
        ):  # fmt: skip
            with pytest.raises((errors.InsufficientPrivilege, errors.InvalidGrantOperation)):
                connection.execute(statement.encode())


def test_settings_of_a_session_open_nothing(team: TeamDatabase, stores: dict[str, PostgresStore]) -> None:
    with raw(team.urls["ann"]) as connection:
        connection.execute(f"SET ROLE kb_guest_{team.name}".encode())
        assert [slug for slug in ALL if slug in everything(connection, ("version", "posting", "event"))] == ["annpublic"]
        connection.execute("RESET ROLE")
        # With row security off a query that rules would cut is an error, not a longer answer.
        connection.execute("SET row_security = off")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM version")
        connection.execute("SET row_security = on")
        # A condition that fails on a hidden row is never asked about one.
        assert connection.execute("SELECT count(*) FROM version WHERE 1 / (slug <> 'bobprivate')::int = 1").fetchone() == (4,)


@pytest.mark.parametrize("table", GUARDED)
def test_the_administrator_changes_no_row_either(team: TeamDatabase, stores: dict[str, PostgresStore], table: str) -> None:
    with raw(team.admin_url) as connection:
        (column,) = connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND attidentity = '' LIMIT 1",
            (f"casebook.{table}",),
        ).fetchone() or ("",)
        for statement in (f"UPDATE {table} SET {column} = {column}", f"DELETE FROM {table}", f"TRUNCATE {table} CASCADE"):
            with pytest.raises(psycopg.Error, match="never changed"):
                connection.execute(statement.encode())


def test_a_login_without_a_role_is_not_let_in(team: TeamDatabase) -> None:
    name = f"eve_{team.name[8:]}"
    with psycopg.connect(team.admin_url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN".encode())
        try:
            with pytest.raises(StoreError, match="may not") as caught:
                open_store(team.server.url(team.name, name, "x"), writable=False)
            assert "ask" in str(caught.value)
        finally:
            admin.execute(f"DROP ROLE {name}".encode())


def test_only_members_publish_and_only_maintainers_keep_the_library(stores: dict[str, PostgresStore]) -> None:
    with pytest.raises(StoreError, match="may not"):
        stores["guy"].publish(record("g"), prepared(), origin="team", author="guy", visibility="public")
    with pytest.raises(StoreError, match="may not"):
        stores["ann"].publish(record("g"), prepared(), origin="library", author="ann", visibility="public")
    with pytest.raises(StoreError, match="may not"):
        stores["ann"].set_state("library", "x")
    assert stores["mia"].publish(record("g"), prepared(), origin="library", author="kb", visibility="public").n == 1


def test_what_others_published_is_withdrawn_by_a_maintainer_only(stores: dict[str, PostgresStore]) -> None:
    subject = stores["ann"].get(Ref("annteam")).sha256
    gone = Event(kind="yanked", subject=subject, author="x", at_ns=1)
    with pytest.raises(StoreError, match="may not"):
        stores["bob"].append(gone)
    stores["bob"].append(Event(kind="used", subject=subject, author="bob", at_ns=1, detail={"result": "improved"}))
    with pytest.raises(NotFoundError):
        stores["ann"].append(Event(kind="used", subject=stores["bob"].get(Ref("bobprivate")).sha256, author="ann", at_ns=1))
    stores["mia"].append(gone)
    assert "annteam" not in {item.ref.slug for item in stores["bob"].summaries()}
    stores["ann"].append(Event(kind="restored", subject=subject, author="ann", at_ns=2))
    assert "annteam" in {item.ref.slug for item in stores["bob"].summaries()}


def test_a_private_draft_stands_before_the_teams_for_its_owner_only(stores: dict[str, PostgresStore]) -> None:
    publish(stores["ann"], "annteam", "private", text="a draft")
    publish(stores["bob"], "annteam", "private", text="a draft")
    seen = {name: store.get(Ref("annteam")) for name, store in stores.items() if name != "guy"}
    assert {name: (version.origin, version.n) for name, version in seen.items()} == {
        "ann": ("workspace", 1), "bob": ("workspace", 1), "mia": ("team", 1),
    }  # fmt: skip
    assert [str(item.ref) for item in stores["bob"].revisions("annteam")] == ["team:annteam@1", "workspace:annteam@1"]
    stores["ann"].append(Event(kind="yanked", subject=seen["ann"].sha256, author="ann", at_ns=1, detail={"origin": "workspace"}))
    assert stores["ann"].get(Ref("annteam")).origin == "team"
    assert stores["bob"].get(Ref("annteam")).origin == "workspace"
    assert all(check.ok for store in stores.values() for check in store.examine())


def test_equal_content_of_another_tells_nothing(stores: dict[str, PostgresStore]) -> None:
    made = stores["ann"].publish_all(
        [Publication(record=stores["bob"].get(Ref("bobprivate")).record, prepared=prepared(), origin="workspace", author="ann")]
    )[0]
    assert (made.created, made.version.n, made.version.parent) == (True, 1, None)
    assert [event.author for event in stores["ann"].events(made.version.sha256)] == ["ann"]


def test_others_see_a_conflict_only_with_what_they_see(stores: dict[str, PostgresStore]) -> None:
    parent = stores["ann"].get(Ref("annteam")).sha256
    stores["ann"].publish(record("annteam", "2"), prepared(), origin="team", author="ann", visibility="private")
    mine = stores["bob"].publish(record("annteam", "3"), prepared(), origin="team", author="bob", visibility="team", expect_parent=parent)
    assert (mine.n, mine.parent) == (3, parent)
    with pytest.raises(ConflictError, match="annteam@3"):
        stores["ann"].publish(record("annteam", "4"), prepared(), origin="team", author="ann", visibility="team", expect_parent=parent)


def test_a_workspace_of_ones_own_is_private(stores: dict[str, PostgresStore]) -> None:
    with pytest.raises(StoreError, match="refused the write"):
        stores["ann"].publish(record("x"), prepared(), origin="workspace", author="ann", visibility="team")


def test_every_write_leaves_its_role(team: TeamDatabase, stores: dict[str, PostgresStore]) -> None:
    with raw(team.urls["mia"]) as connection:
        rows = connection.execute("SELECT role, action, subject, program FROM audit ORDER BY id").fetchall()
    written = [(role.partition("_")[0], subject, program) for role, action, subject, program in rows if action == "publish"]
    assert written[:3] == [("ann", f"{place}@1", "diagnosis-recipes") for place in
                           ("workspace:annprivate", "team:annteam", "team:annpublic")]  # fmt: skip
    assert sum(action == "keep artefact" for _, action, _, _ in rows) == len(ALL)
    for role in ("ann", "guy"):
        with raw(team.urls[role]) as connection, pytest.raises(errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM audit")
