"""A finished timeline as the session a profiler would have written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kb.domain.soc import SocRef
from kb.profile.simulated.chip import Chip
from kb.profile.simulated.constants import Constants
from kb.profile.simulated.counters import counters
from kb.profile.simulated.graph import Operator, Tensor, Workload
from kb.profile.simulated.kernel import KernelTime
from kb.profile.simulated.models.names import ModelEntry
from kb.profile.simulated.setup import SIMULATOR, Setup, as_options
from kb.profile.simulated.timeline import Timeline
from kb.profile.simulated.truth import Ints
from kb.session.builder import Strings, session, table
from kb.session.meta import Capture, Missing, Model, SessionMeta
from kb.session.session import Array, Session, Table

FIRST_ROW = 2
"""Line of the first row below a header."""


def emit(
    setup: Setup, entry: ModelEntry, workload: Workload, times: Sequence[KernelTime], timeline: Timeline, chip: Chip, constants: Constants
) -> Session:
    """The session: kernels, step totals, steps and host calls, with metadata to run it again."""
    strings = Strings()
    tables = [
        _kernels(setup, workload.segment.operators, times, timeline, chip, constants, strings),
        _step_trace(timeline, strings),
        _steps(timeline, strings),
        _host_ops(timeline, strings),
    ]
    return session(_meta(setup, entry, workload, chip), tables, strings)


def _kernels(
    setup: Setup,
    operators: Sequence[Operator],
    times: Sequence[KernelTime],
    timeline: Timeline,
    chip: Chip,
    constants: Constants,
    strings: Strings,
) -> Table:
    rows = len(timeline.starts)
    repeats = rows // len(operators)

    def tiled(describe: Callable[[Operator], str]) -> Array:
        return np.tile(strings.codes([describe(operator) for operator in operators]), repeats)

    columns: dict[str, Array] = {
        "start_ns": timeline.starts,
        "duration_ns": timeline.durations,
        "wait_ns": timeline.waits.sum(axis=1),
        "step_id": _step_ids(timeline.step, strings),
        "name": tiled(lambda operator: _kernel_name(operator, constants)),
        "op_type": tiled(lambda operator: operator.op_type),
        "core": np.tile(strings.codes([time.core for time in times]), repeats),
        "stream": np.zeros(rows),
        "task_id": np.arange(rows),
        "connection_id": _connections(timeline),
        "block": np.tile([time.blocks for time in times], repeats),
        "mix_block": np.tile([time.mix_blocks for time in times], repeats),
        "op_state": np.full(rows, strings.code("static" if setup.options.graph_launch else "dynamic")),
        "input_shapes": tiled(lambda operator: _shapes(operator.inputs)),
        "input_dtypes": tiled(lambda operator: ";".join(tensor.dtype for tensor in operator.inputs)),
        "input_formats": tiled(lambda operator: ";".join("ND" for _ in operator.inputs)),
        "output_shapes": tiled(lambda operator: _shapes(operator.outputs)),
        "output_dtypes": tiled(lambda operator: ";".join(tensor.dtype for tensor in operator.outputs)),
        "output_formats": tiled(lambda operator: ";".join("ND" for _ in operator.outputs)),
        **counters(times, timeline.durations, chip, constants),
    }
    return table("kernels", columns | _rows_of("kernels", rows, strings), strings)


def _kernel_name(operator: Operator, constants: Constants) -> str:
    kinetics = constants.operators[operator.op_type]
    return f"{kinetics.api}_{kinetics.kernel}_{operator.op_type}"


def _shapes(tensors: Sequence[Tensor]) -> str:
    return ";".join(",".join(map(str, tensor.shape)) for tensor in tensors)


def _step_ids(steps: Ints, strings: Strings) -> Array:
    """Codes of "1", "2", .. for step numbers from 0."""
    return strings.codes([str(number + 1) for number in range(int(steps.max()) + 1)])[steps]


def _connections(timeline: Timeline) -> Array:
    """The launch of each kernel: its own, or the one that submitted its segment."""
    launches = len(timeline.launch_starts)
    return np.arange(len(timeline.starts)) // (len(timeline.starts) // launches)


def _rows_of(name: str, rows: int, strings: Strings) -> dict[str, Array]:
    return {"file": np.full(rows, strings.code(f"simulated/{name}")), "row": np.arange(FIRST_ROW, rows + FIRST_ROW)}


def _step_trace(timeline: Timeline, strings: Strings) -> Table:
    steps = len(timeline.tails)
    computing = np.zeros(steps, dtype=np.int64)
    np.add.at(computing, timeline.step, timeline.durations)
    stage = np.diff(timeline.bounds)
    nothing = np.zeros(steps, dtype=np.int64)
    columns: dict[str, Array] = {
        "step_id": _step_ids(np.arange(steps), strings),
        "computing_ns": computing,
        "comm_not_overlapped_ns": nothing,
        "overlapped_ns": nothing,
        "communication_ns": nothing,
        "free_ns": stage - computing,
        "stage_ns": stage,
        "bubble_ns": nothing,
        "preparing_ns": nothing,
    }
    return table("step_trace", columns | _rows_of("step_trace", steps, strings), strings)


def _steps(timeline: Timeline, strings: Strings) -> Table:
    steps = len(timeline.tails)
    columns: dict[str, Array] = {
        "step_id": _step_ids(np.arange(steps), strings),
        "start_ns": timeline.bounds[:-1],
        "end_ns": timeline.bounds[1:],
        "kind": np.full(steps, strings.code("infer")),
        "warmup": (np.arange(steps) == 0).astype(np.int32),
    }
    return table("steps", columns | _rows_of("steps", steps, strings), strings)


def _host_ops(timeline: Timeline, strings: Strings) -> Table:
    launches, syncs, work = len(timeline.launch_starts), len(timeline.sync_starts), len(timeline.work_starts)
    layers = {"launch": "node", "aclrtSynchronizeStream": "acl", "scheduler.step": "framework"}
    counts = {"launch": launches, "aclrtSynchronizeStream": syncs, "scheduler.step": work}
    starts = np.concatenate([timeline.launch_starts, timeline.sync_starts, timeline.work_starts])
    durations = np.concatenate(
        [timeline.launch_ends - timeline.launch_starts, timeline.sync_ends - timeline.sync_starts, np.full(work, timeline.work_ns)]
    )
    order = np.argsort(starts, kind="stable")
    columns: dict[str, Array] = {
        "start_ns": starts[order],
        "duration_ns": durations[order],
        "name": np.repeat(strings.codes(list(counts)), list(counts.values()))[order],
        "layer": np.repeat(strings.codes(list(layers.values())), list(counts.values()))[order],
        "thread": np.zeros(len(starts)),
        "connection_id": np.concatenate([np.arange(launches), np.full(syncs + work, -1)])[order],
    }
    return table("host_ops", columns | _rows_of("host_ops", len(starts), strings), strings)


def _meta(setup: Setup, entry: ModelEntry, workload: Workload, chip: Chip) -> SessionMeta:
    soc = SocRef(
        id=setup.soc.id,
        reported_name=setup.soc.name,
        family=setup.soc.family,
        cores=chip.cube_cores,
        clock_mhz=chip.ghz * 1e3,
        confidence="high",
        how="simulator",
    )
    left_out = tuple(
        Missing(what=part, why=f"the simulated {setup.model} graph ends before it", capture="profile the whole pipeline on a device")
        for part in workload.left_out
    )
    return SessionMeta(
        name=setup.label,
        origin="simulated",
        capture=Capture(format="simulated", level="Level1", metrics="PipeUtilization"),
        rank=0,
        world_size=1,
        device=0,
        model=Model(name=setup.model, type=entry.type, phase="inference", batch=setup.options.batch),
        soc=soc,
        options=as_options(setup),
        simulator=SIMULATOR,
        missing=(*left_out, *_NOT_SIMULATED),
    )


_NOT_SIMULATED = (
    Missing(what="allocations", why="the simulator reports the peak only", capture="memory profiling on a device"),
    Missing(what="host_ops.stack", why="a simulated host has no Python frames", capture="with_stack=True on a device"),
    Missing(what="copies", why="inputs are taken to be on the device", capture="profile on a device"),
)
