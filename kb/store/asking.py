"""What the reading half needs of a connection, whichever engine it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol


class Rows(Protocol):
    """The rows a question found, as tuples."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchmany(self, size: int, /) -> list[Any]:
        """Up to ``size`` more rows."""

    def fetchall(self) -> list[Any]:
        """All rows that are left."""


class Asking(Protocol):
    """A connection inside one snapshot that understands the texts of ``kb.store.statements``."""

    def execute(self, text: str, parameters: Mapping[str, Any] = ..., /) -> Rows:
        """Ask one of the texts."""
