"""Product files whose rows are a table of ours as they stand, and those that become counters or columns of another table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from kb.errors import MalformedInputError
from kb.profile.ascend.cells import RuinedTimestampError
from kb.profile.ascend.columns import Specs
from kb.profile.ascend.csv_table import CsvTable
from kb.profile.ascend.part import Part, device_of, evidence, lost, schema_table
from kb.profile.ascend.table import read_table
from kb.session.builder import Strings
from kb.session.builder import table as made_table
from kb.session.session import Array, Table

Reader = Callable[[Path, str, Specs, Strings], Part]
_TOTAL: Final = "TOTAL"
_COUNTERS: Final[Mapping[str, Mapping[str, str]]] = {
    "memory_record": {"allocated": "{} allocated [MiB]", "reserved": "{} reserved [MiB]", "active": "{} active [MiB]"},
    "npu_module_mem": {"reserved": "{} reserved [MiB]"},
    "npu_mem": {"allocated_kb": "{} allocated [KB]", "memory_kb": "{} memory [KB]"},
}


def plain(table: str) -> Reader:
    """A reader whose rows are rows of ``table``."""

    def read(path: Path, label: str, specs: Specs, strings: Strings) -> Part:
        found = read_table(path, label, specs, strings)
        made = schema_table(table, found, label, strings)
        return Part(label, made, device_of(found), found.dropped, found.violations)

    return read


def timed(table: str) -> Reader:
    """As ``plain``, but ruined timestamps make the file a gap, since nothing else depends on it."""
    read = plain(table)

    def guarded(path: Path, label: str, specs: Specs, strings: Strings) -> Part:
        try:
            return read(path, label, specs, strings)
        except RuinedTimestampError as error:
            return Part(label, missing=(lost(table, error),))

    return guarded


def sampled(product: str) -> Reader:
    """A reader of sampled memory: one counter a component and kind. Ruined timestamps make the file a gap."""
    labels = _COUNTERS[product]

    def read(path: Path, label: str, specs: Specs, strings: Strings) -> Part:
        try:
            found = read_table(path, label, specs, strings)
        except RuinedTimestampError as error:
            return Part(label, missing=(lost("counters", error),))
        return Part(label, _counters(found, labels, label, strings), None, found.dropped, found.violations)

    return read


def static_memory(path: Path, label: str, specs: Specs, strings: Strings) -> Part:
    """``static_op_mem``: blocks planned before the run; its last row is their sum. Raises MalformedInputError."""
    found = read_table(path, label, specs, strings)
    own = found.where(found.columns["name"] != strings.code(_TOTAL)) if len(found) else found
    return Part(label, schema_table("allocations", own, label, strings), None, found.dropped, found.violations)


def device_steps(path: Path, label: str, specs: Specs, strings: Strings) -> Part:
    """``step_trace`` of the msprof tool: iterations by their end and length. Raises MalformedInputError."""
    found = read_table(path, label, specs, strings)
    if not len(found):
        return Part(label, dropped=found.dropped, violations=found.violations)
    end, span = found.columns["end_ns"], found.columns["span_ns"]
    columns: dict[str, Array] = {
        "step_id": found.columns["step_id"],
        "start_ns": np.where(span >= 0, end - span, -1),
        "end_ns": end,
        "kind": np.full(len(found), strings.code("unknown")),
        "warmup": np.zeros(len(found)),
        **evidence(label, found.lines, strings),
    }
    return Part(label, made_table("steps", columns, strings), device_of(found), found.dropped, found.violations)


def with_l2(kernels: Table, path: Path, label: str, specs: Specs, strings: Strings) -> tuple[Table, Part]:
    """``kernels`` with the hit ratio of ``l2_cache.csv``, joined by stream and task. Raises MalformedInputError."""
    found = read_table(path, label, specs, strings)
    part = Part(label, dropped=found.dropped, violations=found.violations)
    if not len(found) or np.isnan(found.columns["hit"]).all() or not {"stream", "task_id"} <= set(kernels.columns):
        return kernels, part
    stated = {
        (stream, task): hit
        for stream, task, hit in zip(
            found.columns["stream"].tolist(), found.columns["task_id"].tolist(), found.columns["hit"].tolist(), strict=True
        )
    }
    keys = zip(kernels["stream"].tolist(), kernels["task_id"].tolist(), strict=True)
    ratio = np.array([stated.get(key, np.nan) for key in keys])
    known = kernels["l2_hit_ratio"] if "l2_hit_ratio" in kernels else np.full(len(kernels), np.nan)
    return Table("kernels", {**kernels.columns, "l2_hit_ratio": np.where(np.isnan(known), ratio, known)}), part


def fallback_kernels(path: Path, label: str, specs: Specs, strings: Strings) -> Part:
    """``task_time``: tasks without types, for captures without a kernel table. Raises MalformedInputError."""
    found = read_table(path, label, specs, strings)
    if len(found) and (found.columns["duration_ns"] < 0).any():
        row = int((found.columns["duration_ns"] < 0).argmax())
        raise MalformedInputError(f"{label}:{found.lines[row]}: negative duration", do="export again")
    return Part(label, schema_table("kernels", found, label, strings), device_of(found), found.dropped, found.violations)


def _counters(read: CsvTable, labels: Mapping[str, str], label: str, strings: Strings) -> Table | None:
    values, names, rows = [], [], []
    for kind, form in labels.items():
        column = read.columns.get(kind)
        if column is None:
            continue
        filled = np.flatnonzero(~np.isnan(column))
        values.append(column[filled])
        names.append(_names(read.columns["component"][filled], form, strings))
        rows.append(filled)
    if not rows or not sum(map(len, rows)):
        return None
    order = np.concatenate(rows)
    columns: dict[str, Array] = {
        "start_ns": read.columns["start_ns"][order],
        "name": np.concatenate(names),
        "value": np.concatenate(values),
    }
    return made_table("counters", {**columns, **evidence(label, read.lines[order], strings)}, strings)


def _names(components: Array, form: str, strings: Strings) -> Array:
    known = strings.frozen()
    named = np.full(len(components), -1, dtype="<i4")
    for code in np.unique(components):
        named[components == code] = strings.code(form.format(known[code] if code >= 0 else "unknown"))
    return named


READERS: Final[Mapping[str, Reader]] = {
    "api_statistic": plain("api_totals"),
    "op_statistic": plain("op_totals"),
    "communication_statistic": plain("op_totals"),
    "operator_details": plain("operators"),
    "fusion_op": plain("fusions"),
    "operator_memory": timed("allocations"),
    "aicpu": timed("aicpu"),
    "data_preprocess": timed("aicpu"),
    "memory_record": sampled("memory_record"),
    "npu_module_mem": sampled("npu_module_mem"),
    "npu_mem": sampled("npu_mem"),
    "static_op_mem": static_memory,
}
"""Readers by product, for the files that need nothing but themselves."""
