"""What a search cache is made from, read in bulk: entries, postings, and what changed since."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

import msgspec

from kb.domain.protocols import Changes, Collection, Entry
from kb.store import statements
from kb.store.asking import Asking
from kb.store.rows import by_subject, status_in
from kb.store.status import DECIDING

FETCHED: Final = 200_000
"""Postings read at a time: the arrays grow, the tuples do not."""


def collection(connection: Asking) -> Collection:
    """``Store.collection`` within the caller's snapshot."""
    tokens = connection.execute(statements.ALL_TOKENS).fetchall()
    cursor = connection.execute(statements.ALL_POSTINGS)
    ids, counts = array("q"), array("I")
    while rows := cursor.fetchmany(FETCHED):
        own, often = zip(*rows, strict=True)
        ids.extend(own)
        counts.extend(often)
    return Collection(
        generation=connection.execute(statements.GENERATION).fetchone()[0],
        entries=tuple(_entries(connection, connection.execute(statements.ENTRIES), connection.execute(statements.FACETS))),
        tokens=tuple(token for token, _ in tokens),
        ends=tuple(accumulate(held for _, held in tokens)),
        ids=_little(ids),
        counts=_little(counts),
    )


def changes_since(connection: Asking, generation: int) -> Changes:
    """``Store.changes_since`` within the caller's snapshot. Rows are written in order of generation, so the newest tell all."""
    slugs = sorted(
        {
            slug
            for statement in (statements.VERSIONS_NEWEST_FIRST, statements.EVENTS_NEWEST_FIRST)
            for slug in _newer(connection.execute(statement), generation)
        }
    )
    named = {"slugs": msgspec.json.encode(slugs).decode()}
    gone = tuple(row_id for (row_id,) in connection.execute(statements.IDS_OF, named))
    facets = connection.execute(statements.FACETS_OF, {"ids": msgspec.json.encode(gone).decode()})
    return Changes(
        generation=connection.execute(statements.GENERATION).fetchone()[0],
        gone=gone,
        entries=tuple(_entries(connection, connection.execute(statements.ENTRIES_OF, named), facets)),
        heads=connection.execute(statements.HEADS).fetchone(),
    )


def _newer(rows: Iterable[tuple[str, int]], generation: int) -> Iterator[str]:
    for slug, at in rows:
        if at <= generation:
            return
        yield slug


def _entries(
    connection: Asking,
    rows: Iterable[tuple[int, str, str, str, float, int, int, str, str]],
    facets: Iterable[tuple[int, str, str]],
) -> Iterator[Entry]:
    valued: dict[int, list[tuple[str, str]]] = {}
    for row_id, name, value in facets:
        valued.setdefault(row_id, []).append((name, value))
    kinds = {"kinds": msgspec.json.encode(DECIDING).decode()}
    said = by_subject(connection.execute(statements.DECIDING_EVENTS, kinds))
    for row_id, slug, kind, provenance, share, created_ns, length, sha256, origin in rows:
        status = status_in(said, sha256, origin)  # type: ignore[arg-type]  # the table's CHECK admits only StoreOrigin
        yield Entry(row_id, slug, kind, provenance, share, created_ns, length, status, tuple(valued.get(row_id, ())))  # type: ignore[arg-type]  # written from typed records


def _little(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()
