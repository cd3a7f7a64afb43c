"""Order and overlap of events on device tracks."""

from __future__ import annotations

import numpy as np

from kb.session.session import Array


def partly_overlapping(start: Array, duration: Array, track: Array) -> int:
    """How many events begin inside an earlier one of their track and end after it: no stack of slices can show them."""
    if not len(start):
        return 0
    end = start + duration
    order = np.lexsort((-end, start, track))
    start, end, track = start[order], end[order], track[order]
    same = track[1:] == track[:-1]
    return int((same & (start[1:] < end[:-1]) & (end[1:] > end[:-1])).sum())


def lanes(start: Array, end: Array) -> Array:
    """A lane for each interval of one track (sorted by start), so that no two of a lane overlap: the first free one."""
    free: list[int] = []
    found = np.zeros(len(start), np.int64)
    for index, (begin, finish) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        lane = next((number for number, busy_until in enumerate(free) if busy_until <= begin), len(free))
        if lane == len(free):
            free.append(finish)
        else:
            free[lane] = finish
        found[index] = lane
    return found
