"""PostgreSQL's error codes in the reader's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kb.errors import StoreError
from kb.store.faults import Fault

if TYPE_CHECKING:
    import psycopg

PASSING: Final = ("08", "57P01", "57P02", "57P03", "40001", "40P01")
"""SQLSTATEs after which the same transaction may succeed: connection, restart, serialisation, deadlock."""
_ASK: Final = "ask who looks after the team store"
_REPEAT: Final = "repeat the command: what was acknowledged is kept, and a repeated publication publishes nothing twice"
# SQLSTATEs: https://www.postgresql.org/docs/current/errcodes-appendix.html. The first prefix that fits wins.
FAULTS: Final[tuple[Fault, ...]] = (
    Fault("28", "the server refused this login", "a role and password the server knows",
          "check user and password (URL, PGPASSWORD or ~/.pgpass)"),
    Fault("3D000", "the server has no such database", "a database initialised for this program",
          "check the name, or run `kb store init --admin-url URL`"),
    Fault("42501", "this role may not do that", "what its role allows: guests read, members publish, maintainers keep the library", _ASK),
    Fault("KB003", "this role may not do that", "what its role allows: guests read, members publish, maintainers keep the library", _ASK),
    Fault("KB004", "the store refused the write", "new rows only: published rows never change", "publish a new version instead"),
    Fault("23", "the store refused the write", "a sound publication: private in your workspace, team or public in the team's",
          "publish it with that visibility, or import with --origin team"),
    Fault("53100", "the server's disk is full", "free space on the server", _ASK),
    Fault("53", "the server has no connection or memory left", "fewer clients at once", "try again later or raise max_connections"),
    Fault("57014", "the server stopped a statement that took too long", "an answer within the statement timeout",
          "try again when the server is less busy"),
    Fault("55P03", "another writer holds the store", "one writer at a time", "repeat the command"),
    Fault("25006", "the server is read-only", "a primary server", "name the primary server, not a replica"),
    Fault("3F000", "the database holds no store", "a database initialised for this program", "run `kb store init --admin-url URL`"),
    Fault("42P01", "the database holds no store", "a database initialised for this program", "run `kb store init --admin-url URL`"),
    Fault("22", "the server cannot keep these characters", "text without NUL characters", "remove them and publish again"),
    Fault("08", "the connection to the server was lost", "a server that can be reached", _REPEAT),
    Fault("57P", "the server is stopping or starting", "a running server", _REPEAT),
    Fault("40", "writers stood in each other's way", "a free store", "repeat the command"),
)  # fmt: skip
LOST: Final = Fault("", "the server cannot be reached, or the connection was lost", "a running server at this address",
                    "check host, port and network, then repeat the command: what was acknowledged is kept")  # fmt: skip
OTHER: Final = Fault("", "the store cannot be used", "an open store of a running server", "open the store again")
# A connection that never came to be carries no code, only the server's words.
_WORDS: Final = (("authentication failed", "28"), ("no password supplied", "28"), ("permission denied", "42501"),
                 ("too many clients", "53300"), ('FATAL: role "', "28"), ('FATAL: database "', "3D000"))  # fmt: skip


def is_passing(error: psycopg.Error) -> bool:
    """Whether the same transaction may succeed on a new connection."""
    import psycopg

    code = error.sqlstate or ""
    return code.startswith(PASSING) or (not code and isinstance(error, psycopg.OperationalError))


def store_error(error: psycopg.Error, *, shown: str, doing: str) -> StoreError:
    """A StoreError that says what failed while ``doing`` something to the store ``shown``; chain it with ``from error``."""
    import psycopg

    said = " ".join(str(error).split("\n")[0].split())
    code = error.sqlstate or next((code for words, code in _WORDS if words in said), "")
    fault = next((known for known in FAULTS if code.startswith(known.code)), None)
    if fault is None:
        fault = LOST if not code and isinstance(error, psycopg.OperationalError) else OTHER
    return StoreError(f"{doing}: {fault.what} ({shown}: {said})", allowed=fault.allowed, do=fault.do)
