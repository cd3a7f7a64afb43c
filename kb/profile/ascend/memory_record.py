"""``memory_record.csv``: device memory sampled by component, as counters."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from kb.profile.ascend.cells import RuinedTimestampError
from kb.profile.ascend.columns import Specs
from kb.profile.ascend.part import Part, evidence
from kb.profile.ascend.table import CsvTable, read_table
from kb.session.builder import Strings
from kb.session.builder import table as made_table
from kb.session.meta import Missing
from kb.session.session import Array, Table

FILE = "memory_record.csv"
_KINDS: Final = ("allocated", "reserved", "active")


def read_memory(path: Path, label: str, specs: Specs, strings: Strings) -> Part:
    """The ``counters`` table of ``path``: ``"<component> allocated|reserved|active [MiB]"``.

    Spreadsheet-ruined timestamps make the file a missing entry, since nothing else depends on it. Raises
    MalformedInputError for other damage.
    """
    try:
        read = read_table(path, label, specs, strings)
    except RuinedTimestampError as error:
        return Part(label, missing=(Missing(what="counters", why=error.what, capture=error.do or ""),))
    return Part(label, _counters(read, label, strings), None, read.dropped, read.violations)


def _counters(read: CsvTable, label: str, strings: Strings) -> Table | None:
    values, names, rows = [], [], []
    for kind in _KINDS:
        column = read.columns.get(kind)
        if column is None:
            continue
        filled = np.flatnonzero(~np.isnan(column))
        values.append(column[filled])
        names.append(_names(read.columns["component"][filled], kind, strings))
        rows.append(filled)
    if not rows or not sum(map(len, rows)):
        return None
    order = np.concatenate(rows)
    lines = read.lines[order]
    columns: dict[str, Array] = {
        "start_ns": read.columns["start_ns"][order],
        "name": np.concatenate(names),
        "value": np.concatenate(values),
    }
    return made_table("counters", {**columns, **evidence(label, lines, strings)}, strings)


def _names(components: Array, kind: str, strings: Strings) -> Array:
    known = strings.frozen()
    named = np.full(len(components), -1, dtype="<i4")
    for code in np.unique(components):
        text = known[code] if code >= 0 else "unknown"
        named[components == code] = strings.code(f"{text} {kind} [MiB]")
    return named
