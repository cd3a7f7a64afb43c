"""Connections of one process to a team store: opened when needed, kept, replaced when lost, never more than a few."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from pgvector.psycopg.vector import register_vector_info
from psycopg.types import TypeInfo

from kb.errors import StoreError
from kb.store.postgres.address import Address
from kb.store.postgres.faults import is_passing, store_error
from kb.store.postgres.migrations import SCHEMA, require_current

CONNECT_TIMEOUT_S: Final = 10
STATEMENT_TIMEOUT_S: Final = 120
LOCK_TIMEOUT_S: Final = 30
"""How long a writer waits for the others: publishing takes milliseconds."""
RECONNECT_S: Final = 30.0
"""How long a store that was open waits for its server to come back."""
BORROW_TIMEOUT_S: Final = 30.0
_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
OLDEST_SERVER: Final = 150_000

Connection = psycopg.Connection[Any]
Connect = Callable[[Address], Connection]

_SETTINGS: Final = """
SELECT current_setting('server_version_num')::int,
  set_config('statement_timeout', %(statement)s, false), set_config('lock_timeout', %(lock)s, false),
  set_config('idle_in_transaction_session_timeout', %(statement)s, false),
  (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'),
  (SELECT ARRAY[t.oid::int, t.typarray::int] FROM pg_extension e JOIN pg_type t ON t.typnamespace = e.extnamespace AND t.typname = 'vector'
   WHERE e.extname = 'vector'),
  (SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = %(schema)s)
"""


def connect(address: Address) -> Connection:
    """A new connection in autocommit mode with timeouts and the store's search path. Raises psycopg.Error and StoreError."""
    connection = psycopg.connect(
        address.url,
        autocommit=True,
        connect_timeout=CONNECT_TIMEOUT_S,
        application_name="diagnosis-recipes",
        keepalives_idle=30,
        tcp_user_timeout=1000 * LOCK_TIMEOUT_S,
    )
    try:
        _settle(connection, address.shown)
    except BaseException:
        connection.close()
        raise
    return connection


def _settle(connection: Connection, shown: str) -> None:
    values = {"statement": f"{STATEMENT_TIMEOUT_S}s", "lock": f"{LOCK_TIMEOUT_S}s", "schema": SCHEMA}
    row = connection.execute(_SETTINGS, values).fetchone()
    server, _, _, _, vector, numbers, usable = row or (0, None, None, None, None, (0, 0), None)
    require_server(server, shown)
    if usable is None:
        raise StoreError(f"{shown} holds no team store", allowed="a database initialised for this program",
                         do="have an administrator run `kb store init --admin-url URL`")  # fmt: skip
    if not usable:
        raise StoreError(f"this role may not use the team store at {shown}", allowed="a role that was granted guest, member or maintainer",
                         do="have an administrator run `kb store init --admin-url URL --member NAME`")  # fmt: skip
    if vector is None:
        raise missing_extension(shown)
    oid, array_oid = numbers
    register_vector_info(connection, TypeInfo("vector", oid, array_oid))
    connection.execute("SELECT set_config('search_path', %s, false)", (f"{SCHEMA}, {vector}, pg_temp",))
    require_current([name for (name,) in connection.execute("SELECT name FROM migration ORDER BY id")], shown)


def require_server(server: int, shown: str) -> None:
    """Raise StoreError for a server that is too old."""
    if server < OLDEST_SERVER:
        raise StoreError(f"{shown} runs PostgreSQL {server // 10_000}", allowed="PostgreSQL 15 or newer", do="upgrade the server")


def missing_extension(shown: str) -> StoreError:
    """The server has no pgvector in this database."""
    return StoreError(
        f"{shown} has no extension vector (pgvector)",
        allowed="a server with pgvector installed",
        do="install pgvector on the server, then have an administrator run `kb store init --admin-url URL`",
    )


class ConnectionPool:
    """Up to ``size`` connections for any number of threads; one thread holds one at a time."""

    def __init__(self, address: Address, *, size: int = 1, connect: Connect = connect) -> None:
        self.address = address
        self._connect = connect
        self._places = threading.BoundedSemaphore(size)
        self._guard = threading.Lock()
        self._idle: list[Connection] = []
        self._closed = False

    @contextmanager
    def transaction(self, begin: str, doing: str, *, wait_s: float = RECONNECT_S) -> Iterator[Connection]:
        """A connection on which ``begin`` was said, rolled back at the end unless the caller committed.

        A connection found dead is replaced, for up to ``wait_s`` while the server comes back. Raises StoreError.
        """
        if not self._places.acquire(timeout=BORROW_TIMEOUT_S):
            raise StoreError(f"{doing}: no connection became free", allowed=f"an answer within {BORROW_TIMEOUT_S:.0f} s",
                             do="try again when fewer requests run")  # fmt: skip
        try:
            connection = self._begun(begin, doing, wait_s)
            try:
                yield connection
            finally:
                self._give_back(connection)
        except psycopg.Error as error:
            raise store_error(error, shown=self.address.shown, doing=doing) from error
        finally:
            self._places.release()

    def close(self) -> None:
        """Close every connection; further use raises StoreError."""
        self._closed = True
        while (connection := self._taken()) is not None:
            connection.close()

    def _begun(self, begin: str, doing: str, wait_s: float) -> Connection:
        end, pause = time.monotonic() + wait_s, _PAUSE_S
        while True:
            if self._closed:
                raise StoreError(f"{doing}: the store is closed", allowed="an open store", do="open it again")
            connection = None
            try:
                connection = self._taken() or self._connect(self.address)
                connection.execute(begin.encode())
                return connection
            except psycopg.Error as error:
                if connection is not None:
                    connection.close()
                if not is_passing(error) or time.monotonic() > end:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _taken(self) -> Connection | None:
        with self._guard:
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: Connection) -> None:
        try:
            if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()
        if connection.closed or self._closed:
            connection.close()
        else:
            self._idle.append(connection)
