"""The communication tables of a simulated rank: operators, their wait and transfer, and the links they used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from kb.profile.simulated.emission_origin import origin
from kb.profile.simulated.graph import Collective
from kb.profile.simulated.layout import Layout
from kb.profile.simulated.rank import Rank
from kb.profile.simulated.trace import Trace
from kb.session.builder import Strings, table
from kb.session.session import Table

Columns = Mapping[str, Sequence[Any]]
POINT_TO_POINT: Final = ("send", "receive")
TRANSPORT: Final = "HCCS"


def comm_ops(rank: Rank, layout: Layout, trace: Trace, strings: Strings) -> Iterator[Table]:
    """One row a call; waiting for the last rank is ``wait_ns``, the rest ``transit_ns``."""
    rows = []
    for step, place, call in _calls(rank, trace):
        record = trace.records[step]
        start, end, met = record.starts[place], record.ends[place], record.met[place]
        kind = "p2p" if call.action in POINT_TO_POINT else "collective"
        group = f"{call.dimension}_{'_'.join(map(str, layout.members(rank.seat, call.dimension)))}"
        size = float(sum(tensor.bytes for tensor in call.inputs))
        rows.append(
            (start, end - start, f"{call.op_type}_{call.dimension}_{call.tag}", kind, group, str(step + 1), end - met, met - start, size)
        )
    if not rows:
        return
    names = ("start_ns", "duration_ns", "name", "kind", "group", "step_id", "transit_ns", "wait_ns", "bytes")
    columns = {name: [row[number] for row in rows] for number, name in enumerate(names)}
    nothing = np.zeros(len(rows), dtype=np.int64)
    yield table("comm_ops", {**columns, "sync_ns": nothing, "idle_ns": nothing, **origin("comm_ops", len(rows), strings)}, strings)


def comm_tasks(rank: Rank, layout: Layout, trace: Trace, strings: Strings) -> Iterator[Table]:
    """A wait for the last member and a copy for each call, on one plane."""
    rows = []
    for step, place, call in _calls(rank, trace):
        record = trace.records[step]
        members = layout.members(rank.seat, call.dimension)
        own = members.index(rank.seat.rank)
        other = members.index(layout.rank(rank.seat.tensor, rank.seat.data, call.peer)) if call.peer >= 0 else (own + 1) % len(members)
        name = f"{call.op_type}_{call.dimension}_{call.tag}"
        start, end, met = record.starts[place], record.ends[place], record.met[place]
        size = float(sum(tensor.bytes for tensor in call.inputs))
        if met > start:
            rows.append((start, met - start, name, "Notify_Wait", own, other, 0.0))
        rows.append((met, end - met, name, "Memcpy", own, other, size / max(1, len(members) - 1)))
    if not rows:
        return
    names = ("start_ns", "duration_ns", "op", "kind", "src_rank", "dst_rank", "bytes")
    columns = {name: [row[number] for row in rows] for number, name in enumerate(names)}
    extra: Columns = {"plane": [0] * len(rows), "transport": [TRANSPORT] * len(rows)}
    yield table("comm_tasks", {**columns, **extra, **origin("comm_tasks", len(rows), strings)}, strings)


def comm_links(rank: Rank, layout: Layout, trace: Trace, strings: Strings) -> Iterator[Table]:
    """B and ns from this rank to every other member of its groups, summed over each operator."""
    sums: dict[tuple[str, int, int], list[float]] = {}
    for step, place, call in _calls(rank, trace):
        record = trace.records[step]
        members = layout.members(rank.seat, call.dimension)
        own = members.index(rank.seat.rank)
        size = float(sum(tensor.bytes for tensor in call.inputs)) / max(1, len(members) - 1)
        spent = float(record.ends[place] - record.met[place])
        for other in range(len(members)):
            if other != own:
                total = sums.setdefault((f"{call.op_type}@{call.dimension}", own, other), [0.0, 0.0])
                total[0] += size
                total[1] += spent
    if not sums:
        return
    columns: Columns = {
        "op": [key[0] for key in sums],
        "src_rank": [key[1] for key in sums],
        "dst_rank": [key[2] for key in sums],
        "transport": [TRANSPORT] * len(sums),
        "bytes": [total[0] for total in sums.values()],
        "transit_ns": [total[1] for total in sums.values()],
    }
    yield table("comm_links", {**columns, **origin("comm_links", len(sums), strings)}, strings)


def _calls(rank: Rank, trace: Trace) -> Iterator[tuple[int, int, Collective]]:
    operators = rank.work.graph.operators
    for step in range(len(trace.records)):
        for place in rank.calls:
            operator = operators[place % len(operators)]
            if isinstance(operator, Collective):
                yield step, place, operator
