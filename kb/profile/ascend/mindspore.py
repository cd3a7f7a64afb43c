"""MindSpore 2.2 and older: operator times without a timeline, steps in units of 10 ns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from kb.profile.ascend.columns import ColumnSpec, Specs
from kb.profile.ascend.csv_table import CsvTable
from kb.profile.ascend.gathered import Gathered
from kb.profile.ascend.merging import merged
from kb.profile.ascend.part import Part, evidence, schema_table
from kb.profile.ascend.reading import Reading
from kb.profile.ascend.table import read_table
from kb.session.builder import Strings
from kb.session.builder import table as made_table
from kb.session.session import Array, Table

_TICK_NS: Final = 10
_TYPES: Final[Specs] = {
    "op_type": ColumnSpec(names=("kernel_type", "op_type"), kind="text", required=True),
    "total_ns": ColumnSpec(names=("total_time", "execution_time"), kind="duration_ms", required=True),
    "count": ColumnSpec(names=("execution_frequency", "exec_times"), kind="long_id"),
}
_DETAILS: Final[Specs] = {
    "name": ColumnSpec(names=("full_kernel_name", "full_op_name"), kind="text", required=True),
    "device_total_ns": ColumnSpec(names=("execution_time",), kind="optional_duration_ms", required=True),
}
_STEPS: Final[Specs] = {
    "step_id": ColumnSpec(names=("step_num",), kind="text", required=True),
    "start": ColumnSpec(names=("start_point",), kind="long_id", required=True),
    "end": ColumnSpec(names=("end_point",), kind="long_id", required=True),
}
_FILES: Final = (
    ("aicore_intermediate_*_type.csv", _TYPES, "op_totals"),
    ("aicore_intermediate_*_detail.csv", _DETAILS, "operators"),
    ("step_trace_raw_*_detail_time.csv", _STEPS, "steps"),
)


def read_old(files: Sequence[Path], reading: Reading, strings: Strings) -> Gathered:
    """``op_totals``, ``operators`` and ``steps``. Raises MalformedInputError naming file and row."""
    parts = list(_parts(files, reading, strings))
    return Gathered(merged((part.table for part in parts if part.table is not None), strings), tuple(parts))


def _parts(files: Sequence[Path], reading: Reading, strings: Strings) -> Iterator[Part]:
    for pattern, specs, name in _FILES:
        for path in files:
            if path.match(pattern):
                label = reading.label(path)
                read = read_table(path, label, specs, strings)
                table = _steps(read, label, strings) if name == "steps" else schema_table(name, read, label, strings)
                yield Part(label, table, None, read.dropped, read.violations)


def _steps(read: CsvTable, label: str, strings: Strings) -> Table | None:
    sound = read.where((read.columns["start"] >= 0) & (read.columns["end"] > read.columns["start"])) if len(read) else read
    # The last row of the file is the average over steps and carries no number.
    sound = (
        sound.where(np.array([text.isdigit() for text in (_text(strings, code) for code in sound.columns["step_id"].tolist())], bool))
        if len(sound)
        else sound
    )
    if not len(sound):
        return None
    columns: dict[str, Array] = {
        "step_id": sound.columns["step_id"],
        "start_ns": sound.columns["start"] * _TICK_NS,
        "end_ns": sound.columns["end"] * _TICK_NS,
        "kind": np.full(len(sound), strings.code("unknown")),
        "warmup": np.zeros(len(sound)),
        **evidence(label, sound.lines, strings),
    }
    return made_table("steps", columns, strings)


def _text(strings: Strings, code: int) -> str:
    return strings.frozen()[code] if code >= 0 else ""
