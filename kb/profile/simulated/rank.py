"""One rank of a run: its workload, the time of its operators, and its plan of every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from kb.domain.soc import Soc
from kb.profile.simulated.chip import Chip, chip_of
from kb.profile.simulated.collectives import transfer_ns
from kb.profile.simulated.constants import UNKNOWN, Constants
from kb.profile.simulated.cost import kernel_times
from kb.profile.simulated.graph import Collective, Graph, Workload
from kb.profile.simulated.host import Events, Loader, launch_ns, merged, padding, segment_events, step_events
from kb.profile.simulated.kernel import KernelTime
from kb.profile.simulated.layout import Layout, Seat
from kb.profile.simulated.noise import kernel_durations, launch_durations
from kb.profile.simulated.options import Options
from kb.profile.simulated.plan import Call, Plan
from kb.profile.simulated.thermal import Activity, Heat, Thermals, activity_of, course, levels_of, settled, thermals_of
from kb.profile.simulated.tiling import Tiling, checked_tiling
from kb.profile.simulated.truth import Ints

ENDLESS_QUEUE = 1 << 30


@dataclass(frozen=True, slots=True)
class Work:
    """What ranks that do the same share: the workload and the time of its operators on a chip at its settled clock."""

    workload: Workload
    times: tuple[KernelTime, ...]
    chip: Chip
    heat: Heat
    thermals: Thermals
    course: tuple[Heat, ...] = ()
    """Of each recorded step, where the clock follows the temperature; then ``times`` are those of the highest clock."""
    levels: Mapping[float, tuple[KernelTime, ...]] = field(default_factory=dict)

    @property
    def graph(self) -> Graph:
        """The segment's graph."""
        return self.workload.segment

    def unknown_operators(self, constants: Constants) -> tuple[str, ...]:
        """Operator types costed by their bytes alone."""
        found = {operator.op_type for operator in self.graph.operators if constants.kinetics(operator.op_type).kind == UNKNOWN}
        return tuple(sorted(found))


@dataclass(slots=True)
class Rank:
    """A rank while it runs: ``durations`` (steps, places) and ``launches`` (steps, segments, launches) in ns with noise."""

    seat: Seat
    work: Work
    durations: Ints
    launches: Ints
    calls: Mapping[int, Call]
    events: Events
    loader: Loader
    needs: Sequence[Sequence[int]] | None = None
    records: list[object] = field(default_factory=list)


def work_of(workload: Workload, seat: Seat, layout: Layout, soc: Soc, options: Options, constants: Constants) -> Work:
    """Time every operator; the clock is the one a long run settles at."""
    tiling = checked_tiling(
        Tiling(
            tile_m=options.tile_m,
            tile_n=options.tile_n,
            tile_k=options.tile_k,
            double_buffer=options.double_buffer,
            swizzle=options.swizzle,
        ),
        soc,
    )
    aicpu = frozenset(name.strip() for name in options.aicpu_ops.split(",") if name.strip())

    def transfer(call: Collective) -> float:
        members = len(layout.members(seat, call.dimension))
        time = transfer_ns(call, members, soc, constants, link_share=options.link_share)
        return time if call.blocking or call.action in ("send", "receive") else time * constants["overlapped_comm_factor"]

    def timed(share: float) -> tuple[Chip, tuple[KernelTime, ...]]:
        clock = msgspec.structs.replace(soc.clock, value=soc.clock.value * share)
        chip = chip_of(msgspec.structs.replace(soc, clock=clock), constants)
        return chip, kernel_times(workload.segment, chip, constants, tiling=tiling, aicpu=aicpu, transfer=transfer)

    chip, times = timed(1.0)
    thermals = thermals_of(soc.family, constants)
    if options.sample_s:
        return _live(workload, timed, thermals, options, constants)
    heat = settled(_use(times, chip, options, constants), options, thermals, constants)
    if heat.clock < 1.0:
        chip, times = timed(heat.clock)
    return Work(workload, times, chip, heat, thermals)


Timed = Callable[[float], tuple[Chip, tuple[KernelTime, ...]]]


def _use(times: tuple[KernelTime, ...], chip: Chip, options: Options, constants: Constants) -> Activity:
    """How busy the parts are over a step, the waits for launches included."""
    busy = sum(max(time.total, 1.0) for time in times)
    idle = max(0.0, launch_ns(options, constants) * (1 if options.graph_launch else len(times)) - busy)
    return activity_of(times, chip, busy + idle)


def _live(workload: Workload, timed: Timed, thermals: Thermals, options: Options, constants: Constants) -> Work:
    """The work of a chip whose clock follows its temperature from step to step."""
    made = {level: timed(level) for level in levels_of(options)}
    heats = course(lambda level: _use(made[level][1], made[level][0], options, constants), options, thermals, constants)
    chip, times = made[max(made)]
    mean = sum(heat.clock for heat in heats) / len(heats)
    watts = sum(heat.power_w for heat in heats) / len(heats)
    levels = {level: level_times for level, (_, level_times) in made.items()}
    return Work(workload, times, chip, Heat(mean, watts, heats[-1].celsius), thermals, heats, levels)


def rank_of(seat: Seat, work: Work, layout: Layout, options: Options, seed: int, constants: Constants) -> Rank:
    """The rank with its noise drawn."""
    rng = np.random.default_rng([seed, seat.rank] if seat.rank else seed)
    operators, repeats = work.graph.operators, work.workload.repeats
    slow = options.slow_rank_share if layout.world > 1 and seat.rank == layout.world - 1 else 1.0
    recorded = constants["capture_task_ns"] if options.capture in ("level1", "level2") else 0.0
    scale = padding(options) / slow
    own = [1.0 if time.core == "COMMUNICATION" else scale for time in work.times]
    durations = kernel_durations(
        [time.total * factor + recorded for time, factor in zip(work.times, own, strict=True)],
        [time.mac + constants["task_overhead_ns"] if time.mac else 0.0 for time in work.times],
        [constants.kinetics(operator.op_type).noise for operator in operators],
        steps=options.steps,
        segments=repeats,
        noise=options.noise,
        constants=constants,
        rng=rng,
    )
    if work.course:
        durations = _clocked(durations, work)
    launches = launch_durations(
        launch_ns(options, constants),
        shape=(options.steps, repeats, 1 if options.graph_launch else len(operators)),
        noise=options.noise,
        constants=constants,
        rng=rng,
    )
    return Rank(
        seat=seat,
        work=work,
        durations=durations.reshape(options.steps, -1),
        launches=launches,
        calls=_calls(work.graph, seat, layout, repeats),
        events=segment_events(work.workload, options, constants),
        loader=Loader(options),
        needs=_needs(work.graph, repeats) if options.streams > 1 else None,
    )


def _clocked(durations: Ints, work: Work) -> Ints:
    """Durations (steps, segments, places) at the clock of each step instead of the highest."""
    scales = {
        level: np.array([own.total / max(1.0, base.total) for own, base in zip(times, work.times, strict=True)])
        for level, times in work.levels.items()
    }
    factor = np.array([scales[heat.clock] for heat in work.course])
    made: Ints = np.round(durations.reshape(len(factor), -1, factor.shape[1]) * factor[:, None, :]).astype(np.int64)
    return made


def plan_of(rank: Rank, options: Options, constants: Constants, step: int, begin: int) -> Plan:
    """What the rank does in a step that begins at ``begin``."""
    work, repeats = rank.work, rank.work.workload.repeats
    length = len(work.times)
    first = step_events(work.workload, options, constants, rank.loader, step, begin)
    launches = rank.launches[step].reshape(-1).tolist()
    if options.graph_launch:
        launches = [launches[place // length] if place % length == 0 else 0 for place in range(length * repeats)]
    shares: list[float] = []
    if rank.needs is not None:
        filled = [min(1.0, time.blocks / (work.chip.cube_cores if time.mac else work.chip.vector_cores)) for time in work.times]
        shares = filled * repeats
    return Plan(
        durations=rank.durations[step].tolist(),
        launches=launches,
        before=merged(rank.events, first),
        calls=rank.calls,
        joins=frozenset(place + length * number for place in work.graph.joins for number in range(repeats)),
        depth=ENDLESS_QUEUE if options.graph_launch else options.stream_depth,
        needs=rank.needs,
        shares=shares,
        streams=options.streams,
    )


def _calls(graph: Graph, seat: Seat, layout: Layout, repeats: int) -> dict[int, Call]:
    """Communication by place, paired with the other ranks' by what it is, who takes part and its turn."""
    calls: dict[int, Call] = {}
    length = len(graph.operators)
    for place, operator in enumerate(graph.operators):
        if not isinstance(operator, Collective):
            continue
        members = layout.members(seat, operator.dimension)
        for number in range(repeats):
            key: tuple[object, ...] = (operator.dimension, members, operator.tag, number)
            if operator.action == "receive":
                key = ("receive", *key)
            calls[place + number * length] = Call(key, members, operator.blocking, eager=operator.action == "send")
    return calls


def _needs(graph: Graph, repeats: int) -> list[tuple[int, ...]]:
    """The places each place depends on: who made its inputs, and who last read what it overwrites."""
    made: dict[int, int] = {}
    found: list[tuple[int, ...]] = []
    length = len(graph.operators)
    for number in range(repeats):
        for place, operator in enumerate(graph.operators):
            sources = {made[tensor.id] for tensor in (*operator.inputs, *operator.outputs) if tensor.id in made}
            found.append(tuple(sources))
            for tensor in operator.outputs:
                made[tensor.id] = place + number * length
    return found
