"""Sums by name that a text export states and a database of the profiler only lets one recount: tables of this package."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from kb.profile.ascend.database import Database
from kb.profile.ascend.db_names import Names
from kb.profile.ascend.part import evidence
from kb.session.builder import table as made_table
from kb.session.schema import TABLES, Column
from kb.session.session import Array, Session, Table

TOTALS: Final[Mapping[str, str]] = {"API_TOTALS": "api_totals", "OP_TOTALS": "op_totals", "FRAMEWORK_OPERATORS": "operators"}
"""Table of the database to table of the session; the columns have the same names."""
_LARGEST: Final = 2**62


def columns_of(name: str) -> list[Column]:
    """The columns of a session's table that are written, in order."""
    return [column for column in TABLES[name].columns if column.name not in ("file", "row")]


def total_rows(session: Session, codes: Callable[[Table, str], list[Any]]) -> Iterator[tuple[str, str, list[tuple[Any, ...]]]]:
    """Name, column definitions and rows of each table the session has; ``codes`` gives the text ids of a column."""
    for name, own in TOTALS.items():
        table = session.table(own)
        if table is not None:
            present = [column for column in columns_of(own) if column.name in table]
            values = [codes(table, column.name) if column.dtype == "code" else table[column.name].tolist() for column in present]
            yield name, ", ".join(f"{column.name} INTEGER" for column in present), list(zip(*values, strict=True))


def totals(database: Database, names: Names) -> Iterator[Table]:
    """The tables of ``TOTALS`` that are there; rows without a name or with impossible sums are left out."""
    for name, own in TOTALS.items():
        specs = columns_of(own)
        rows = database.rows(name, *(column.name for column in specs))
        columns: dict[str, Array] = {
            column.name: names.of(rows.integers(column.name)) if column.dtype == "code" else rows.integers(column.name) for column in specs
        }
        sound = np.ones(len(rows), bool)
        for column in specs:
            values = columns[column.name]
            sound &= (values < _LARGEST) & ((values >= 0) if column.required else (values >= -1))
        if sound.any():
            kept = {column: values[sound] for column, values in columns.items() if np.any(values[sound] >= 0)}
            lines = np.clip(rows.ids[sound], -1, 2**31 - 1)
            yield made_table(own, {**kept, **evidence(f"{database.label}#{name}", lines, names.strings)}, names.strings)
