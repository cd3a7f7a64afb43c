"""``step_trace_time.csv``: the exporter's own totals of each step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kb.profile.ascend.columns import Specs
from kb.profile.ascend.part import Part, device_of, schema_table
from kb.profile.ascend.table import read_table
from kb.session.builder import Strings
from kb.session.builder import table as made_table
from kb.session.session import Array, Table

FILE = "step_trace_time.csv"


def read_step_trace(path: Path, label: str, specs: Specs, strings: Strings) -> Part:
    """The ``step_trace`` table of ``path``. Raises MalformedInputError."""
    read = read_table(path, label, specs, strings)
    table = schema_table("step_trace", read, label, strings)
    return Part(label, table, device_of(read), read.dropped, read.violations)


def steps_of(
    step_trace: Table | None, kernels: Table | None, strings: Strings, markers: Mapping[str, tuple[int, int, int, str]] | None = None
) -> Table | None:
    """The ``steps`` table: the steps of the totals, then those only kernels name, then those only ``markers`` (begin, end, row,
    file by name) name. None when no step is named.

    The exporter writes active steps only, so none of them is a warm-up step. Begin and end are -1 without a marker.
    """
    spans = markers or {}
    rows: dict[int, tuple[int, int]] = {}
    for table in (step_trace, kernels):
        if table is None or "step_id" not in table:
            continue
        _, first = np.unique(table["step_id"], return_index=True)
        for index in np.sort(first):
            rows.setdefault(int(table["step_id"][index]), (int(table["file"][index]), int(table["row"][index])))
    for name, (_, _, row, file) in spans.items():
        rows.setdefault(strings.code(name), (strings.code(file), row))
    rows.pop(-1, None)
    if not rows:
        return None
    files, lines = zip(*rows.values(), strict=True)
    known = strings.frozen()
    columns: dict[str, Array] = {
        "step_id": np.array(list(rows)),
        "kind": np.full(len(rows), strings.code("unknown")),
        "warmup": np.zeros(len(rows)),
        "file": np.array(files),
        "row": np.array(lines),
    }
    if spans:
        bounds = [spans.get(known[code], (-1, -1, 0, ""))[:2] for code in rows]
        columns |= {"start_ns": np.array([begin for begin, _ in bounds]), "end_ns": np.array([end for _, end in bounds])}
    return made_table("steps", columns, strings)
