"""One simulated run: setup in, session and truth out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from kb.profile.simulated.chip import Chip, chip_of
from kb.profile.simulated.constants import Constants, load_constants
from kb.profile.simulated.cost import kernel_times
from kb.profile.simulated.emission import emit
from kb.profile.simulated.graph import Operator, Workload
from kb.profile.simulated.kernel import KernelTime
from kb.profile.simulated.memory import OutOfDeviceMemoryError, peak_bytes
from kb.profile.simulated.models.names import model
from kb.profile.simulated.noise import kernel_durations, launch_durations
from kb.profile.simulated.options import checked
from kb.profile.simulated.setup import Setup, setup_of
from kb.profile.simulated.stream import IDLE_CAUSES, HostCosts
from kb.profile.simulated.timeline import Timeline, idle_intervals, run
from kb.profile.simulated.truth import StepTruth, Truth
from kb.session.session import Session

__all__ = ["Setup", "setup_of", "simulate"]


def simulate(setup: Setup) -> tuple[Session, Truth]:
    """The profile of ``setup`` and what really happened.

    Deterministic: equal setups give equal results. Raises NotFoundError for an unknown model, UsageError
    for impossible options, OutOfDeviceMemoryError when the workload does not fit.
    """
    entry = model(setup.model)
    constants = load_constants()
    chip = chip_of(setup.soc, constants)
    workload = entry.build(checked(setup.options))
    peak = _fitting(workload, chip, constants, setup.soc.name)
    times = kernel_times(workload.segment, chip, constants)
    timeline = _timeline(setup, workload, times, constants)
    session = emit(setup, entry, workload, times, timeline, chip, constants)
    return session, _truth(workload, times, timeline, peak)


def _fitting(workload: Workload, chip: Chip, constants: Constants, name: str) -> int:
    peak = peak_bytes(workload.segment)
    capacity = int(chip.memory_bytes * constants["usable_memory_share"])
    if peak > capacity:
        raise OutOfDeviceMemoryError(peak, capacity, name)
    return peak


def _timeline(setup: Setup, workload: Workload, times: Sequence[KernelTime], constants: Constants) -> Timeline:
    options = setup.options
    rng = np.random.default_rng(setup.seed)
    durations = kernel_durations(
        [time.total for time in times],
        [time.mac + constants["task_overhead_ns"] if time.mac else 0.0 for time in times],
        [constants.operators[operator.op_type].noise for operator in workload.segment.operators],
        steps=options.steps,
        segments=workload.repeats,
        noise=options.noise,
        constants=constants,
        rng=rng,
    )
    launches = launch_durations(
        constants["graph_launch_ns" if options.graph_launch else "host_launch_ns"],
        shape=(options.steps, workload.repeats, 1 if options.graph_launch else len(times)),
        noise=options.noise,
        constants=constants,
        rng=rng,
    )
    costs = HostCosts(
        gap=int(constants["dispatch_gap_ns"]),
        sync_return=int(constants["sync_return_ns"]),
        work=int(constants["scheduler_host_ns"]) if workload.host_work else 0,
    )
    return run(durations, launches, depth=options.stream_depth, costs=costs)


def _truth(workload: Workload, times: Sequence[KernelTime], timeline: Timeline, peak: int) -> Truth:
    steps = range(len(timeline.tails))
    return Truth(
        steps=tuple(_step_truth(workload.segment.operators, timeline, step) for step in steps),
        idle=idle_intervals(timeline),
        hbm_bytes=sum(time.hbm_bytes for time in times) * workload.repeats,
        kernels=len(times) * workload.repeats,
        peak_bytes=peak,
    )


def _step_truth(operators: Sequence[Operator], timeline: Timeline, step: int) -> StepTruth:
    inside = timeline.step == step
    durations = timeline.durations[inside]
    idle = dict(zip(IDLE_CAUSES, timeline.waits[inside].sum(axis=0).tolist(), strict=True))
    idle["sync"] += int(timeline.tails[step])
    busy: Counter[str] = Counter()
    for operator, spent in zip(operators, durations.reshape(-1, len(operators)).sum(axis=0).tolist(), strict=True):
        busy[operator.op_type] += spent
    return StepTruth(
        step_id=str(step + 1),
        step_ns=int(timeline.bounds[step + 1] - timeline.bounds[step]),
        computing_ns=int(durations.sum()),
        idle_ns=idle,
        busy_ns=dict(busy),
    )
