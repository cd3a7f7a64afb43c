"""Copies, memory blocks and sampled counters of a simulated rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kb.profile.simulated.constants import Constants
from kb.profile.simulated.emission_origin import origin
from kb.profile.simulated.host import copy_ns
from kb.profile.simulated.memory import MemoryPlan, allocations
from kb.profile.simulated.options import Options
from kb.profile.simulated.rank import Rank
from kb.profile.simulated.thermal import temperature
from kb.profile.simulated.trace import Trace
from kb.session.builder import Strings, table
from kb.session.session import Table

Columns = Mapping[str, Sequence[Any]]
MOST_SAMPLES = 200
"""Memory samples of a session."""


def copy_rows(rank: Rank, trace: Trace, options: Options, constants: Constants, strings: Strings) -> Iterator[Table]:
    """The copy of each step's input; an asynchronous one ran beside the step before."""
    size = rank.work.workload.input_bytes
    if not size:
        return
    ns = copy_ns(rank.work.workload, options, constants)
    begins = []
    for record in trace.records:
        held = [begin for event, begin, _ in record.host if event.cause == "copy"]
        begins.append(held[0] if held else max(0, record.begin - ns))
    count = len(begins)
    columns: Columns = {
        "start_ns": begins,
        "duration_ns": [ns] * count,
        "kind": ["h2d"] * count,
        "bytes": [float(size)] * count,
        "stream": [0] * count,
    }
    yield table("copies", {**columns, **origin("copies", count, strings)}, strings)


def allocation_rows(rank: Rank, trace: Trace, memory: MemoryPlan, strings: Strings) -> Iterator[Table]:
    """Blocks of one segment of the representative step, and the weights, alive to the end."""
    step = min(1, len(trace.records) - 1)
    length = len(rank.work.times)
    ends = (trace.starts + trace.durations)[step, :length].tolist()
    rows = allocations(rank.work.graph, memory, trace.starts[step, :length].tolist(), ends)
    rows.append((trace.records[0].begin, -1, "weights", memory.weight_bytes))
    columns: Columns = {
        "start_ns": [row[0] for row in rows],
        "end_ns": [row[1] for row in rows],
        "name": [row[2] for row in rows],
        "bytes": [float(row[3]) for row in rows],
    }
    yield table("allocations", {**columns, **origin("allocations", len(rows), strings)}, strings)


def counter_rows(rank: Rank, trace: Trace, memory: MemoryPlan, strings: Strings) -> Iterator[Table]:
    """Clock, power and temperature at each step, and memory held and alive over a segment of the representative one."""
    work = rank.work
    top = work.chip.ghz * 1e3 / (max(work.levels) if work.course else 1.0)
    begin = trace.records[0].begin
    rows: list[tuple[int, str, float]] = []
    for number, record in enumerate(trace.records):
        heat = work.course[number] if work.course else work.heat
        warm = heat.celsius if work.course else temperature(heat.celsius, heat, record.begin - begin, work.thermals)
        rows.append((record.begin, "AI Core Freq [MHz]", top * heat.clock if work.course else top))
        rows.append((record.begin, "Power [W]", heat.power_w))
        rows.append((record.begin, "Temperature [C]", warm))
    rows += _memory(rank, trace, memory)
    columns: Columns = {"start_ns": [row[0] for row in rows], "name": [row[1] for row in rows], "value": [row[2] for row in rows]}
    yield table("counters", {**columns, **origin("counters", len(rows), strings)}, strings)


def _memory(rank: Rank, trace: Trace, memory: MemoryPlan) -> Iterator[tuple[int, str, float]]:
    step, length = min(1, len(trace.records) - 1), len(rank.work.times)
    changes = np.zeros(length + 1)
    for block in memory.blocks:
        changes[block.first] += block.size
        changes[block.last + 1] -= block.size
    live = memory.weight_bytes + np.cumsum(changes[:-1])
    held = np.maximum.accumulate(np.maximum(live, memory.reserved_bytes * 1.0))
    picked = np.unique(np.linspace(0, length - 1, min(length, MOST_SAMPLES)).astype(int))
    for place in picked.tolist():
        when = int(trace.starts[step, place])
        yield when, "PTA Total Allocated [B]", float(live[place])
        yield when, "PTA Total Reserved [B]", float(held[place])
