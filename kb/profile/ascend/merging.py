"""Tables of one kind from several files into one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from kb.session.builder import Strings
from kb.session.builder import table as made_table
from kb.session.schema import TABLES
from kb.session.session import Array, Table


def merged(tables: Iterable[Table], strings: Strings) -> dict[str, Table]:
    """One table of each name; columns that only some files have are missing (-1, NaN) in the rows of the others."""
    parts: dict[str, list[Table]] = {}
    for table in tables:
        parts.setdefault(table.name, []).append(table)
    return {name: found[0] if len(found) == 1 else made_table(name, _joined(name, found), strings) for name, found in parts.items()}


def _joined(name: str, tables: list[Table]) -> Mapping[str, Array]:
    return {
        column.name: np.concatenate(
            [table[column.name] if column.name in table else _nothing(column.dtype, len(table)) for table in tables]
        )
        for column in TABLES[name].columns
        if any(column.name in table for table in tables)
    }


def _nothing(dtype: str, rows: int) -> Array:
    return np.full(rows, np.nan if dtype == "f8" else -1)
