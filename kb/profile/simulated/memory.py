"""Device memory of a graph: lifetimes of its values, and where an allocator puts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kb.errors import KbError
from kb.profile.simulated.graph import Collective, Elementwise, Graph, Tensor
from kb.profile.simulated.options import Options, Planner

ALIGNMENT: Final = 512
"""Blocks start on multiples of this many B, as the vendor's allocator places them."""
SEGMENT: Final = 2 * 1024**2
"""B an expandable segment grows by."""


class OutOfDeviceMemoryError(KbError):
    """The workload does not fit on the chip; ``need`` and ``capacity`` in B."""

    def __init__(self, need: int, capacity: int, soc: str) -> None:
        super().__init__(
            f"out of device memory: the workload needs {need / 1e9:.1f} GB, {soc} can allocate {capacity / 1e9:.1f} GB",
            allowed=f"up to {capacity / 1e9:.1f} GB on {soc}",
            do="lower the batch or the sequence, use fused attention, split over more ranks, or pick a chip with more memory",
        )
        self.need = need
        self.capacity = capacity


class Block(msgspec.Struct, frozen=True):
    """One value in memory: alive from the operator at ``first`` to the one at ``last``; ``offset`` in the arena, B."""

    first: int
    last: int
    size: int
    offset: int


class MemoryPlan(msgspec.Struct, frozen=True):
    """``weight_bytes`` beside an arena of ``arena_bytes`` that holds at most ``live_bytes`` at once; ``blocks`` by birth."""

    weight_bytes: int
    live_bytes: int
    arena_bytes: int
    blocks: tuple[Block, ...]

    @property
    def peak_bytes(self) -> int:
        """B alive at most."""
        return self.weight_bytes + self.live_bytes

    @property
    def reserved_bytes(self) -> int:
        """B the allocator holds."""
        return self.weight_bytes + self.arena_bytes

    @property
    def fragmentation(self) -> float:
        """Share (0..1) of the arena that no live value ever needs."""
        return 1.0 - self.live_bytes / self.arena_bytes if self.arena_bytes else 0.0


def lifetimes(graph: Graph, *, inplace: bool = False) -> list[tuple[int, int, int]]:
    """(first, last, B) of every value that is no weight, by birth; each dies after its last reader.

    With ``inplace`` an elementwise kernel writes over an input of equal size that nobody reads later: both are one.
    """
    last: dict[int, int] = {}
    for place, operator in enumerate(graph.operators):
        for tensor in (*operator.inputs, *operator.outputs):
            last[tensor.id] = place
    found: dict[int, list[int]] = {}
    owner: dict[int, int] = {}
    for place, operator in enumerate(graph.operators):
        for tensor in (*operator.inputs, *operator.outputs):
            if tensor.weight or tensor.id in owner:
                continue
            heir = _dying(operator.inputs, tensor, last, owner, place) if inplace and isinstance(operator, Elementwise) else None
            owner[tensor.id] = tensor.id if heir is None else owner[heir]
            block = found.setdefault(owner[tensor.id], [place, place, tensor.bytes])
            block[1] = max(block[1], last[tensor.id])
    return sorted((first, end, size) for first, end, size in found.values() if size)


def _dying(inputs: Sequence[Tensor], output: Tensor, last: dict[int, int], owner: dict[int, int], place: int) -> int | None:
    for tensor in inputs:
        if tensor.id in owner and tensor.id != output.id and last[tensor.id] == place and tensor.bytes == output.bytes:
            return tensor.id
    return None


def peak_bytes(graph: Graph) -> int:
    """B of weights plus the largest set of values alive at once."""
    return graph.weight_bytes() + _largest_live(lifetimes(graph))


def memory_plan(graph: Graph, options: Options) -> MemoryPlan:
    """Weights and arena under the allocator that ``options`` name."""
    alive = lifetimes(graph, inplace=options.inplace)
    extra = int(options.workspace_mb * 1e6)
    live = _largest_live(alive) + extra
    blocks = place_blocks(alive, options.planner)
    arena = max((block.offset + block.size for block in blocks), default=0) + extra
    if options.defragment:
        arena = live
    elif options.expandable:
        arena = min(arena, -(-live // SEGMENT) * SEGMENT)
    return MemoryPlan(graph.weight_bytes(), live, max(arena, live), blocks)


def _largest_live(alive: Sequence[tuple[int, int, int]]) -> int:
    """The largest sum of sizes alive at one operator."""
    changes: dict[int, int] = {}
    for first, last, size in alive:
        changes[first] = changes.get(first, 0) + size
        changes[last + 1] = changes.get(last + 1, 0) - size
    live = largest = 0
    for place in sorted(changes):
        live += changes[place]
        largest = max(largest, live)
    return largest


def place_blocks(alive: Sequence[tuple[int, int, int]], planner: Planner) -> tuple[Block, ...]:
    """An offset for every value such that none alive together overlap.

    "none" never uses a place twice; "first_fit" takes the lowest gap, "best_fit" the tightest; "pool" keeps free blocks by
    size, rounded up to a power of two, and reuses only equal ones.
    """
    if planner == "none":
        ends = 0
        blocks = []
        for first, last, size in alive:
            blocks.append(Block(first, last, size, ends))
            ends += _aligned(size)
        return tuple(blocks)
    return _pooled(alive) if planner == "pool" else _fitted(alive, tightest=planner == "best_fit")


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _pooled(alive: Sequence[tuple[int, int, int]]) -> tuple[Block, ...]:
    free: dict[int, list[int]] = {}
    busy: list[tuple[int, int, int]] = []
    end, blocks = 0, []
    for first, last, size in alive:
        for done in [entry for entry in busy if entry[0] < first]:
            busy.remove(done)
            free.setdefault(done[1], []).append(done[2])
        room = 1 << max(9, (size - 1).bit_length())
        if free.get(room):
            offset = free[room].pop()
        else:
            offset, end = end, end + room
        busy.append((last, room, offset))
        blocks.append(Block(first, last, size, offset))
    return tuple(blocks)


def _fitted(alive: Sequence[tuple[int, int, int]], *, tightest: bool) -> tuple[Block, ...]:
    busy: list[tuple[int, int, int]] = []
    blocks = []
    for first, last, size in alive:
        busy = [entry for entry in busy if entry[2] >= first]
        offset = _gap(busy, _aligned(size), tightest=tightest)
        busy.append((offset, offset + _aligned(size), last))
        busy.sort()
        blocks.append(Block(first, last, size, offset))
    return tuple(blocks)


def _gap(busy: Sequence[tuple[int, int, int]], need: int, *, tightest: bool) -> int:
    """Begin of the lowest (or tightest) gap between the ``busy`` places, sorted, that holds ``need`` B; else their end."""
    end, best = 0, None
    for begin, until, _ in busy:
        room = begin - end
        if room >= need:
            if not tightest:
                return end
            if best is None or room < best[0]:
                best = (room, end)
        end = max(end, until)
    return best[1] if best else end


def allocations(graph: Graph, plan: MemoryPlan, starts: Sequence[int], ends: Sequence[int]) -> list[tuple[int, int, str, int]]:
    """(begin ns, release ns, operator, B) of every value of a step whose operators ran from ``starts`` to ``ends``."""
    rows = []
    for block in plan.blocks:
        operator = graph.operators[block.first]
        name = operator.op_type if not isinstance(operator, Collective) else "hccl_buffer"
        rows.append((starts[block.first], max(ends[block.last], starts[block.first] + 1), name, block.size))
    return rows
