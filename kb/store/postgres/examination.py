"""Everything about a team store that can be checked against something else in it, as far as the role sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from kb.store.examination import SHOWN, Examined, examined_contents
from kb.store.postgres.migrations import SCHEMA, guard_names
from kb.store.postgres.pool import Connection


def examine(connection: Connection) -> Iterator[Examined]:
    """Every check over one snapshot; reads all of it."""
    for look in _CHECKS:
        yield look(connection)


def _guards(connection: Connection) -> Examined:
    rows = connection.execute(
        "SELECT tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = %s::regnamespace AND tgenabled = 'O'",
        (SCHEMA,),
    )
    missing = sorted(guard_names() - {name for (name,) in rows})
    open_tables = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND NOT relrowsecurity AND relname = ANY (%s)",
        (SCHEMA, ["version", "heads", "facet", "posting", "embedding", "event", "attachment", "content", "artefact", "deposit"]),
    )
    wrong = [f"trigger {name} is gone" for name in missing] + [f"row-level security of {name} is off" for (name,) in open_tables]
    return Examined(name="guards", count=len(guard_names()), wrong=tuple(wrong[:SHOWN]))


def _contents(connection: Connection) -> Examined:
    with connection.cursor(name="contents", binary=True) as cursor:
        cursor.execute("SELECT sha256, body FROM content")
        return examined_contents(cursor)


def _versions(connection: Connection) -> Examined:
    """Numbers once each, and one event of publication each. Numbers others keep to themselves may be missing."""
    twice = connection.execute("SELECT origin, slug, n FROM version GROUP BY origin, slug, line, n HAVING count(*) > 1").fetchall()
    silent = connection.execute(
        """SELECT v.origin, v.slug, v.n FROM version v WHERE NOT EXISTS (
        SELECT FROM event e WHERE e.subject = v.sha256 AND e.kind = 'published'
          AND e.detail ->> 'origin' = v.origin AND e.detail ->> 'n' = v.n::text)"""
    ).fetchall()
    wrong = [f"{origin}:{slug}@{n} stands twice" for origin, slug, n in twice]
    wrong += [f"{origin}:{slug}@{n} has no event of publication" for origin, slug, n in silent]
    return Examined(name="versions", count=_count(connection, "SELECT count(*) FROM version"), wrong=tuple(wrong[:SHOWN]))


def _heads(connection: Connection) -> Examined:
    """The head of each slug against the history and the events this role sees."""
    wrong = connection.execute(
        """SELECT coalesce(h.slug, w.slug) FROM head h FULL JOIN (
          SELECT DISTINCT ON (v.slug) v.slug, v.id FROM version v
          WHERE v.audience IN ('public', shared(), mine()) AND coalesce((
            SELECT e.kind FROM event e
            WHERE e.subject = v.sha256 AND e.kind IN ('yanked', 'restored') AND coalesce(e.detail ->> 'origin', v.origin) = v.origin
            ORDER BY e.id DESC LIMIT 1), 'restored') <> 'yanked'
          ORDER BY v.slug, CASE v.origin WHEN 'workspace' THEN 0 WHEN 'team' THEN 1 ELSE 2 END, v.n DESC) w ON w.slug = h.slug
        WHERE w.id IS DISTINCT FROM h.version_id ORDER BY 1"""
    ).fetchall()
    count = _count(connection, "SELECT count(*) FROM head")
    return Examined(name="heads", count=count, wrong=tuple(f"the head of {slug} is wrong" for (slug,) in wrong[:SHOWN]), repairable=True)


def _words(connection: Connection) -> Examined:
    """Postings against the number of tokens each version was published with."""
    rows = connection.execute(
        """SELECT v.origin, v.slug, v.n FROM version v
        LEFT JOIN (SELECT version_id, sum(count) AS total, min(length) AS least, max(length) AS most FROM posting GROUP BY version_id) p
          ON p.version_id = v.id
        WHERE coalesce(p.total, 0) <> v.length OR coalesce(p.least, v.length) <> v.length OR coalesce(p.most, v.length) <> v.length"""
    ).fetchmany(SHOWN)
    wrong = tuple(f"the words of {origin}:{slug}@{n} are incomplete" for origin, slug, n in rows)
    return Examined(name="words", count=_count(connection, "SELECT count(*) FROM posting"), wrong=wrong)


def _audiences(connection: Connection) -> Examined:
    """What belongs to a version is seen by whom the version is."""
    wrong: list[str] = []
    for table in ("facet", "posting", "embedding", "attachment"):
        rows = connection.execute(
            f"SELECT count(*) FROM {table} t JOIN version v ON v.id = t.version_id WHERE v.audience <> t.audience".encode()  # noqa: S608  # names above
        ).fetchone()
        wrong += [f"{rows[0]} rows of {table} have another audience than their version"] if rows and rows[0] else []
    return Examined(name="audiences", count=4, wrong=tuple(wrong))


def _generation(connection: Connection) -> Examined:
    now = _count(connection, "SELECT generation FROM counter")
    newest = _count(
        connection,
        """SELECT greatest((SELECT max(generation) FROM version), (SELECT max(generation) FROM embedding),
        (SELECT max(generation) FROM event), 0)""",
    )
    wrong = (f"rows of generation {newest}, counter at {now}",) if newest > now else ()
    return Examined(name="generation", count=now, wrong=wrong)


def _count(connection: Connection, text: str) -> int:
    row = connection.execute(text.encode()).fetchone()
    return int(row[0]) if row else 0


_CHECKS: Final[tuple[Callable[[Connection], Examined], ...]] = (
    _guards, _contents, _versions, _heads, _words, _audiences, _generation,
)  # fmt: skip
