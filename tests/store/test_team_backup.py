"""A team store comes back from the server's own dump as it was, rights and guards included."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from store.examples import prepared, record
from store.servers import TeamDatabase

from kb.domain.version import Ref
from kb.errors import NotFoundError
from kb.store.postgres.store import open_store


def test_a_dump_brings_back_records_rights_and_guards(team: TeamDatabase, tmp_path: Path) -> None:
    if team.server.tools is None:
        pytest.skip("a server of one's own is not dumped by tests")
    ann = open_store(team.urls["ann"], writable=True)
    shared = ann.publish(record("a"), prepared(), origin="team", author="ann", visibility="team")
    own = ann.publish(record("mine"), prepared(), origin="workspace", author="ann")
    artefact = ann.artefacts.put(b"a capture")
    ann.close()
    dump, tools = tmp_path / "casebook.dump", team.server.tools
    subprocess.run([tools / "pg_dump", "-Fc", "-d", team.admin_url, "-f", dump], check=True)
    with psycopg.connect(team.server.admin_url, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {team.name} WITH (FORCE)".encode())
    subprocess.run([tools / "pg_restore", "--create", "-d", team.server.admin_url, dump], check=True)
    ann = open_store(team.urls["ann"], writable=True)
    bob = open_store(team.urls["bob"], writable=False)
    assert (ann.get(Ref("a")), ann.get(Ref("mine")), ann.artefacts.get(artefact)) == (shared, own, b"a capture")
    assert bob.get(Ref("a")) == shared
    with pytest.raises(NotFoundError):
        bob.get(Ref("mine"))
    assert all(check.ok for check in ann.examine())
    assert ann.publish(record("a", "2"), prepared(), origin="team", author="ann", visibility="team").n == 2
    with psycopg.connect(team.urls["bob"]) as raw, pytest.raises(errors.InsufficientPrivilege):
        raw.execute("UPDATE casebook.version SET owner = 'bob'")
    ann.close()
    bob.close()


def test_a_member_cannot_dump_what_it_may_not_see(team: TeamDatabase, tmp_path: Path) -> None:
    if team.server.tools is None:
        pytest.skip("a server of one's own is not dumped by tests")
    done = subprocess.run(
        [team.server.tools / "pg_dump", "-d", team.urls["bob"], "-f", tmp_path / "bob.dump"], check=False, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "row-level security" in done.stderr or "permission denied" in done.stderr
