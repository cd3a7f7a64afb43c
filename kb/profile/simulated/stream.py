"""The host launches, the device executes: discrete events of one stream, and why it was ever idle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

IdleCause = Literal["sync", "dispatch", "queue", "launch"]
IDLE_CAUSES: Final[tuple[IdleCause, ...]] = ("sync", "dispatch", "queue", "launch")
"""In the order they follow each other inside one gap: the host returns from a wait (``sync``), the device
takes the next task (``dispatch``), the launch comes late because the queue had been full (``queue``), or
because launching is slower than executing (``launch``)."""


class HostCosts(msgspec.Struct, frozen=True, kw_only=True):
    """Fixed times of the host and the device's scheduler, ns. ``work`` is spent after each wait but a step's last."""

    gap: int
    sync_return: int
    work: int


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """Times in ns of one segment. The lists have an entry a kernel, but ``launch_*`` one a launch.

    ``waits`` are the idle ns before each kernel in the order of ``IDLE_CAUSES``. ``resume`` is when the
    host has returned from waiting for the last kernel.
    """

    starts: list[int]
    launch_starts: list[int]
    launch_ends: list[int]
    waits: list[tuple[int, int, int, int]]
    resume: int


def run_segment(durations: Sequence[int], launches: Sequence[int], *, idle_since: int, begin: int, depth: int, costs: HostCosts) -> Segment:
    """Execute kernels back to back on one stream, then wait.

    ``launches`` are host times: one a kernel (at most ``depth`` kernels unfinished, else the host blocks), or
    a single one that submits them all. The host begins at ``begin``, the device has been idle since
    ``idle_since`` <= ``begin``. The idle time caused by blocking equals, to the ns, what an endless queue
    would save.
    """
    graph = len(launches) == 1 < len(durations)
    starts: list[int] = []
    ends: list[int] = []
    launch_starts: list[int] = []
    launch_ends: list[int] = []
    waits: list[tuple[int, int, int, int]] = []
    host, device, credit = begin, idle_since, 0
    for place, duration in enumerate(durations):
        if not graph and place >= depth and ends[place - depth] > host:
            credit += ends[place - depth] - host
            host = ends[place - depth]
        if place < len(launches):
            launch_starts.append(host)
            host += launches[place]
            launch_ends.append(host)
        start, wait = _next(device, host, credit, begin, costs.gap)
        credit -= wait[2]
        device = start + duration
        starts.append(start)
        ends.append(device)
        waits.append(wait)
    resume = max(host, device) + costs.sync_return
    return Segment(starts=starts, launch_starts=launch_starts, launch_ends=launch_ends, waits=waits, resume=resume)


def _next(device: int, ready: int, credit: int, begin: int, gap: int) -> tuple[int, tuple[int, int, int, int]]:
    """Start of the next kernel, and the gap before it by cause; ``credit`` ns of lateness are the queue's."""
    free = max(device, begin)
    start = max(ready, free + gap)
    dispatch = min(gap, start - free)
    queue = min(start - free - dispatch, credit)
    return start, (free - device, dispatch, queue, start - free - dispatch - queue)
