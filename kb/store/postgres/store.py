"""The store of a team: a PostgreSQL database named by a URL."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kb.domain.case import CaseQuery
from kb.domain.event import Event
from kb.domain.protocols import Prepared, Publication, Published
from kb.domain.provenance import StoreOrigin
from kb.domain.record import Record
from kb.domain.version import Version, Visibility
from kb.errors import StoreError
from kb.store.postgres.address import parse_address
from kb.store.postgres.artefacts import PostgresArtefacts
from kb.store.postgres.nearest import Considered, consider, nearest
from kb.store.postgres.pool import Connect, ConnectionPool, connect
from kb.store.postgres.reading import BEGIN_READ, PostgresReader
from kb.store.postgres.writing import BEGIN_WRITE, PostgresWriter, vector_of
from kb.store.reading import filters_of

if TYPE_CHECKING:
    from kb.domain.protocols import Vectors


class PostgresStore(PostgresReader):
    """``kb.domain.protocols.Store`` on a database; without a writer it only reads. Close it after use."""

    def __init__(self, pool: ConnectionPool, writer: PostgresWriter | None = None) -> None:
        super().__init__(pool)
        self._writer = writer
        self._shown = pool.address.shown

    @property
    def artefacts(self) -> PostgresArtefacts:
        """The attached sessions kept in the same database."""
        return PostgresArtefacts(self._pool, self._writer)

    def publish(self, record: Record, prepared: Prepared, *, origin: StoreOrigin, author: str, visibility: Visibility = "private",
                expect_parent: str | None = None) -> Version:  # fmt: skip
        """Append the next version of ``record.slug`` in ``origin``, or return the equal newest one.

        Raises ConflictError when ``expect_parent`` is not the hash of the newest version this role sees, StoreError when nothing
        was written.
        """
        item = Publication(
            record=record, prepared=prepared, origin=origin, author=author, visibility=visibility, expect_parent=expect_parent
        )
        return self.publish_all([item])[0].version

    def publish_all(self, items: Sequence[Publication]) -> tuple[Published, ...]:
        """Publish several versions in one transaction, all or none; see ``publish``."""
        return self._writing().publish_all(items)

    def append(self, event: Event) -> Event:
        """Add an event; returns it with its id. Raises NotFoundError for a subject no version this role sees has."""
        return self._writing().append(event)

    def set_state(self, key: str, value: str) -> None:
        """Set a named value; a maintainer's right."""
        self._writing().set_state(key, value)

    def rebuild_heads(self) -> None:
        """Derive the heads, the one table that is a cache, anew; a maintainer's right."""
        self._writing().rebuild_heads()

    def nearest(self, vector: Vectors, model_id: str, query: CaseQuery, k: int) -> tuple[tuple[int, float], ...]:
        """The ``k`` visible records that pass the exact filters of ``query`` and whose best vector of ``model_id`` has the largest
        inner product with ``vector`` (shape (dim,), float32): (row id, product), best first, ties by row id."""
        asked = vector_of(vector.astype("<f4").tobytes())
        with self._pool.transaction(BEGIN_READ, "searching vectors") as connection:
            return nearest(connection, asked, model_id, filters_of(query), k)

    def consider_indexes(self, filters: Sequence[Mapping[str, Any]]) -> tuple[Considered, ...]:
        """Keep an approximate index of each large model only where it finds what reading everything finds; an administrator's right."""
        with self._pool.transaction(BEGIN_WRITE.decode(), "building indexes") as connection:
            connection.execute("SET LOCAL statement_timeout = 0")
            done = consider(connection, filters)
            connection.execute("COMMIT")
        return done

    def close(self) -> None:
        """Release connections; further calls raise StoreError."""
        self._pool.close()

    def _writing(self) -> PostgresWriter:
        if self._writer is None:
            raise StoreError(
                f"{self._shown} is open for reading only", allowed="reading, or a store opened for writing", do="open it for writing"
            )
        return self._writer


def open_store(
    url: str, *, writable: bool, clock: Callable[[], int] = time.time_ns, connections: int = 1, connect: Connect = connect
) -> PostgresStore:
    """Open the team store at ``url`` as the role it names; ``connections`` at most, opened when needed, the first one now.

    Raises UsageError for what is no URL and StoreError for a server that cannot be reached or refuses this role, a database
    without store or pgvector, and an older or newer schema.
    """
    pool = ConnectionPool(parse_address(url), size=connections, connect=connect)
    with pool.transaction(BEGIN_READ, "opening the store", wait_s=0.0):
        pass
    return PostgresStore(pool, PostgresWriter(pool, clock=clock) if writable else None)
