"""What the host does between launches: data, copies, collector, checkpoints, compilation, waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kb.profile.simulated.constants import Constants
from kb.profile.simulated.graph import Workload
from kb.profile.simulated.options import Options
from kb.profile.simulated.plan import HostEvent

Events = dict[int, list[HostEvent]]
MILLISECOND = 1_000_000
PADDING_OF_ONE_BUCKET = 0.25
"""Extra work when every shape is padded to the longest; less by the number of buckets (assumption)."""


@dataclass(slots=True)
class Loader:
    """Workers that make batches ahead of the training loop; ``ready`` are the times their batches were done."""

    options: Options
    ready: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)

    def wait(self, now: int) -> int:
        """ns until the next batch is there. A worker starts one when it has ended its last and a place is free.

        The first batch is just there: a run that has gone on for long has used up what was made ahead. With ``prefetch``
        0 the loop makes its own.
        """
        cost = round(self.options.loader_ms * MILLISECOND)
        if not cost or not self.options.prefetch:
            return cost
        workers, number = self.options.loader_workers, len(self.ready)
        before = self.ready[number - workers] if number >= workers else now - cost
        room = workers * self.options.prefetch
        freed = self.taken[number - room] if number >= room else before
        done = max(before, freed) + cost
        self.ready.append(done)
        self.taken.append(max(now, done))
        return max(0, done - now)


def launch_ns(options: Options, constants: Constants) -> float:
    """Host time of one launch, the profiler's own work included."""
    if options.graph_launch:
        return constants["graph_launch_ns"] * options.host_scale
    share = (constants["task_queue_share"] if options.task_queue else 1.0) * (constants["affinity_share"] if options.affinity else 1.0)
    recorded = {"none": 0.0, "level0": 0.0, "level1": constants["capture_level1_ns"], "level2": constants["capture_level2_ns"]}[
        options.capture
    ]
    return (
        constants["host_launch_ns"] * options.host_scale * share + recorded + (constants["capture_stack_ns"] if options.with_stack else 0.0)
    )


def copy_ns(workload: Workload, options: Options, constants: Constants) -> int:
    """ns the input takes to the device."""
    rate = constants["copy_rate"] * (1.0 if options.pinned else constants["pageable_share"])
    return round(workload.input_bytes / rate)


def padding(options: Options) -> float:
    """Work with bucketed shapes over that of exact ones."""
    return 1.0 + PADDING_OF_ONE_BUCKET / options.shape_buckets if options.dynamic_shapes and options.shape_buckets else 1.0


def segment_events(workload: Workload, options: Options, constants: Constants) -> Events:
    """Events that every step has: waits between segments, the scheduler, and values the host reads."""
    events: Events = {}
    length = len(workload.segment.operators)
    work = HostEvent("scheduler.step", "framework", "work", round(constants["scheduler_host_ns"]))
    wait = HostEvent("aclrtSynchronizeStream", "acl", "sync", 0, waits=True)
    read = HostEvent("aclrtSynchronizeStream", "acl", "sync", round(constants["host_read_ns"]), waits=True)
    for number in range(workload.repeats):
        first = number * length
        if number:
            events.setdefault(first, []).append(wait)
        if workload.host_work and (number or workload.phase == "decode"):
            events.setdefault(first, []).append(work)
        for count in range(options.host_syncs):
            events.setdefault(first + (count + 1) * length // (options.host_syncs + 1), []).append(read)
    return events


def step_events(workload: Workload, options: Options, constants: Constants, loader: Loader, step: int, begin: int) -> list[HostEvent]:
    """Events ahead of a step's first launch."""
    events = []
    waited = loader.wait(begin)
    if waited:
        events.append(HostEvent("DataLoader.__next__", "loader", "input", waited))
    if workload.input_bytes and not options.async_copy:
        events.append(HostEvent("aclrtMemcpy", "acl", "copy", copy_ns(workload, options, constants)))
    if options.gc_ms and not options.gc_managed:
        events.append(HostEvent("gc.collect", "gc", "gc", round(options.gc_ms * MILLISECOND)))
    if options.checkpoint_ms and not options.async_checkpoint:
        events.append(HostEvent("torch.save", "other", "io", round(options.checkpoint_ms * MILLISECOND)))
    built = shapes_built(options, step)
    events += [HostEvent("aclopCompileAndExecute", "acl", "compile", round(constants["compile_ns"]))] * built
    return events


def shapes_built(options: Options, step: int) -> int:
    """Shapes compiled ahead of a step: every new one, or with buckets only the first few ever."""
    if not (options.jit_compile and options.dynamic_shapes):
        return 0
    if not options.shape_buckets:
        return options.dynamic_shapes
    return min(options.dynamic_shapes, options.shape_buckets) if step == 0 else 0


def merged(segments: Mapping[int, list[HostEvent]], first: list[HostEvent]) -> Events:
    """Both kinds of events by place."""
    return {**segments, 0: [*first, *segments.get(0, ())]} if first else dict(segments)
