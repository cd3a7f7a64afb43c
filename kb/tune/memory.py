"""A memory scheduler: lifetimes of values, then techniques one after the other, each with what it does to peak, fragmentation and
calls of the device allocator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from kb.domain.catalogue import StrategyId
from kb.domain.text import Text
from kb.errors import UsageError
from kb.profile.simulated.chip import chip_of
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.cost import kernel_times
from kb.profile.simulated.graph import Graph
from kb.profile.simulated.layout import layout_of
from kb.profile.simulated.memory import ALIGNMENT, lifetimes, place_blocks
from kb.profile.simulated.options import Options, Planner
from kb.profile.simulated.run import last_step_ns
from kb.profile.simulated.setup import Setup
from kb.tune.allocators import growths, moved_bytes, pooled
from kb.tune.entries import entry_for, graph_of
from kb.tune.recomputation import Span, checkpointed, largest_live, turn_of

_SHOWN: Final = 8


class Technique(msgspec.Struct, frozen=True, kw_only=True):
    """A way to use less: the options it sets, and the catalogue strategy it stands for. Recomputation sets none: the scheduler
    itself decides what is made again (see ``checkpointed``)."""

    id: str
    name: Text
    strategy: StrategyId
    change: Mapping[str, str | bool]


TECHNIQUES: Final[Mapping[str, Technique]] = MappingProxyType(
    {
        item.id: item
        for item in (
            Technique(
                id="buffer_reuse", name=Text("显存复用", "reuse of dead buffers"), strategy="reuse_memory", change={"planner": "best_fit"}
            ),
            Technique(
                id="inplace_activation", name=Text("原地激活", "in-place activations"), strategy="enable_inplace", change={"inplace": True}
            ),
            Technique(id="memory_pooling", name=Text("内存池", "memory pool"), strategy="enable_memory_pool", change={"planner": "pool"}),
            Technique(
                id="fragmentation_defrag",
                name=Text("碎片整理", "defragmentation"),
                strategy="defragment_memory",
                change={"defragment": True},
            ),
            Technique(id="gradient_checkpointing", name=Text("重计算", "recomputation"), strategy="tune_recompute", change={}),
        )
    }
)


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of one step. ``peak_b`` alive at most and ``reserved_b`` held, weights in both; ``fragmentation`` = share (0..1) of
    the held activations that no live value needs; ``allocations``: calls of the device allocator a step; ``moved_b`` that
    defragmentation copies. ``step_ns`` the step's time, what moving takes included."""

    peak_b: int
    reserved_b: int
    weight_b: int
    fragmentation: float
    allocations: int
    moved_b: int
    step_ns: int


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One technique on top of those before it; ``after`` None: it does not apply, ``why`` says so."""

    technique: str
    after: Usage | None
    why: Text = Text()


class Alive(msgspec.Struct, frozen=True, kw_only=True):
    """A value alive at the peak: who makes it, and the operators (places) it lives between."""

    operator: str
    first: int
    last: int
    size_b: int


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """Before, each technique, and what fills the peak before."""

    before: Usage
    rows: tuple[Row, ...]
    peak: tuple[Alive, ...]
    values: int

    @property
    def after(self) -> Usage:
        """Usage with every technique that applies."""
        return next((row.after for row in reversed(self.rows) if row.after is not None), self.before)


def schedule(setup: Setup, techniques: Sequence[str], *, pool_b: int) -> Schedule:
    """Apply ``techniques`` in order, each on top of the earlier ones. ``pool_b`` is the most a pool may hold.

    Raises UsageError for an unknown technique, OutOfDeviceMemoryError when the run does not fit before.
    """
    unknown = [name for name in techniques if name not in TECHNIQUES]
    if unknown:
        raise UsageError(f"no technique {unknown[0]!r}", allowed=", ".join(TECHNIQUES))
    before = usage_of(setup, pool_b)
    state, last, rows, again = setup, before, list[Row](), False
    for name in techniques:
        changed, recomputed = _changed(state, TECHNIQUES[name]), again or name == _CHECKPOINTING
        why = _pointless(setup, name) if (changed, recomputed) != (state, again) else Text("已经启用", "in place already")
        after = None if why.en else usage_of(changed, pool_b, recomputed=recomputed)
        if after is not None and not _less(after, last):
            after, why = None, Text("没有减少，未采用", "nothing gets less: left out")
        rows.append(Row(technique=name, after=after, why=why))
        if after is not None:
            state, last, again = changed, after, recomputed
    graph = graph_of(setup)
    return Schedule(before=before, rows=tuple(rows), peak=_at_peak(graph, setup.options), values=len(lifetimes(graph)))


_CHECKPOINTING: Final = "gradient_checkpointing"


def _less(after: Usage, before: Usage) -> bool:
    """Less held, or as much with a lower peak or fewer calls."""
    return (after.reserved_b, after.peak_b, after.allocations) < (before.reserved_b, before.peak_b, before.allocations)


def _changed(setup: Setup, technique: Technique) -> Setup:
    return msgspec.structs.replace(setup, options=msgspec.structs.replace(setup.options, **technique.change))


def _pointless(setup: Setup, name: str) -> Text:
    if name == _CHECKPOINTING and not _trains(setup):
        return Text("推理不保留激活，无可重算", "inference keeps no activations to make again")
    return Text()


def _trains(setup: Setup) -> bool:
    return entry_for(setup).build(setup.options, layout_of(setup.options).seat(0)).phase == "training"


def usage_of(setup: Setup, pool_b: int, *, recomputed: bool = False) -> Usage:
    """Memory and time of a setup; ``recomputed`` drops forward values and makes them again. Raises OutOfDeviceMemoryError when
    it does not fit."""
    graph, options = graph_of(setup), setup.options
    chip = chip_of(setup.soc, load_constants())
    alive, again = checkpointed(graph) if recomputed else (lifetimes(graph, inplace=options.inplace), ())
    live = largest_live(alive)
    arena, calls = _held(alive, options.planner, pool_b)
    arena = live if options.defragment else max(arena, live)
    moved = moved_bytes(alive, live + ALIGNMENT * len(alive)) if options.defragment else 0
    weights = graph.weight_bytes()
    times = kernel_times(graph, chip, load_constants()) if again else ()
    # A move reads and writes device memory.
    extra = 2 * moved / chip.hbm_rate + sum(times[place].total for place in again)
    return Usage(
        peak_b=weights + live,
        reserved_b=weights + arena,
        weight_b=weights,
        fragmentation=1.0 - live / arena if arena else 0.0,
        allocations=calls,
        moved_b=moved,
        step_ns=last_step_ns(setup) + round(extra),
    )


def _held(alive: Sequence[Span], planner: Planner, pool_b: int) -> tuple[int, int]:
    """B the allocator holds for values, and its calls a step."""
    if planner == "pool":
        return pooled(alive, pool_b)
    blocks = place_blocks(alive, planner)
    arena = max((block.offset + block.size for block in blocks), default=0)
    return arena, len(alive) if planner == "none" else growths(blocks)


def _at_peak(graph: Graph, options: Options) -> tuple[Alive, ...]:
    alive = lifetimes(graph, inplace=options.inplace)
    when = turn_of(alive)
    there = sorted((item for item in alive if item[0] <= when <= item[1]), key=lambda item: -item[2])
    return tuple(
        Alive(operator=graph.operators[first].op_type, first=first, last=last, size_b=size) for first, last, size in there[:_SHOWN]
    )
