"""The schema as an ordered list of named SQL files; a file never changes once released. Only an administrator applies them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kb.errors import StoreError

if TYPE_CHECKING:
    import psycopg

    from kb.store.postgres.roles import Roles

SCHEMA: Final = "casebook"
MARK: Final = "diagnosis-recipes team store"
"""Comment on the schema: says that it is ours."""
MIGRATIONS: Final[tuple[str, ...]] = ("m001_initial",)
_FOLDER: Final = Path(__file__).parent / "schema"
GUARDED: Final = ("content", "version", "facet", "posting", "embedding", "event", "attachment", "artefact", "deposit", "audit")
"""Append-only tables: each has a trigger against changes and one against emptying."""


def guard_names() -> frozenset[str]:
    """Names of the triggers a sound store has."""
    return frozenset(f"{table}_no_{verb}" for table in GUARDED for verb in ("change", "truncate"))


def migrate(connection: psycopg.Connection[Any], roles: Roles, vector_schema: str, *, shown: str,
            migrations: Sequence[str] = MIGRATIONS, folder: Path = _FOLDER) -> tuple[str, ...]:  # fmt: skip
    """Apply what is missing, within the caller's transaction and as the owner of the schema; the names applied.

    Raises StoreError for a newer schema and for a step that lost a guard.
    """
    from psycopg import sql

    path = sql.SQL(", ").join([sql.Identifier(SCHEMA), sql.Identifier(vector_schema), sql.Identifier("pg_temp")])
    connection.execute(sql.SQL("SET LOCAL search_path = {}").format(path))
    connection.execute(
        "CREATE TABLE IF NOT EXISTS migration (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, "
        "applied_ns bigint NOT NULL)"
    )
    done = tuple(name for (name,) in connection.execute("SELECT name FROM migration ORDER BY id"))
    refuse_newer(done, shown, migrations)
    for name in migrations[len(done) :]:
        text = (folder / f"{name}.sql").read_text(encoding="utf-8")
        connection.execute(sql.SQL(text).format(path=path, **_named(roles)))
        connection.execute("INSERT INTO migration (name, applied_ns) VALUES (%s, %s)", (name, time.time_ns()))
        _require_guards(connection, name)
    return tuple(migrations[len(done) :])


def refuse_newer(done: Sequence[str], shown: str, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Raise StoreError when ``done`` holds steps this program does not know."""
    if list(done) != list(migrations[: len(done)]):
        raise StoreError(
            f"{shown} was written by a newer version of this program (schema {done[-1]})",
            allowed=f"schemas up to {migrations[-1]}",
            do="upgrade diagnosis-recipes",
        )


def require_current(done: Sequence[str], shown: str, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Raise StoreError for a newer schema and for an older one, which only an administrator may upgrade."""
    refuse_newer(done, shown, migrations)
    if len(done) < len(migrations):
        raise StoreError(
            f"{shown} has the older schema {done[-1] if done else 'none'}",
            allowed=f"schema {migrations[-1]}",
            do="have an administrator run `kb store init --admin-url URL`: it upgrades the store and keeps what is in it",
        )


def _named(roles: Roles) -> dict[str, Any]:
    from psycopg import sql

    plain = {"guest": roles.guest, "member": roles.member, "maintainer": roles.maintainer}
    literals = {f"{key}_name": sql.Literal(name) for key, name in plain.items()}
    return {**{key: sql.Identifier(name) for key, name in plain.items()}, **literals}


def _require_guards(connection: psycopg.Connection[Any], name: str) -> None:
    rows = connection.execute(
        "SELECT tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = %s::regnamespace AND tgenabled = 'O'",
        (SCHEMA,),
    )
    missing = sorted(guard_names() - {found for (found,) in rows})
    if missing:
        raise StoreError(
            f"the upgrade {name} would have removed guards: {', '.join(missing)}",
            allowed="a schema whose published rows cannot change",
            do="report this as a defect; the store was left as it was",
        )
