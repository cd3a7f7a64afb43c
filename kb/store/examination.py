"""Everything about a store file that can be checked against something else in it."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from kb.domain.canonical import canonical, parse_record
from kb.errors import ContentError
from kb.store import statements
from kb.store.facets import facets
from kb.store.migrations import guard_names

SHOWN: Final = 5
"""How many places of one defect are named."""


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """One check: what was looked at (``count`` of them) and where it is wrong. ``repairable`` when only derived rows are."""

    name: str
    count: int
    wrong: tuple[str, ...]
    repairable: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong


def examine(connection: sqlite3.Connection) -> Iterator[Examined]:
    """Every check over one snapshot of the file; reads all of it. Raises sqlite3.Error where the file cannot be read."""
    for look in _CHECKS:
        yield look(connection)


def _pages(connection: sqlite3.Connection) -> Examined:
    """SQLite's own check of pages, indexes and constraints."""
    said = [text for (text,) in connection.execute("PRAGMA integrity_check(20)")]
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    return Examined(name="pages", count=pages, wrong=() if said == ["ok"] else tuple(said[:SHOWN]))


def _references(connection: sqlite3.Connection) -> Examined:
    wrong = [f"{table} row {row} names no {parent}" for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check")]
    return Examined(name="references", count=connection.execute("SELECT count(*) FROM event").fetchone()[0], wrong=tuple(wrong[:SHOWN]))


def _guards(connection: sqlite3.Connection) -> Examined:
    present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")}
    missing = sorted(guard_names() - present)
    return Examined(name="guards", count=len(guard_names()), wrong=tuple(f"trigger {name} is gone" for name in missing[:SHOWN]))


def _contents(connection: sqlite3.Connection) -> Examined:
    return examined_contents(connection.execute("SELECT sha256, body FROM content"))


def examined_contents(rows: Iterable[tuple[str, bytes]]) -> Examined:
    """Bytes against hashes, and bytes against the canonical form of what they say; (hash in hex, body) of either engine."""
    wrong, count = [], 0
    for sha256, body in rows:
        count += 1
        if hashlib.sha256(body).hexdigest() != sha256:
            wrong.append(f"content {sha256[:12]} does not fit its hash")
            continue
        try:
            if canonical(parse_record(body, source=sha256[:12])) != body:
                wrong.append(f"content {sha256[:12]} is not in canonical form")
        except ContentError as error:
            wrong.append(error.what)
    return Examined(name="contents", count=count, wrong=tuple(wrong[:SHOWN]))


def _numbers(connection: sqlite3.Connection) -> Examined:
    """Numbers without gaps, each version on top of the one before, and one event of publication each."""
    counts = connection.execute("SELECT origin, slug, count(*), max(n) FROM version GROUP BY origin, slug").fetchall()
    wrong = [f"{origin}:{slug} has {count} versions up to @{last}" for origin, slug, count, last in counts if count != last]
    chained = connection.execute(
        """SELECT v.origin, v.slug, v.n FROM version v
        LEFT JOIN version p ON p.origin = v.origin AND p.slug = v.slug AND p.n = v.n - 1 WHERE v.parent IS NOT p.sha256"""
    )
    wrong += [f"{origin}:{slug}@{n} does not name the version before it" for origin, slug, n in chained]
    silent = connection.execute(
        """SELECT v.origin, v.slug, v.n FROM version v WHERE NOT EXISTS (
        SELECT 1 FROM event e WHERE e.subject = v.sha256 AND e.kind = 'published'
          AND json_extract(e.detail, '$.origin') = v.origin AND json_extract(e.detail, '$.n') = v.n)"""
    )
    wrong += [f"{origin}:{slug}@{n} has no event of publication" for origin, slug, n in silent]
    return Examined(name="versions", count=sum(count for _, _, count, _ in counts), wrong=tuple(wrong[:SHOWN]))


def _heads(connection: sqlite3.Connection) -> Examined:
    """The head of each slug against its history and events."""
    found = dict(connection.execute("SELECT slug, version_id FROM head").fetchall())
    expected = dict(wanted_heads(connection))
    wrong = sorted(slug for slug in found.keys() | expected.keys() if found.get(slug) != expected.get(slug))
    return Examined(
        name="heads", count=len(expected), wrong=tuple(f"the head of {slug} is wrong" for slug in wrong[:SHOWN]), repairable=True
    )


def wanted_heads(connection: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    """(slug, row id of its newest visible version after the overlay) for every slug that has one."""
    for (slug,) in connection.execute(statements.SLUGS).fetchall():
        row = connection.execute(statements.NEWEST_OF_ALL, {"slug": slug}).fetchone()
        if row is not None:
            yield slug, row[0]


def _words(connection: sqlite3.Connection) -> Examined:
    """Postings against the number of tokens each version was published with."""
    rows = connection.execute(
        """SELECT v.origin, v.slug, v.n FROM version v
        LEFT JOIN (SELECT version_id, sum(count) AS total, min(length) AS least, max(length) AS most FROM posting GROUP BY version_id) p
          ON p.version_id = v.id
        WHERE coalesce(p.total, 0) <> v.length OR coalesce(p.least, v.length) <> v.length OR coalesce(p.most, v.length) <> v.length"""
    )
    wrong = tuple(f"the words of {origin}:{slug}@{n} are incomplete" for origin, slug, n in rows.fetchmany(SHOWN))
    return Examined(name="words", count=connection.execute("SELECT count(*) FROM posting").fetchone()[0], wrong=wrong)


def _filters(connection: sqlite3.Connection) -> Examined:
    """Filter values of each version against its content."""
    kept: dict[int, list[tuple[str, str]]] = {}
    for version_id, name, value in connection.execute("SELECT version_id, name, value FROM facet ORDER BY version_id, name, value"):
        kept.setdefault(version_id, []).append((name, value))
    wrong = []
    for row_id, slug, n, body in connection.execute(
        "SELECT v.id, v.slug, v.n, c.body FROM version v JOIN content c ON c.sha256 = v.sha256"
    ):
        try:
            expected = list(facets(parse_record(body, source=slug)))
        except ContentError:
            continue  # named by the check of contents
        if kept.get(row_id, []) != expected:
            wrong.append(f"the filters of {slug}@{n} do not fit its content")
    return Examined(name="filters", count=sum(map(len, kept.values())), wrong=tuple(wrong[:SHOWN]))


def _vectors(connection: sqlite3.Connection) -> Examined:
    """One width a model, whole blobs, and no vector from the future."""
    count = connection.execute("SELECT count(*) FROM vector").fetchone()[0]
    wrong = [
        f"vectors of {model} have {widths} widths"
        for model, widths in connection.execute("SELECT model_id, count(DISTINCT dim) FROM vector GROUP BY model_id")
        if widths != 1
    ]
    wrong += [f"vector {row} is cut" for (row,) in connection.execute("SELECT id FROM vector WHERE length(values_f32) <> 4 * dim")]
    return Examined(name="vectors", count=count, wrong=tuple(wrong[:SHOWN]))


def _generation(connection: sqlite3.Connection) -> Examined:
    now = connection.execute(statements.GENERATION).fetchone()[0]
    newest = connection.execute(
        """SELECT max((SELECT coalesce(max(generation), 0) FROM version), (SELECT coalesce(max(generation), 0) FROM vector),
        (SELECT coalesce(max(generation), 0) FROM event))"""
    ).fetchone()[0]
    wrong = (f"rows of generation {newest}, counter at {now}",) if newest > now else ()
    return Examined(name="generation", count=now, wrong=wrong)


_CHECKS: Final[tuple[Callable[[sqlite3.Connection], Examined], ...]] = (
    _pages, _references, _guards, _contents, _numbers, _heads, _words, _filters, _vectors, _generation,
)  # fmt: skip
