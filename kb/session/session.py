"""The session value: one profiled run of one rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kb.session.meta import SessionMeta
from kb.session.schema import NUMPY_DTYPES, TABLES

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of equal length, dtypes as in ``kb.session.schema``. Absent columns were not captured."""

    name: str
    columns: Mapping[str, Array]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __contains__(self, column: str) -> bool:
        return column in self.columns

    def __getitem__(self, column: str) -> Array:
        return self.columns[column]

    def where(self, mask: Array) -> Table:
        """The rows of a boolean mask or an index array, in order."""
        return Table(self.name, {name: values[mask] for name, values in self.columns.items()})


@dataclass(frozen=True, slots=True)
class Session:
    """Metadata, tables by name (only captured ones), and the strings that ``code`` columns index."""

    meta: SessionMeta
    tables: Mapping[str, Table]
    strings: tuple[str, ...]

    def table(self, name: str) -> Table | None:
        """The table, or None when it was not captured (``meta.missing`` says why)."""
        return self.tables.get(name)

    def text(self, code: int) -> str | None:
        """The string of a code; None for -1."""
        return self.strings[code] if code >= 0 else None

    def code(self, text: str) -> int:
        """The code of a string; -1 when no row holds it."""
        try:
            return self.strings.index(text)
        except ValueError:
            return -1

    def codes(self, predicate: Iterable[str]) -> Array:
        """Codes of the given strings that occur, as an int32 array."""
        wanted = set(predicate)
        return np.array([code for code, text in enumerate(self.strings) if text in wanted], dtype=np.int32)

    def self_check(self) -> list[str]:
        """Every breach of the schema, as sentences; empty for a sound session."""
        breaches: list[str] = []
        for name, table in self.tables.items():
            breaches += _breaches(name, table, len(self.strings))
        return breaches


def _breaches(name: str, table: Table, vocabulary: int) -> list[str]:
    spec = TABLES.get(name)
    if spec is None:
        return [f"{name}: no such table in the schema"]
    found = [f"{name}.{column.name}: required column is absent" for column in spec.columns if column.required and column.name not in table]
    for column_name, values in table.columns.items():
        column = spec.column(column_name)
        if column is None:
            found.append(f"{name}.{column_name}: no such column in the schema")
            continue
        if values.ndim != 1:
            found.append(f"{name}.{column_name}: {values.ndim} dimensions")
            continue
        if values.dtype.str != NUMPY_DTYPES[column.dtype]:
            found.append(f"{name}.{column_name}: dtype {values.dtype.str}, schema says {NUMPY_DTYPES[column.dtype]}")
        if len(values) != len(table):
            found.append(f"{name}.{column_name}: {len(values)} rows, table has {len(table)}")
        if column.dtype == "code" and len(values) and (values.min() < -1 or values.max() >= vocabulary):
            found.append(f"{name}.{column_name}: code outside -1..{vocabulary - 1}")
        if column_name == "duration_ns" and len(values) and values.min() < 0:
            found.append(f"{name}.duration_ns: negative")
    if spec.sort and spec.sort in table and len(table) > 1 and np.any(np.diff(table[spec.sort]) < 0):
        found.append(f"{name}: not sorted by {spec.sort}")
    return found
