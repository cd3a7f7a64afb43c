"""Simulated runs: setup in, sessions and truth out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from kb.errors import InternalFaultError, UsageError
from kb.profile.simulated.chip import capacity_bytes
from kb.profile.simulated.constants import Constants, load_constants
from kb.profile.simulated.emission import emit
from kb.profile.simulated.engine import Record, run_step
from kb.profile.simulated.graph import Graph
from kb.profile.simulated.graph_file import unpacked
from kb.profile.simulated.idle import idle_intervals
from kb.profile.simulated.imported import entry_of
from kb.profile.simulated.layout import Layout, Seat, layout_of
from kb.profile.simulated.memory import MemoryPlan, OutOfDeviceMemoryError, memory_plan, peak_bytes
from kb.profile.simulated.models.names import ModelEntry, model
from kb.profile.simulated.options import checked
from kb.profile.simulated.plan import IDLE_CAUSES, HostCosts
from kb.profile.simulated.rank import Rank, Work, plan_of, rank_of, work_of
from kb.profile.simulated.setup import Setup, setup_of
from kb.profile.simulated.trace import Trace, trace_of
from kb.profile.simulated.transformation import transformed
from kb.profile.simulated.truth import IdleIntervals, StepTruth, Truth
from kb.session.session import Session

__all__ = ["Setup", "setup_of", "simulate", "simulate_ranks"]

BEGIN_NS: Final = 1_000_000_000
"""Where the capture's clock stands when the first step begins."""
_DEGREES: Final = {"tensor": "tensor_parallel", "pipeline": "pipeline_parallel", "data": "data_parallel", "expert": "expert_parallel"}


def simulate(setup: Setup) -> tuple[Session, Truth]:
    """The profile of rank 0 of ``setup`` and what really happened; see ``simulate_ranks``."""
    return simulate_ranks(setup, (0,))[0]


def simulate_ranks(setup: Setup, ranks: Sequence[int] | None = None) -> tuple[tuple[Session, Truth], ...]:
    """The profiles of ``ranks`` (None = all of the job) and what really happened on each.

    All ranks run together and meet in their communication; only those asked for are written down. Deterministic:
    equal setups give equal results. Raises NotFoundError for an unknown model, UsageError for impossible options,
    OutOfDeviceMemoryError when the workload does not fit.
    """
    entry, constants = _entry(setup), load_constants()
    checked(setup.options)
    if setup.seed < 0:
        raise UsageError(f"seed {setup.seed}", allowed="a whole number from 0 up")
    layout = _checked_layout(setup, entry)
    asked = tuple(range(layout.world)) if ranks is None else tuple(ranks)
    unknown = [rank for rank in asked if not 0 <= rank < layout.world]
    if unknown:
        raise UsageError(f"no rank {unknown[0]} in a job of {layout.world}", allowed=f"0 to {layout.world - 1}")
    works = _works(setup, entry, layout)
    plans = {key: _planned(setup, work.graph) for key, work in works.items()}
    running = _ranks(setup, works, layout, constants)
    records = _run(running, setup, constants)
    found = []
    for number in asked:
        rank = running[number]
        memory = plans[rank.seat.stage, rank.seat.expert]
        trace = trace_of(records[number], rank.calls)
        session = emit(setup, entry, rank, layout, trace, memory, constants)
        found.append((session, _truth(rank, records[number], trace, memory, constants)))
    return tuple(found)


def last_step_ns(setup: Setup) -> int:
    """The longest last step of all ranks, ns, with nothing written down: what a change costs. Equal to the same figure of
    ``simulate_ranks``. Raises the same, but does not ask whether the activations fit."""
    entry, constants = _entry(setup), load_constants()
    checked(setup.options)
    layout = _checked_layout(setup, entry)
    records = _run(_ranks(setup, _works(setup, entry, layout), layout, constants), setup, constants)
    return max(steps[-1].end - steps[-1].begin for steps in records.values())


def _works(setup: Setup, entry: ModelEntry, layout: Layout) -> dict[tuple[int, int], Work]:
    """The work of each stage and place in an expert group: ranks that share both do the same."""
    works: dict[tuple[int, int], Work] = {}
    for number in range(layout.world):
        seat = layout.seat(number)
        if (seat.stage, seat.expert) not in works:
            works[seat.stage, seat.expert] = _work(setup, entry, seat, layout)
    return works


def _ranks(setup: Setup, works: Mapping[tuple[int, int], Work], layout: Layout, constants: Constants) -> dict[int, Rank]:
    seats = [layout.seat(number) for number in range(layout.world)]
    return {seat.rank: rank_of(seat, works[seat.stage, seat.expert], layout, setup.options, setup.seed, constants) for seat in seats}


def _entry(setup: Setup) -> ModelEntry:
    """The built-in model, or the one of the file that the setup carries."""
    return entry_of(unpacked(setup.graph, setup.model)) if setup.graph else model(setup.model)


def _checked_layout(setup: Setup, entry: ModelEntry) -> Layout:
    layout = layout_of(setup.options)
    for dimension, option in _DEGREES.items():
        degree = getattr(setup.options, option)
        if degree > 1 and dimension not in entry.dimensions:
            raise UsageError(
                f"{setup.model} cannot be split: {option} = {degree}",
                allowed=f"{option} = 1; it takes {', '.join(_DEGREES[name] for name in entry.dimensions) or 'no parallel degree'}",
            )
    return layout


def _work(setup: Setup, entry: ModelEntry, seat: Seat, layout: Layout) -> Work:
    workload = entry.build(setup.options, seat)
    graph = transformed(workload.segment, setup.options)
    if not graph.operators:
        raise InternalFaultError(f"{setup.model} has no operators for {seat}", do="report the options that led here")
    workload = replace(workload, segment=graph)
    return work_of(workload, seat, layout, setup.soc, setup.options, load_constants())


def _planned(setup: Setup, graph: Graph) -> MemoryPlan:
    """Where the activations lie. Raises OutOfDeviceMemoryError when they do not fit."""
    capacity = int(capacity_bytes(setup.soc) * load_constants()["usable_memory_share"])
    least = peak_bytes(graph)
    if least > capacity and not setup.options.inplace:
        raise OutOfDeviceMemoryError(least, capacity, setup.soc.name)
    memory = memory_plan(graph, setup.options)
    if memory.reserved_bytes > capacity:
        raise OutOfDeviceMemoryError(memory.reserved_bytes, capacity, setup.soc.name)
    return memory


def _run(ranks: dict[int, Rank], setup: Setup, constants: Constants) -> dict[int, list[Record]]:
    costs = HostCosts(gap=int(constants["dispatch_gap_ns"]), sync_return=int(constants["sync_return_ns"]))
    begins = dict.fromkeys(ranks, BEGIN_NS)
    records: dict[int, list[Record]] = {number: [] for number in ranks}
    for step in range(setup.options.steps):
        plans = {number: plan_of(rank, setup.options, constants, step, begins[number]) for number, rank in ranks.items()}
        for number, record in run_step(plans, begins, costs).items():
            records[number].append(record)
            begins[number] = max(record.end, BEGIN_NS + round((step + 1) * setup.options.sample_s * 1e9))
    return records


def _truth(rank: Rank, records: Sequence[Record], trace: Trace, memory: MemoryPlan, constants: Constants) -> Truth:
    idle = idle_intervals(records, tuple(rank.calls))
    kernels = [time for time in rank.work.times if time.core != "COMMUNICATION"]
    repeats = rank.work.workload.repeats
    return Truth(
        steps=tuple(_step_truth(rank, record, trace, idle, number) for number, record in enumerate(records)),
        idle=idle,
        hbm_bytes=sum(time.hbm_bytes for time in kernels) * repeats,
        kernels=len(kernels) * repeats,
        peak_bytes=memory.peak_bytes,
        reserved_bytes=memory.reserved_bytes,
        fragmentation=memory.fragmentation,
        clock_share=rank.work.heat.clock,
        unknown_operators=rank.work.unknown_operators(constants),
    )


def _step_truth(rank: Rank, record: Record, trace: Trace, idle: IdleIntervals, step: int) -> StepTruth:
    inside = (idle.start_ns >= record.begin) & (idle.start_ns < record.end)
    spent = (idle.end_ns - idle.start_ns)[inside]
    causes = idle.cause[inside]
    operators = rank.work.graph.operators
    busy: Counter[str] = Counter()
    durations = (trace.durations[step].reshape(-1, len(operators))).sum(axis=0).tolist()
    for operator, time, ns in zip(operators, rank.work.times, durations, strict=True):
        if time.core != "COMMUNICATION":
            busy[operator.op_type] += ns
    return StepTruth(
        step_id=str(step + 1),
        step_ns=record.end - record.begin,
        computing_ns=trace.computing[step],
        comm_exposed_ns=trace.comm_exposed[step],
        comm_wait_ns=sum(record.met[place] - record.starts[place] for place in rank.calls),
        idle_ns={cause: int(spent[causes == number].sum()) for number, cause in enumerate(IDLE_CAUSES)},
        busy_ns=dict(busy),
    )
