"""What an administrator does to a team store: roles, schema, logins."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import psycopg
from psycopg import sql

from kb.errors import StoreError, UsageError
from kb.store.postgres.address import Address, parse_address
from kb.store.postgres.faults import store_error
from kb.store.postgres.migrations import MARK, SCHEMA, migrate
from kb.store.postgres.pool import CONNECT_TIMEOUT_S, Connection, missing_extension, require_server
from kb.store.postgres.roles import RoleKind, Roles, roles_of

_LOGIN: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")
_LOCK: Final = 0x6B624453
"""Two administrators at once take turns."""
_ADMIN_NEEDED: Final = "42501"


class Initialised(msgspec.Struct, frozen=True, kw_only=True):
    """What was done. ``passwords`` of the logins made now, which nobody can read again; ``closed`` whether the database was empty of
    other programs' tables and is now open to the roles of the store only."""

    database: str
    applied: tuple[str, ...]
    roles: tuple[str, ...]
    granted: tuple[tuple[str, RoleKind], ...]
    passwords: dict[str, str]
    closed: bool


def initialise(admin_url: str, logins: Mapping[str, RoleKind]) -> Initialised:
    """Make or upgrade the store in the database ``admin_url`` names, and give each login its role; all of it or nothing.

    Safe to repeat. A login that does not exist is made with a password of its own; one that does is only granted the role.
    Raises StoreError: no rights, no pgvector, a foreign schema of that name, a newer store.
    """
    for name in logins:
        if _LOGIN.match(name) is None:
            raise UsageError(f"{name!r} is no role name", allowed="a-z, 0-9 and underscores, up to 63", do="for example ann")
    address = parse_address(admin_url)
    roles = roles_of(address.database)
    try:
        with psycopg.connect(address.url, connect_timeout=CONNECT_TIMEOUT_S, application_name="diagnosis-recipes init") as connection:
            return _initialised(connection, address, roles, logins)
    except psycopg.Error as error:
        raise store_error(error, shown=address.shown, doing="initialising the team store") from error


def _initialised(connection: Connection, address: Address, roles: Roles, logins: Mapping[str, RoleKind]) -> Initialised:
    require_server(connection.info.server_version, address.shown)
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    _own_schema(connection, address)
    vector_schema = _extension(connection, address)
    _make_roles(connection, roles)
    _make_schema(connection, roles)
    connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(roles.owner)))
    applied = migrate(connection, roles, vector_schema, shown=address.shown)
    connection.execute("RESET ROLE")
    closed = _close(connection, address.database, roles)
    passwords = {name: made for name, kind in logins.items() if (made := _login(connection, name, roles.named(kind)))}
    return Initialised(
        database=address.database,
        applied=applied,
        roles=(roles.guest, roles.member, roles.maintainer),
        granted=tuple(logins.items()),
        passwords=passwords,
        closed=closed,
    )


def _own_schema(connection: Connection, address: Address) -> None:
    found = _one(connection, "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = %s", SCHEMA)
    if found not in (None, MARK):
        raise StoreError(
            f"{address.shown} has a schema {SCHEMA} of another program", allowed="a database of its own", do="create one and name it"
        )


def _extension(connection: Connection, address: Address) -> str:
    if not _one(connection, "SELECT count(*) FROM pg_available_extensions WHERE name = %s", "vector"):
        raise missing_extension(address.shown)
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    return str(
        _one(connection, "SELECT nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname = %s", "vector")
    )


def _make_roles(connection: Connection, roles: Roles) -> None:
    for name in (roles.owner, roles.guest, roles.member, roles.maintainer):
        if _one(connection, "SELECT count(*) FROM pg_roles WHERE rolname = %s", name) == 0:
            connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(name)))
    for lower, higher in ((roles.guest, roles.member), (roles.member, roles.maintainer)):
        connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(lower), sql.Identifier(higher)))
    # An administrator who is no superuser acts as the owner and keeps the library through these.
    for name in (roles.owner, roles.maintainer):
        if not _one(connection, "SELECT pg_has_role(current_user, %s, 'MEMBER')", name):
            connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(name)))


def _make_schema(connection: Connection, roles: Roles) -> None:
    schema, owner = sql.Identifier(SCHEMA), sql.Identifier(roles.owner)
    connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {} AUTHORIZATION {}").format(schema, owner))
    connection.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(schema, sql.Literal(MARK)))
    connection.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, sql.Identifier(roles.guest)))


def _close(connection: Connection, database: str, roles: Roles) -> bool:
    """Admit only the store's roles to a database that serves nothing else."""
    connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(sql.Identifier(database), sql.Identifier(roles.guest)))
    others = _one(
        connection,
        "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> %s AND n.nspname NOT LIKE 'pg\\_%%' "
        "AND n.nspname <> 'information_schema'",
        SCHEMA,
    )
    if others:
        return False
    connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(database)))
    return True


def _login(connection: Connection, name: str, group: str) -> str | None:
    """Grant ``group`` to the login, made when absent; the password it was made with."""
    password = None
    if _one(connection, "SELECT count(*) FROM pg_roles WHERE rolname = %s", name) == 0:
        password = secrets.token_urlsafe(18)
        connection.execute(
            sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD {}").format(
                sql.Identifier(name), sql.Literal(password)
            )
        )
    connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(group), sql.Identifier(name)))
    return password


def _one(connection: Connection, text: str, *values: object) -> Any:
    row = connection.execute(text.encode(), values or None).fetchone()
    return row[0] if row else None
