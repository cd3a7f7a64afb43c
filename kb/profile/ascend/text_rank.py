"""The text export of one rank to tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from kb.profile.ascend import communication, communication_matrix, kernel_details
from kb.profile.ascend.gathered import Gathered
from kb.profile.ascend.merging import merged
from kb.profile.ascend.part import Part
from kb.profile.ascend.plain_files import READERS, device_steps, fallback_kernels, with_l2
from kb.profile.ascend.products import KERNELS, TRACE
from kb.profile.ascend.reading import Reading
from kb.profile.ascend.step_trace_time import read_step_trace
from kb.profile.ascend.trace_view import TraceFile, linked, read_trace
from kb.session.builder import Strings
from kb.session.session import Table

_FROM_TRACE = frozenset({"host_ops", "comm_tasks", "counters", "copies", "marks"})


def read_text(files: Mapping[str, tuple[Path, ...]], reading: Reading, strings: Strings) -> Gathered:
    """Every product file of ``files`` (by what it holds). Raises MalformedInputError naming file and row."""
    parts: list[Part] = []
    split = False
    for path in files.get(KERNELS, ()):
        found = kernel_details.read_kernels(path, reading.label(path), reading.aliases[KERNELS], strings, reading.metrics)
        split |= found.split_cores
        parts.append(found.part)
    parts += _others(files, reading, strings)
    traces = [read_trace(path, reading.label(path), strings) for path in files.get(TRACE, ())]
    tables = merged((part.table for part in parts if part.table is not None), strings)
    extra = [table for trace in traces for table in trace.tables if table.name in _FROM_TRACE or table.name not in tables]
    tables = merged([*tables.values(), *extra], strings)
    if "kernels" not in tables and "task_time" in files:
        parts += [fallback_kernels(path, reading.label(path), reading.aliases["task_time"], strings) for path in files["task_time"]]
        tables |= merged((part.table for part in parts if part.table is not None and part.table.name == "kernels"), strings)
    if "kernels" in tables:
        tables["kernels"], l2 = _completed(tables["kernels"], files, traces, reading, strings)
        parts += l2
    parts += [trace.part for trace in traces]
    spans = {name: span for trace in traces for name, span in trace.steps.items()}
    return Gathered(tables, tuple(parts), split, {name: (*span, reading.label(files[TRACE][0])) for name, span in spans.items()})


def _others(files: Mapping[str, tuple[Path, ...]], reading: Reading, strings: Strings) -> Iterator[Part]:
    for path in files.get("step_trace_time", ()):
        yield read_step_trace(path, reading.label(path), reading.aliases["step_trace_time"], strings)
    for path in files.get("step_trace", ()):
        yield device_steps(path, reading.label(path), reading.aliases["step_trace"], strings)
    for product, read in READERS.items():
        for path in files.get(product, ()):
            yield read(path, reading.label(path), reading.aliases[product], strings)
    for path in files.get("communication", ()):
        yield communication.read_communication(path, reading.label(path), strings)
    for path in files.get("communication_matrix", ()):
        yield communication_matrix.read_matrix(path, reading.label(path), strings)


def _completed(
    kernels: Table, files: Mapping[str, tuple[Path, ...]], traces: Sequence[TraceFile], reading: Reading, strings: Strings
) -> tuple[Table, list[Part]]:
    parts = []
    for path in files.get("l2_cache", ()):
        kernels, part = with_l2(kernels, path, reading.label(path), reading.aliases["l2_cache"], strings)
        parts.append(part)
    for trace in traces:
        if "connection_id" not in kernels or not np.any(kernels["connection_id"] >= 0):
            kernels = linked(kernels, trace)
    return kernels, parts
