"""The writing half of the team store: each call one transaction of the database's own functions, repeated safely when the line breaks."""

from __future__ import annotations

import struct
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
import psycopg
from pgvector import Vector

from kb.domain.event import Event
from kb.domain.protocols import Publication, Published
from kb.domain.version import Version
from kb.store.drafts import Draft, drafted, names_of, parent_conflict, unknown_subject, width_conflict
from kb.store.facets import facets
from kb.store.postgres.faults import is_passing, store_error
from kb.store.postgres.pool import RECONNECT_S, Connection, ConnectionPool

Done = TypeVar("Done")
BEGIN_WRITE: Final = b"BEGIN"
_PUBLISH: Final = b"""
SELECT * FROM publish(%(request)s::uuid, %(body)s, %(origin)s, %(visibility)s, %(author)s, %(created_ns)s, %(expect_parent)s,
  %(language_share)s, %(tokens)s::text[], %(counts)s::integer[], %(facet_names)s::text[], %(facet_values)s::text[], %(model_id)s, %(dim)s,
  %(fields)s::text[], %(vectors)b::vector[], %(remarks)s::jsonb)
"""
_APPEND: Final = b"SELECT append(%(request)s::uuid, %(kind)s, %(subject)s, %(author)s, %(at_ns)s, %(detail)s::jsonb)"
_PAUSE_S: Final = 0.05


class PostgresWriter:
    """Writes of ``kb.domain.protocols.Store``. ``clock`` gives UTC in ns; it labels rows and never decides their order.

    Every write carries a request number. A line that breaks leaves open whether the server committed; the same request
    sent again then finds what it made, so that nothing is published twice and nothing acknowledged is missing.
    """

    def __init__(self, pool: ConnectionPool, *, clock: Callable[[], int]) -> None:
        self._pool = pool
        self._clock = clock

    def publish_all(self, items: Sequence[Publication]) -> tuple[Published, ...]:
        """Append versions, or find them; all or none."""
        drafts = [drafted(item) for item in items]
        asked = [_asked(draft, self._clock() if draft.item.created_ns is None else draft.item.created_ns) for draft in drafts]

        def work(connection: Connection) -> tuple[Published, ...]:
            return tuple(_published(connection, draft, values) for draft, values in zip(drafts, asked, strict=True))

        return self._written(f"publishing {names_of(list(items))}", work)

    def append(self, event: Event) -> Event:
        """Add an event about a version this role sees. Raises NotFoundError for any other hash."""
        values = {"request": uuid.uuid4(), "kind": event.kind, "subject": event.subject, "author": event.author, "at_ns": event.at_ns,
                  "detail": _json(event.detail)}  # fmt: skip

        def work(connection: Connection) -> Event:
            try:
                row = connection.execute(_APPEND, values).fetchone()
            except psycopg.Error as error:
                if error.sqlstate == "KB005":
                    raise unknown_subject(event.subject) from error
                raise
            return msgspec.structs.replace(event, id=row[0] if row else 0)

        return self._written(f"recording {event.kind}", work)

    def set_state(self, key: str, value: str) -> None:
        """Set a named value."""
        self._written(f"setting {key}", lambda connection: connection.execute("SELECT set_state(%s, %s)", (key, value)))

    def rebuild_heads(self) -> None:
        """Derive the heads of every slug anew from versions and events."""
        self._written("rebuilding the heads", lambda connection: connection.execute("SELECT rebuild_heads()"))

    def keep(self, data: bytes) -> None:
        """Keep an artefact."""
        self._written("keeping an artefact", lambda connection: connection.execute("SELECT keep_artefact(%s)", (data,)))

    def _written(self, doing: str, work: Callable[[Connection], Done]) -> Done:
        end = time.monotonic() + RECONNECT_S
        while True:
            with self._pool.transaction(BEGIN_WRITE.decode(), doing) as connection:
                try:
                    done = work(connection)
                    connection.execute("COMMIT")
                    return done
                except psycopg.Error as error:
                    if not is_passing(error) or time.monotonic() > end:
                        raise store_error(error, shown=self._pool.address.shown, doing=doing) from error
            time.sleep(_PAUSE_S)


def _asked(draft: Draft, created_ns: int) -> dict[str, Any]:
    item, prepared = draft.item, draft.item.prepared
    tokens, values = sorted(prepared.tokens.items()), facets(item.record)
    return {
        "request": uuid.uuid4(),
        "body": draft.body,
        "origin": item.origin,
        "visibility": item.visibility,
        "author": item.author,
        "created_ns": created_ns,
        "expect_parent": item.expect_parent,
        "language_share": prepared.language_share,
        "tokens": [token for token, _ in tokens],
        "counts": [count for _, count in tokens],
        "facet_names": [name for name, _ in values],
        "facet_values": [value for _, value in values],
        "model_id": prepared.model_id,
        "dim": prepared.dim,
        "fields": list(draft.vectors),
        "vectors": [vector_of(values) for values in draft.vectors.values()],
        "remarks": _json([{"kind": e.kind, "author": e.author, "at_ns": e.at_ns, "detail": e.detail} for e in item.remarks]),
    }


def _published(connection: Connection, draft: Draft, values: Mapping[str, Any]) -> Published:
    slug = draft.item.record.slug
    try:
        (row,) = connection.execute(_PUBLISH, values).fetchall()
    except psycopg.Error as error:
        detail = (error.diag.message_detail or "").split()
        if error.sqlstate == "KB001":
            newest = (int(detail[0]), detail[1]) if detail else None
            raise parent_conflict(slug, str(draft.item.expect_parent), newest) from error
        if error.sqlstate == "KB002":
            raise width_conflict(draft.item.prepared.model_id, int(detail[0]), draft.item.prepared.dim) from error
        raise
    _, n, sha256, author, created_ns, visibility, parent, generation, created = row
    version = Version(
        record=draft.item.record,
        origin=draft.item.origin,
        n=n,
        sha256=sha256,
        author=author,
        created_ns=created_ns,
        visibility=visibility,
        parent=parent,
        generation=generation,
    )
    return Published(version=version, created=created)


def vector_of(values: bytes) -> Vector:
    """pgvector's value of little-endian float32."""
    return Vector(list(struct.unpack(f"<{len(values) // 4}f", values)))


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
