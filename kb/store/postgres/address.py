"""The address of a team store: a libpq URL, and how to speak of it without its password."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from kb.errors import UsageError

SCHEMES: Final = ("postgresql", "postgres")
FORM: Final = "postgresql://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[?sslmode=require]"


class Address(msgspec.Struct, frozen=True):
    """``url`` goes to libpq as it is (so PGPASSWORD, ~/.pgpass and services work); ``shown`` is for people."""

    url: str
    shown: str
    database: str


def parse_address(url: str) -> Address:
    """Read a URL. Raises UsageError, never repeating a password."""
    try:
        parts = urlsplit(url)
        port, user = parts.port, parts.username
    except ValueError:
        raise UsageError("the address of the store cannot be read", allowed=FORM, do="check host and port") from None
    database = unquote(parts.path.lstrip("/"))
    if parts.scheme not in SCHEMES or not database or "/" in database:
        raise UsageError("the address of the store names no database", allowed=FORM, do="name host and database")
    host = parts.hostname or ("a local socket" if "host=" in parts.query else "localhost")
    shown = "".join(("postgresql://", f"{unquote(user)}@" if user else "", host, f":{port}" if port else "", f"/{database}"))
    return Address(url, shown, database)
