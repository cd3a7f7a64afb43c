"""A profiler database, opened so that not one byte of it can change, and read as arrays.

Tables and columns that a viewer added are never looked at; a table that is not there reads as no rows. Foreign files
are hostile until shown otherwise: views, virtual tables and triggers are not touched, and work per query is bounded.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

import numpy as np

from kb.errors import MalformedInputError
from kb.files import open_regular
from kb.session.session import Array

Cell = int | float | str | bytes | None
LARGEST_CELL: Final = 16 << 20
_STEPS_BETWEEN_CHECKS: Final = 1_000_000
_MOST_CHECKS: Final = 20_000
"""Virtual machine steps a query may take: about ten minutes of work, enough for tens of millions of rows."""
_LARGEST: Final = 2**62
_HEADER: Final = 100
_MAGIC: Final = b"SQLite format 3\0"
_DO: Final = "take the database as the profiler wrote it, or export again"


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of one table by name (only those asked for that exist) and the 1-based positions of the rows in storage order."""

    columns: Mapping[str, Sequence[Cell]]
    ids: Array

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def integers(self, name: str, missing: int = -1) -> Array:
        """A column as int64; ``missing`` for null, text that is no number, numbers beyond 2 ** 62 and absent columns."""
        values = self.columns.get(name)
        if values is None:
            return np.full(len(self), missing, np.int64)
        if all(type(value) is int for value in values):
            try:
                found = np.array(values, np.int64)
            except OverflowError:
                found = None
            if found is not None and (not len(found) or np.abs(found).max() < _LARGEST):
                return found
        return np.array([_integer(value, missing) for value in values], np.int64)

    def reals(self, name: str) -> Array:
        """A column as float64; NaN for null, text that is no number and absent columns."""
        values = self.columns.get(name)
        return np.full(len(self), np.nan) if values is None else np.array([_real(value) for value in values], np.float64)

    def texts(self, name: str) -> list[str | None]:
        """A column as text; None for null and absent columns."""
        values = self.columns.get(name)
        return [None] * len(self) if values is None else [_text(value) for value in values]


@dataclass(frozen=True, slots=True)
class Database:
    """An open database. ``label`` names it in messages; ``tables`` are its ordinary tables with their columns."""

    connection: sqlite3.Connection
    label: str
    tables: Mapping[str, tuple[str, ...]]

    def rows(self, table: str, *wanted: str) -> Rows:
        """The columns ``wanted`` of ``table`` that exist, in storage order. Raises MalformedInputError naming the table."""
        have = [name for name in wanted if name in self.tables.get(table, ())]
        if not have:
            return Rows({}, np.empty(0, np.int64))
        names = ", ".join(f'"{name}"' for name in have)
        try:
            found = self.connection.execute(f'SELECT {names} FROM "{table}"').fetchall()  # noqa: S608  # names from our own code
        except (sqlite3.Error, OverflowError, UnicodeDecodeError, MemoryError) as error:
            raise MalformedInputError(f"{self.label}:1: table {table}: {error}", do=_DO) from error
        columns = list(zip(*found, strict=True)) if found else [()] * len(have)
        return Rows(dict(zip(have, columns, strict=True)), np.arange(1, len(found) + 1))


@contextmanager
def opened(path: Path, label: str) -> Iterator[Database]:
    """The database at ``path``, read-only and immutable. Raises MalformedInputError."""
    _refuse_cut(path, label)
    uri = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise MalformedInputError(f"{label}:1: cannot be opened: {error}", do="check the file and its permissions") from error
    with closing(connection):
        connection.text_factory = _decoded
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_CELL)
        checks = iter(range(_MOST_CHECKS))
        connection.set_progress_handler(lambda: next(checks, None) is None, _STEPS_BETWEEN_CHECKS)
        yield Database(connection, label, _tables(connection, label))


def _refuse_cut(path: Path, label: str) -> None:
    """A file shorter than its header says was cut; SQLite would notice only at the page that is missing."""
    try:
        with open_regular(path) as handle:
            header = handle.read(_HEADER)
            size = handle.seek(0, 2)
    except OSError as error:
        raise MalformedInputError(f"{label}:1: cannot be read: {error.strerror}", do="check the file and its permissions") from error
    page = int.from_bytes(header[16:18], "big")
    stated = int.from_bytes(header[28:32], "big") * (1 << 16 if page == 1 else page)
    if not header.startswith(_MAGIC) or len(header) < _HEADER or size < stated:
        raise MalformedInputError(f"{label}:1: not a whole database: {size} of {stated} bytes", allowed="SQLite 3", do=_DO)


def _tables(connection: sqlite3.Connection, label: str) -> Mapping[str, tuple[str, ...]]:
    try:
        for setting in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON"):
            connection.execute(f"PRAGMA {setting}")
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        plain = [name for name, sql in found if isinstance(sql, str) and not sql.upper().startswith("CREATE VIRTUAL") and '"' not in name]
        return {name: tuple(row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')) for name in plain}
    except (sqlite3.Error, UnicodeDecodeError, TypeError, MemoryError) as error:
        raise MalformedInputError(f"{label}:1: not a sound database: {error}", allowed="SQLite 3", do=_DO) from error


def _decoded(data: bytes) -> str:
    return data.decode(errors="replace")


def _integer(value: Cell, missing: int) -> int:
    try:
        number = int(value) if value is not None else missing
    except (ValueError, OverflowError):
        return missing
    return number if abs(number) < _LARGEST else missing


def _real(value: Cell) -> float:
    try:
        return float(value) if value is not None else np.nan
    except ValueError:
        return np.nan


def _text(value: Cell) -> str | None:
    return None if value is None or isinstance(value, bytes) else str(value)
