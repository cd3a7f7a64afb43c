"""A finished run of one rank as the session a profiler would have written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from kb.domain.soc import SocRef
from kb.domain.text import Text
from kb.profile.simulated.constants import Constants
from kb.profile.simulated.counters import counters
from kb.profile.simulated.emission_comm import comm_links, comm_ops, comm_tasks
from kb.profile.simulated.emission_device import allocation_rows, copy_rows, counter_rows
from kb.profile.simulated.emission_origin import origin
from kb.profile.simulated.graph import Collective, CubeOperator, Operator, Tensor
from kb.profile.simulated.layout import Layout
from kb.profile.simulated.memory import MemoryPlan
from kb.profile.simulated.models.names import ModelEntry
from kb.profile.simulated.rank import Rank
from kb.profile.simulated.setup import SIMULATOR, Setup, as_options
from kb.profile.simulated.trace import Trace
from kb.session.builder import Strings, session, table
from kb.session.meta import Capture, Missing, Model, SessionMeta
from kb.session.session import Array, Session, Table

_LEVELS: Final = {"none": "Level1", "level0": "Level0", "level1": "Level1", "level2": "Level2"}
_STEP_KINDS: Final = {"training": "train", "inference": "infer", "prefill": "prefill", "decode": "decode"}


def emit(setup: Setup, entry: ModelEntry, rank: Rank, layout: Layout, trace: Trace, memory: MemoryPlan, constants: Constants) -> Session:
    """All tables of the session, with metadata to run it again."""
    strings = Strings()
    tables = [
        _kernels(setup, rank, trace, constants, strings),
        _step_trace(trace, strings),
        _steps(rank, trace, strings),
        _host_ops(trace, strings),
        *comm_ops(rank, layout, trace, strings),
        *comm_tasks(rank, layout, trace, strings),
        *comm_links(rank, layout, trace, strings),
        *copy_rows(rank, trace, setup.options, constants, strings),
        *allocation_rows(rank, trace, memory, strings),
        *counter_rows(rank, trace, memory, strings),
    ]
    return session(_meta(setup, entry, rank, layout, constants), tables, strings)


def _kernels(setup: Setup, rank: Rank, trace: Trace, constants: Constants, strings: Strings) -> Table:
    operators, times = rank.work.graph.operators, rank.work.times
    rows = trace.starts.size
    repeats = rows // len(operators)
    spelt = _Spelling(constants, rank.work.workload.names)

    def tiled(describe: Callable[[Operator], str]) -> Array:
        return np.tile(strings.codes([describe(operator) for operator in operators]), repeats)

    columns: dict[str, Array] = {
        "start_ns": trace.starts.reshape(-1),
        "duration_ns": trace.durations.reshape(-1),
        "wait_ns": trace.waits.reshape(-1),
        "step_id": np.repeat(_step_ids(len(trace.starts), strings), trace.starts.shape[1]),
        "name": tiled(spelt.name),
        "op_type": tiled(lambda operator: operator.op_type),
        "core": np.tile(strings.codes([time.core for time in times]), repeats),
        "stream": np.where(trace.streams < 0, setup.options.streams, trace.streams).reshape(-1),
        "task_id": np.arange(rows),
        "connection_id": _connections(trace),
        "block": np.tile([time.blocks for time in times], repeats),
        "mix_block": np.tile([time.mix_blocks for time in times], repeats),
        "op_state": np.full(rows, strings.code("static" if setup.options.graph_launch else "dynamic")),
        "input_shapes": tiled(lambda operator: spelt.shapes(operator.inputs)),
        "input_dtypes": tiled(lambda operator: ";".join([tensor.dtype for tensor in operator.inputs])),
        "input_formats": tiled(_formats),
        "output_shapes": tiled(lambda operator: spelt.shapes(operator.outputs)),
        "output_dtypes": tiled(lambda operator: ";".join([tensor.dtype for tensor in operator.outputs])),
        "output_formats": tiled(lambda operator: ";".join(["ND"] * len(operator.outputs))),
        **counters(times, trace.durations.reshape(-1), rank.work.chip, constants, clock=_clock(rank, rows)),
    }
    return table("kernels", columns | origin("kernels", rows, strings), strings)


def _clock(rank: Rank, rows: int) -> Array | None:
    """Clock of each kernel over that of the chip, where it follows the temperature."""
    course = rank.work.course
    if not course:
        return None
    return np.repeat([heat.clock / max(rank.work.levels) for heat in course], rows // len(course))


class _Spelling:
    """Text of operators; equal shapes and types are spelt once."""

    def __init__(self, constants: Constants, given: Mapping[int, str]) -> None:
        self._constants = constants
        self._given = given
        self._shapes: dict[tuple[int, ...], str] = {}
        self._names: dict[str, str] = {}

    def name(self, operator: Operator) -> str:
        """The kernel's name: the model's own for the operator, else what the kernel is called."""
        if isinstance(operator, Collective):
            return f"{operator.op_type}_{operator.dimension}_{operator.tag}"
        if self._given and operator.outputs and operator.outputs[0].id in self._given:
            return self._given[operator.outputs[0].id]
        found = self._names.get(operator.op_type)
        if found is None:
            found = self._names[operator.op_type] = self._constants.kernel_name(operator.op_type)
        return found

    def shapes(self, tensors: Sequence[Tensor]) -> str:
        """Operands split by ``;``, dimensions by ``,``."""
        return ";".join([self._shapes.get(tensor.shape) or self._spell(tensor.shape) for tensor in tensors])

    def _spell(self, shape: tuple[int, ...]) -> str:
        text = self._shapes[shape] = ",".join(map(str, shape))
        return text


def _formats(operator: Operator) -> str:
    if not (isinstance(operator, CubeOperator) and operator.fractal):
        return ";".join(["ND"] * len(operator.inputs))
    return ";".join("FRACTAL_NZ" if tensor.weight and len(tensor.shape) == 2 else "ND" for tensor in operator.inputs)


def _step_ids(steps: int, strings: Strings) -> Array:
    """Codes of "1", "2", .."""
    return strings.codes([str(number + 1) for number in range(steps)])


def _connections(trace: Trace) -> Array:
    """The launch of each kernel: its own, or the last one before it that submitted a whole segment."""
    places = trace.starts.shape[1]
    found, base = [], 0
    for record in trace.records:
        launched = np.zeros(places, dtype=np.int64)
        launched[[place for place, _, _ in record.launched]] = 1
        found.append(base + np.cumsum(launched) - 1)
        base += len(record.launched)
    return np.concatenate(found)


def _step_trace(trace: Trace, strings: Strings) -> Table:
    steps = len(trace.records)
    whole = np.array([record.end - record.begin for record in trace.records], dtype=np.int64)
    computing, exposed = np.array(trace.computing), np.array(trace.comm_exposed)
    communication, bubble = np.array(trace.communication), np.array(trace.bubble)
    columns: dict[str, Array] = {
        "step_id": _step_ids(steps, strings),
        "computing_ns": computing,
        "comm_not_overlapped_ns": exposed,
        "overlapped_ns": communication - exposed,
        "communication_ns": communication,
        "free_ns": whole - computing - exposed,
        "stage_ns": whole - bubble,
        "bubble_ns": bubble,
        "preparing_ns": np.zeros(steps, dtype=np.int64),
    }
    return table("step_trace", columns | origin("step_trace", steps, strings), strings)


def _steps(rank: Rank, trace: Trace, strings: Strings) -> Table:
    steps = len(trace.records)
    columns: dict[str, Array] = {
        "step_id": _step_ids(steps, strings),
        "start_ns": np.array([record.begin for record in trace.records]),
        "end_ns": np.array([record.end for record in trace.records]),
        "kind": np.full(steps, strings.code(_STEP_KINDS[rank.work.workload.phase])),
        "warmup": (np.arange(steps) == 0).astype(np.int32) if steps > 1 else np.zeros(steps, dtype=np.int32),
    }
    return table("steps", columns | origin("steps", steps, strings), strings)


def _host_ops(trace: Trace, strings: Strings) -> Table:
    launches = np.array([pair for record in trace.records for pair in record.launched], dtype=np.int64).reshape(-1, 3)
    events = [entry for record in trace.records for entry in record.host]
    ends = [(record.end - record.tail, record.end) for record in trace.records]
    busy = [(event.name, event.layer, begin, end) for event, begin, end in events]
    busy += [("aclrtSynchronizeStream", "acl", begin, end) for begin, end in ends]
    starts = np.concatenate([launches[:, 1], np.array([row[2] for row in busy], dtype=np.int64)])
    stops = np.concatenate([launches[:, 2], np.array([row[3] for row in busy], dtype=np.int64)])
    order = np.argsort(starts, kind="stable")
    count = len(launches)
    columns: dict[str, Array] = {
        "start_ns": starts[order],
        "duration_ns": (stops - starts)[order],
        "name": np.concatenate([np.full(count, strings.code("launch")), strings.codes([row[0] for row in busy])])[order],
        "layer": np.concatenate([np.full(count, strings.code("node")), strings.codes([row[1] for row in busy])])[order],
        "thread": np.zeros(len(starts)),
        "connection_id": np.concatenate([np.arange(count), np.full(len(busy), -1)])[order],
    }
    return table("host_ops", columns | origin("host_ops", len(starts), strings), strings)


def _meta(setup: Setup, entry: ModelEntry, rank: Rank, layout: Layout, constants: Constants) -> SessionMeta:
    chip, options, workload = rank.work.chip, setup.options, rank.work.workload
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
        Missing(
            what=part,
            why=Text(f"仿真的 {setup.model} 计算图不含这一部分", f"the simulated {setup.model} graph ends before it"),
            capture=Text("在真机上采集整条流水线", "profile the whole pipeline on a device"),
        )
        for part in workload.left_out
    )
    return SessionMeta(
        name=setup.label if layout.world == 1 else f"{setup.label}-rank{rank.seat.rank}",
        origin="simulated",
        capture=Capture(format="simulated", level=_LEVELS[options.capture], metrics="PipeUtilization"),
        rank=rank.seat.rank,
        world_size=layout.world,
        stage=rank.seat.stage if layout.pipeline > 1 else None,
        device=rank.seat.rank,
        parallel=layout.parallel(rank.seat),
        model=Model(name=setup.model, type=entry.type, phase=workload.phase, batch=options.batch),
        soc=soc,
        options=as_options(setup),
        simulator=SIMULATOR,
        missing=(*left_out, *_unknown(rank, constants), *_NOT_SIMULATED),
    )


def _unknown(rank: Rank, constants: Constants) -> Iterator[Missing]:
    """Operators without a model of their own."""
    for op_type in rank.work.unknown_operators(constants):
        near = constants.nearest(op_type)
        yield Missing(
            what=f"cost of {op_type}",
            why=Text(
                f"没有该算子的模型，只按搬运字节计时；最接近的已知算子是 {near}",
                f"no model of it: costed by the bytes it moves; nearest known: {near}",
            ),
            capture=Text("在真机上测量该算子", "measure it on a device"),
        )


_NOT_SIMULATED = (
    Missing(
        what="host_ops.stack",
        why=Text("仿真的主机没有 Python 调用栈", "a simulated host has no Python frames"),
        capture=Text("在真机上用 with_stack=True 采集", "with_stack=True on a device"),
    ),
)
