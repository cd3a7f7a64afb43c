"""The reading half of a store: nothing but sqlite3 and msgspec, each call one snapshot."""

from __future__ import annotations

import sqlite3
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import starmap
from pathlib import Path
from typing import Any, Final

import msgspec

from kb.domain.case import CaseQuery, RecordKind
from kb.domain.event import Event
from kb.domain.protocols import Carried, Changes, Collection, Listed, Posting, Summary, VectorBlock
from kb.domain.provenance import Provenance, StoreOrigin, rank_of
from kb.domain.version import RESOLUTION, Ref, Revision, Version
from kb.store import statements
from kb.store.asking import Asking
from kb.store.carrying import search_data
from kb.store.collecting import changes_since, collection
from kb.store.examination import Examined, examine
from kb.store.facets import ANY_MODEL_TYPE
from kb.store.faults import store_error
from kb.store.rows import event_of, not_found, revisions_of, summaries_of, version_of
from kb.store.status import DECIDING

LISTINGS: Final = 8
"""Listings kept, one for each set of filters: at 10,000 records making one anew costs more than the rest of a warm query."""


class SqlReader(ABC):
    """Reads of ``kb.domain.protocols.Store``; see there for the contract of each method. An engine gives ``_snapshot``.

    Every method raises StoreError for what the engine refuses, a closed store included.
    """

    def __init__(self) -> None:
        # Every write advances the generation, whoever made it, so a listing of this generation is still true.
        self._listings: dict[tuple[object, ...], tuple[int, tuple[Summary, ...]]] = {}

    def get(self, ref: Ref) -> Version:
        """The version named, by the overlay where no origin is given. Raises NotFoundError."""
        with self._snapshot(f"reading {ref}") as connection:
            row_id = _find(connection, ref)
            if row_id is not None:
                return _versions(connection, [row_id])[row_id]
            known = tuple(_history(connection, ref.slug, None))
            slugs = [slug for (slug,) in connection.execute(statements.SLUGS)]
            aliases = [alias for (alias,) in connection.execute(statements.ALIASES, {"slug": ref.slug})]
        raise not_found(ref, known, slugs, aliases)

    def history(self, slug: str, origin: StoreOrigin | None = None) -> tuple[Version, ...]:
        """All versions of a slug, oldest first. Raises NotFoundError when there is none."""
        with self._snapshot(f"reading the history of {slug}") as connection:
            found = tuple(_history(connection, slug, origin))
            if found:
                return found
            known = tuple(_history(connection, slug, None))
            slugs = [name for (name,) in connection.execute(statements.SLUGS)]
        raise not_found(Ref(slug, None, origin), known, slugs)

    def revisions(self, slug: str, origin: StoreOrigin | None = None) -> tuple[Revision, ...]:
        """All versions of a slug without their contents, oldest first. Raises NotFoundError when there is none."""
        with self._snapshot(f"reading the history of {slug}") as connection:
            rows = connection.execute(statements.REVISIONS, {"slug": slug, "origin": origin}).fetchall()
            if rows:
                deciding = connection.execute(statements.DECIDING_EVENTS_OF_SLUG, {"slug": slug, "kinds": _listed(DECIDING)}).fetchall()
                return revisions_of(slug, rows, deciding)
            known = tuple(_history(connection, slug, None))
            slugs = [name for (name,) in connection.execute(statements.SLUGS)]
        raise not_found(Ref(slug, None, origin), known, slugs)

    def versions(self, ids: Sequence[int]) -> Mapping[int, Version]:
        """Versions by row id; an id the store never gave is left out."""
        with self._snapshot("reading versions") as connection:
            return _versions(connection, ids)

    def summaries(self, *, kinds: tuple[RecordKind, ...] = (), min_provenance: Provenance = "claimed") -> tuple[Summary, ...]:
        """The newest visible version of every record after the overlay, in order of row id."""
        return self._select(kinds=_listed(kinds), tier=rank_of(min_provenance))

    def candidates(self, query: CaseQuery) -> Sequence[Summary]:
        """Visible records that pass the exact filters, in order of row id.

        A record with a case of unknown chip family passes every family filter (the caller marks it), and a
        template for any model every model-type filter. ``include_simulated`` and ``lang`` are the caller's.
        """
        return self._select(**filters_of(query))

    def listing(self, query: CaseQuery) -> Sequence[Listed]:
        """The records of ``candidates`` as plain tuples, in order of row id."""
        with self._snapshot("listing records") as connection:
            return connection.execute(statements.LISTING, filters_of(query)).fetchall()

    def postings(self, tokens: Sequence[str]) -> Mapping[str, Sequence[Posting]]:
        """Per distinct token, the visible records that hold it in order of row id; an unknown token has none."""
        with self._snapshot("reading postings") as connection:
            return {
                token: tuple(starmap(Posting, connection.execute(statements.POSTINGS, {"token": token}))) for token in dict.fromkeys(tokens)
            }

    def postings_among(self, tokens: Sequence[str], ids: Sequence[int]) -> Mapping[str, Sequence[Posting]]:
        """The postings of the visible records of ``ids``, in order of row id."""
        wanted = msgspec.json.encode([int(row_id) for row_id in ids]).decode()
        with self._snapshot("reading postings") as connection:
            return {
                token: tuple(starmap(Posting, connection.execute(statements.POSTINGS_AMONG, {"token": token, "ids": wanted})))
                for token in dict.fromkeys(tokens)
            }

    def collection(self) -> Collection:
        """Entries and postings of all visible records."""
        with self._snapshot("reading everything") as connection:
            return collection(connection)

    def changes_since(self, generation: int) -> Changes:
        """The records touched by versions or events after ``generation``."""
        with self._snapshot("reading changes") as connection:
            return changes_since(connection, generation)

    def vectors_since(self, generation: int, model_id: str) -> VectorBlock:
        """Vectors of ``model_id`` committed after ``generation``, in commit order; ``dim`` is 0 when the model has none."""
        with self._snapshot("reading vectors") as connection:
            now = connection.execute(statements.GENERATION).fetchone()[0]
            dim = connection.execute(statements.DIM, {"model_id": model_id}).fetchone()
            rows = connection.execute(statements.VECTORS, {"model_id": model_id, "generation": generation}).fetchall()
        return VectorBlock(
            generation=now,
            model_id=model_id,
            dim=dim[0] if dim else 0,
            ids=struct.pack(f"<{len(rows)}q", *(row[0] for row in rows)),
            vectors=self._floats([row[2] for row in rows]),
            fields=tuple(row[1] for row in rows),
        )

    def events(self, subject: str | None = None) -> tuple[Event, ...]:
        """Events oldest first, all or of one version's hash."""
        with self._snapshot("reading events") as connection:
            every = subject is None
            rows = connection.execute(statements.EVENTS) if every else connection.execute(statements.EVENTS_OF, {"subject": subject})
            return tuple(map(event_of, rows))

    def generation(self) -> int:
        """Commit counter: grows with every write, never falls."""
        with self._snapshot("reading the generation") as connection:
            return int(connection.execute(statements.GENERATION).fetchone()[0])

    def state(self, key: str) -> str | None:
        """A named value, or None. ``identity`` is set by the store: it differs between stores."""
        with self._snapshot(f"reading {key}") as connection:
            row = connection.execute(statements.STATE, {"key": key}).fetchone()
        return None if row is None else str(row[0])

    def _select(self, *, tier: int, kinds: str | None, families: str | None = None, model_types: str | None = None,
                causes: str | None = None) -> tuple[Summary, ...]:  # fmt: skip
        filters = {"tier": tier, "kinds": kinds, "families": families, "model_types": model_types, "causes": causes}
        key = tuple(filters.values())
        with self._snapshot("listing records") as connection:
            now = connection.execute(statements.GENERATION).fetchone()[0]
            known = self._listings.get(key)
            if known is not None and known[0] == now:
                return known[1]
            rows = connection.execute(statements.SUMMARIES, filters).fetchall()
            deciding = connection.execute(statements.DECIDING_EVENTS, {"kinds": _listed(DECIDING)}).fetchall()
        found = summaries_of(rows, deciding)
        if len(self._listings) >= LISTINGS:
            self._listings.clear()
        self._listings[key] = (now, found)
        return found

    def carry(self, slugs: Sequence[str]) -> tuple[Carried, ...]:
        """Every version of these slugs with what it was published with, in order of row id, to take to another store."""
        with self._snapshot("reading versions to carry") as connection:
            named = {"slugs": msgspec.json.encode(list(slugs)).decode()}
            ids = [row_id for (row_id,) in connection.execute(statements.IDS_OF, named)]
            versions, data = _versions(connection, ids), search_data(connection, ids, self._floats)
        return tuple(Carried(version=versions[row_id], prepared=data[row_id]) for row_id in ids)

    def _floats(self, values: Sequence[bytes]) -> bytes:
        """Vectors as the engine gives them, joined as little-endian float32."""
        return b"".join(values)

    @abstractmethod
    def _snapshot(self, doing: str) -> AbstractContextManager[Asking]:
        """A connection for the questions of one call, all answered from one state of the store."""


class SqliteReader(SqlReader):
    """The reads over one connection to a file; a foreign thread is refused."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        super().__init__()
        self._connection = connection
        self._path = path

    def examine(self) -> tuple[Examined, ...]:
        """Every check of the file against itself; reads all of it."""
        with self._snapshot("examining the store") as connection:
            return tuple(examine(connection))

    @contextmanager
    def _snapshot(self, doing: str) -> Iterator[sqlite3.Connection]:
        try:
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise store_error(error, path=self._path, doing=doing) from error


def filters_of(query: CaseQuery) -> dict[str, Any]:
    """The exact filters of ``query`` as parameters of ``statements.SUMMARIES`` and ``LISTING``."""
    return {
        "kinds": _listed(query.kinds),
        "tier": rank_of(query.min_provenance),
        "families": _listed(query.soc_families, "unknown"),
        "model_types": _listed(query.model_types, ANY_MODEL_TYPE),
        "causes": _listed(query.causes),
    }


def _listed(values: Sequence[str], always: str | None = None) -> str | None:
    """``values`` (and ``always``) as a JSON array to bind; None, no filter, for no values."""
    if not values:
        return None
    return msgspec.json.encode([*values] if always is None else [*values, always]).decode()


def _find(connection: Asking, ref: Ref) -> int | None:
    for origin in (ref.origin,) if ref.origin else RESOLUTION:
        names: dict[str, Any] = {"origin": origin, "slug": ref.slug}
        if ref.alias is not None:
            row = connection.execute(statements.ALIASED, {**names, "alias": ref.alias}).fetchone()
        elif ref.n is None:
            row = connection.execute(statements.NEWEST_VISIBLE, names).fetchone()
        else:
            row = connection.execute(statements.EXACT, {**names, "n": ref.n}).fetchone()
        if row is not None:
            return int(row[0])
    return None


def _history(connection: Asking, slug: str, origin: StoreOrigin | None) -> Iterator[Version]:
    ids = [row_id for (row_id,) in connection.execute(statements.HISTORY, {"slug": slug, "origin": origin})]
    yield from _versions(connection, ids).values()


def _versions(connection: Asking, ids: Sequence[int]) -> dict[int, Version]:
    wanted = msgspec.json.encode([int(row_id) for row_id in ids]).decode()
    return {row[0]: version_of(row) for row in connection.execute(statements.VERSIONS, {"ids": wanted})}
