"""How long the steps of a setup are, without writing a profile: what trials of many settings need, at a part of the cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from kb.errors import UsageError
from kb.profile.simulated.chip import capacity_bytes
from kb.profile.simulated.constants import Constants, load_constants
from kb.profile.simulated.engine import run_step
from kb.profile.simulated.graph import Graph, Workload
from kb.profile.simulated.layout import Layout, Seat, layout_of
from kb.profile.simulated.memory import OutOfDeviceMemoryError, memory_plan, peak_bytes
from kb.profile.simulated.models.names import model
from kb.profile.simulated.options import Options, checked
from kb.profile.simulated.plan import HostCosts
from kb.profile.simulated.rank import Rank, Work, plan_of, rank_of, work_of
from kb.profile.simulated.setup import Setup
from kb.profile.simulated.transformation import transformed

Memo = dict[object, object]
"""What setups of one family of trials share: graphs, memory plans and kernel times. The caller owns it and drops it."""

_RUN_ONLY: Final = (
    "stream_depth", "streams", "host_syncs", "dynamic_shapes", "shape_buckets", "jit_compile", "loader_ms", "loader_workers", "prefetch",
    "pinned", "async_copy", "gc_ms", "gc_managed", "checkpoint_ms", "async_checkpoint", "slow_rank_share", "steps", "noise",
)  # fmt: skip
"""Options that no graph, memory plan or kernel time depends on (``host_scale``, ``graph_launch``, ``task_queue`` and ``affinity``
do: through the heat of a busier device)."""
_GRAPH_FREE: Final = (
    *_RUN_ONLY, "host_scale", "graph_launch", "task_queue", "affinity", "cooling", "clock_cap", "tile_m", "tile_n", "tile_k", "swizzle",
    "double_buffer", "aicpu_ops", "link_share", "capture", "with_stack",
)  # fmt: skip
_MEMORY: Final = ("planner", "inplace", "expandable", "defragment", "workspace_mb")
_ROOM: Final = 0.4
"""Where values alive at once stay below this part of the memory no planner of ours runs out of it (powers of two at most double
every block), so its plan, quadratic in the blocks, is not made."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """``steps_ns`` of each step, the longest rank's; ``kernels`` and their summed ns in rank 0's last step."""

    steps_ns: tuple[int, ...]
    kernels: int
    kernel_ns: int

    @property
    def step_ns(self) -> int:
        """The middle one of the steps after the warm-up."""
        later = sorted(self.steps_ns[1:] or self.steps_ns)
        return later[(len(later) - 1) // 2]


def step_lengths(setup: Setup, memo: Memo) -> Lengths:
    """The step lengths that ``simulate_ranks`` would give, for a model known by name.

    Raises what ``simulate_ranks`` raises: OutOfDeviceMemoryError, UsageError, NotFoundError.
    """
    options, constants = checked(setup.options), _constants(memo)
    layout = layout_of(options)
    _check_layout(setup)
    ranks = {number: _rank(setup, layout, number, constants, memo) for number in range(layout.world)}
    costs = HostCosts(gap=int(constants["dispatch_gap_ns"]), sync_return=int(constants["sync_return_ns"]))
    begins = dict.fromkeys(ranks, 0)
    steps = []
    for step in range(options.steps):
        plans = {number: plan_of(rank, options, constants, step, begins[number]) for number, rank in ranks.items()}
        ends = {number: record.end for number, record in run_step(plans, begins, costs).items()}
        steps.append(max(ends[number] - begins[number] for number in ranks))
        begins = ends
    own = np.array([time.core != "COMMUNICATION" for time in ranks[0].work.times])
    last = ranks[0].durations[-1].reshape(-1, len(own))[:, own]
    return Lengths(tuple(steps), last.size, int(last.sum()))


def _check_layout(setup: Setup) -> None:
    known = model(setup.model).dimensions
    wrong = [
        name for name in ("tensor", "pipeline", "data", "expert") if getattr(setup.options, f"{name}_parallel") > 1 and name not in known
    ]
    if wrong:
        raise UsageError(f"{setup.model} cannot be split in {', '.join(wrong)}", allowed=", ".join(known) or "no parallel degree")


def _rank(setup: Setup, layout: Layout, number: int, constants: Constants, memo: Memo) -> Rank:
    seat = layout.seat(number)
    work = _work(setup, layout, seat, constants, memo)
    return rank_of(seat, work, layout, setup.options, setup.seed, constants)


def _constants(memo: Memo) -> Constants:
    found = memo.get("constants")
    if not isinstance(found, Constants):
        found = memo["constants"] = load_constants()
    return found


def _work(setup: Setup, layout: Layout, seat: Seat, constants: Constants, memo: Memo) -> Work:
    key = ("work", setup.model, setup.soc.id, seat.stage, seat.expert, _without(setup.options, _RUN_ONLY))
    found = memo.get(key)
    if isinstance(found, Work):
        return found
    workload = _workload(setup, seat, memo)
    _check_memory(workload.segment, setup, constants)
    work = memo[key] = work_of(workload, seat, layout, setup.soc, setup.options, constants)
    return work


def _workload(setup: Setup, seat: Seat, memo: Memo) -> Workload:
    key = ("workload", setup.model, seat.stage, seat.expert, _without(setup.options, (*_GRAPH_FREE, *_MEMORY)))
    found = memo.get(key)
    if isinstance(found, Workload):
        return found
    built = model(setup.model).build(setup.options, seat)
    workload = memo[key] = msgspec.structs.replace(built, segment=transformed(built.segment, setup.options))
    return workload


def _check_memory(graph: Graph, setup: Setup, constants: Constants) -> None:
    capacity = int(capacity_bytes(setup.soc) * constants["usable_memory_share"])
    least = peak_bytes(graph)
    if least > capacity and not setup.options.inplace:
        raise OutOfDeviceMemoryError(least, capacity, setup.soc.name)
    if least < _ROOM * capacity and setup.options.planner != "none":
        return
    reserved = memory_plan(graph, setup.options).reserved_bytes
    if reserved > capacity:
        raise OutOfDeviceMemoryError(reserved, capacity, setup.soc.name)


def _without(options: Options, names: tuple[str, ...]) -> tuple[object, ...]:
    return tuple(getattr(options, name) for name in Options.__struct_fields__ if name not in names)
