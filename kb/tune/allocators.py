"""What allocators do over a step: calls of the device, a bounded pool, and compaction."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from kb.profile.simulated.memory import ALIGNMENT, Block
from kb.tune.recomputation import Span


def growths(blocks: Sequence[Block]) -> int:
    """How often the arena has to grow: each is a call of the device allocator."""
    end = calls = 0
    for block in blocks:
        if block.offset + block.size > end:
            end, calls = block.offset + block.size, calls + 1
    return calls


def pooled(alive: Sequence[Span], limit: int) -> tuple[int, int]:
    """B held at most and allocator calls when freed blocks stay in a pool of at most ``limit`` B, by sizes of powers of two.

    A block that the pool has no room for goes back to the device at once and is asked for anew.
    """
    free: dict[int, int] = {}
    busy: list[tuple[int, int]] = []
    held = pooled = most = calls = 0
    for first, last, size in alive:
        for done, room in [entry for entry in busy if entry[0] < first]:
            busy.remove((done, room))
            if pooled + room <= limit:
                free[room] = free.get(room, 0) + 1
                pooled += room
            else:
                held -= room
        room = 1 << max(ALIGNMENT.bit_length() - 1, (size - 1).bit_length())
        if free.get(room, 0):
            free[room] -= 1
            pooled -= room
        else:
            held, calls = held + room, calls + 1
        busy.append((last, room))
        most = max(most, held)
    return most, calls


def moved_bytes(alive: Sequence[Span], room: int) -> int:
    """B that compaction copies in a step when the arena has ``room`` B, no more than values need at once: whenever no gap holds
    a new value, everything alive moves down over the holes."""
    places: list[tuple[int, int, int]] = []
    moved = 0
    for first, last, size in alive:
        places = [item for item in places if item[2] >= first]
        need = _aligned(size)
        offset = _lowest_gap(places, need, room)
        if offset is None:
            places, copied = _compacted(places)
            moved += copied
            offset = places[-1][0] + places[-1][1] if places else 0
        insort(places, (offset, need, last))
    return moved


def _lowest_gap(places: Sequence[tuple[int, int, int]], need: int, room: int) -> int | None:
    end = 0
    for offset, size, _ in places:
        if offset - end >= need:
            return end
        end = offset + size
    return end if room - end >= need else None


def _compacted(places: Sequence[tuple[int, int, int]]) -> tuple[list[tuple[int, int, int]], int]:
    packed, end, copied = [], 0, 0
    for offset, size, last in places:
        copied += size if offset != end else 0
        packed.append((end, size, last))
        end += size
    return packed, copied


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
