"""What one product file contributes to a session."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kb.domain.text import Text
from kb.errors import KbError
from kb.profile.ascend.csv_table import CsvTable
from kb.session.builder import Strings
from kb.session.builder import table as made_table
from kb.session.meta import Missing, Violation
from kb.session.schema import TABLES
from kb.session.session import Array, Table


@dataclass(frozen=True, slots=True)
class Part:
    """``table`` is None when the file holds no usable row. ``label`` is its path relative to the user's root;
    ``device`` the card it names, ``dropped`` the rows left out."""

    label: str
    table: Table | None = None
    device: int | None = None
    dropped: int = 0
    violations: tuple[Violation, ...] = ()
    missing: tuple[Missing, ...] = ()


def lost(what: str, error: KbError) -> Missing:
    """The gap a broken file leaves where nothing else depends on it."""
    do = error.do or ""
    return Missing(what=what, why=Text(f"文件损坏：{error.what}", error.what), capture=Text(do, do))


def evidence(label: str, lines: Array, strings: Strings) -> dict[str, Array]:
    """The ``file`` and ``row`` columns of rows read from ``label``."""
    return {"file": np.full(len(lines), strings.code(label), dtype="<i4"), "row": lines}


def schema_table(name: str, read: CsvTable, label: str, strings: Strings, extra: dict[str, Array] | None = None) -> Table | None:
    """The schema's table ``name`` from a CSV: columns the schema does not know are left behind, absent required
    ones are filled with "missing". None when there are no rows."""
    if not len(read):
        return None
    spec = TABLES[name]
    columns = {column: values for column, values in read.columns.items() if spec.column(column)}
    for column in spec.columns:
        if column.required and column.name not in columns:
            columns[column.name] = np.full(len(read), -1)
    return made_table(name, {**columns, **(extra or {}), **evidence(label, read.lines, strings)}, strings)


def device_of(read: CsvTable) -> int | None:
    """The card a file names, None when it names none or several."""
    if "device" not in read.columns:
        return None
    cards = np.unique(read.columns["device"])
    return int(cards[0]) if len(cards) == 1 and cards[0] >= 0 else None
