"""The reading half of the team store: the shared questions, spoken in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, islice
from typing import Any, Final

from kb.store.asking import Asking, Rows
from kb.store.examination import Examined
from kb.store.postgres.examination import examine
from kb.store.postgres.pool import Connection, ConnectionPool
from kb.store.postgres.statements import NEWEST_FIRST, SPOKEN
from kb.store.reading import SqlReader

BEGIN_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_PAGE: Final = 256
"""Rows fetched at a time where few are wanted."""


class _Spoken:
    """``Asking`` over a connection: the text of SQLite goes in, that of PostgreSQL goes out."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute(self, text: str, parameters: Mapping[str, Any] | None = None, /) -> Rows:
        if text in NEWEST_FIRST:
            return _Paged(self._connection, SPOKEN[text])
        return self._connection.execute(SPOKEN[text].encode(), parameters, binary=True)


class _Paged:
    """``Rows`` of which the reader wants the first few: fetched a page at a time within the snapshot."""

    def __init__(self, connection: Connection, text: str) -> None:
        self._rows = self._pages(connection, text)

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchmany(self, size: int, /) -> list[Any]:
        return list(islice(self._rows, size))

    def fetchall(self) -> list[Any]:
        return list(self._rows)

    @staticmethod
    def _pages(connection: Connection, text: str) -> Iterator[Any]:
        for offset in count(step=_PAGE):
            page = connection.execute(f"{text} LIMIT %s OFFSET %s".encode(), (_PAGE, offset), binary=True).fetchall()
            yield from page
            if len(page) < _PAGE:
                return


class PostgresReader(SqlReader):
    """Reads of ``kb.domain.protocols.Store`` over a pool; what the session's role may not see does not exist for it."""

    def __init__(self, pool: ConnectionPool) -> None:
        super().__init__()
        self._pool = pool

    def examine(self) -> tuple[Examined, ...]:
        """Every check of what this role sees against itself."""
        with self._pool.transaction(BEGIN_READ, "examining the store") as connection:
            return tuple(examine(connection))

    def _floats(self, values: Sequence[bytes]) -> bytes:
        import numpy as np

        if not values:
            return b""
        # pgvector's binary form: two 16-bit numbers, then the floats, most significant byte first.
        return np.frombuffer(b"".join(values), dtype=">f4").reshape(len(values), -1)[:, 1:].astype("<f4").tobytes()

    @contextmanager
    def _snapshot(self, doing: str) -> Iterator[Asking]:
        with self._pool.transaction(BEGIN_READ, doing) as connection:
            yield _Spoken(connection)
