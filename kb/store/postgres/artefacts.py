"""Attached sessions in the database, seen by whom the versions that name them are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from kb.errors import NotFoundError, StoreError
from kb.store.artefacts import MAX_BYTES
from kb.store.postgres.pool import ConnectionPool
from kb.store.postgres.reading import BEGIN_READ
from kb.store.postgres.writing import PostgresWriter


class PostgresArtefacts:
    """``kb.domain.protocols.Artefacts`` beside a team store; equal bytes are kept once."""

    def __init__(self, pool: ConnectionPool, writer: PostgresWriter | None, *, max_bytes: int = MAX_BYTES) -> None:
        self._pool = pool
        self._writer = writer
        self._max_bytes = max_bytes

    def put(self, data: bytes) -> str:
        """Keep ``data``, durable on return; its sha256 in hex. Raises StoreError when too large or not allowed."""
        if len(data) > self._max_bytes:
            raise StoreError(
                f"an artefact of {len(data)} bytes is too large", allowed=f"up to {self._max_bytes} bytes", do="attach a shorter capture"
            )
        if self._writer is None:
            raise StoreError("the store is open for reading only", allowed="a store opened for writing", do="open it for writing")
        self._writer.keep(data)
        return hashlib.sha256(data).hexdigest()

    def get(self, sha256: str) -> bytes:
        """The bytes of ``sha256``. Raises NotFoundError when absent or not for this role, StoreError when they do not fit the name."""
        with self._pool.transaction(BEGIN_READ, "reading an artefact") as connection:
            row = connection.execute("SELECT body FROM artefact WHERE sha256 = %s", (sha256,), binary=True).fetchone()
        if row is None:
            raise NotFoundError(f"no artefact {sha256[:64]!r}", do="import the record again together with its sessions")
        if hashlib.sha256(row[0]).hexdigest() != sha256:
            raise StoreError(
                f"artefact {sha256[:12]} is damaged", allowed="bytes that fit their sha256", do="restore the server's newest backup"
            )
        return bytes(row[0])

    def names(self) -> Iterator[str]:
        """Hashes of everything this role sees, sorted."""
        with self._pool.transaction(BEGIN_READ, "listing artefacts") as connection:
            rows = connection.execute('SELECT sha256 FROM artefact ORDER BY sha256 COLLATE "C"').fetchall()
        yield from (name for (name,) in rows)
