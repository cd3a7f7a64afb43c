"""Why the device was idle: every idle interval of a step, split by what the host was doing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from kb.diagnose.hosts import HostClasses, IdleCause, host_masks
from kb.diagnose.intervals import common, complement, covered_by, merged, without
from kb.session.session import Array, Session, Table

Intervals = tuple[Array, Array]
LATENCY_NS: Final = 5_000
"""A launch that ends at most this long before the device runs dry is late: the task takes as long to reach the device."""
HAND_OVER_NS: Final = 20_000
"""From the end of a late launch to the start of its kernel; longer, and the rest has another cause."""
REFILL_NS: Final = 2_000_000
"""After a wait the queue is empty; until the next launch, at most this long, the idle time is the wait's."""
_COVERED: Final = 0.5
"""A host operator explains the time between two copies when it covers at least half of it."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Disjoint idle intervals of a step by cause (begin and end, int64 ns), each instant under one cause only.
    ``masks`` mark the rows of ``host_ops`` by cause, see ``hosts.host_masks``."""

    owned: Mapping[IdleCause, Intervals]
    masks: Mapping[IdleCause, Array]

    def length(self, cause: IdleCause) -> int:
        """Idle ns of one cause."""
        begins, ends = self.owned.get(cause, _NONE)
        return int((ends - begins).sum())


_NONE: Final = (np.empty(0, np.int64), np.empty(0, np.int64))


def split_idle(
    session: Session,
    window: tuple[int, int],
    busy: Intervals,
    kernels: Table | None,
    classes: HostClasses,
    masks: Mapping[IdleCause, Array] | None = None,
) -> Idle:
    """Split what ``busy`` (device intervals, copies included) leaves of ``window``.

    ``kernels`` are the step's, sorted by start. Named host events claim first, in the order of ``classes``; then a
    pair of copies around a host operator; then launches that came late; the rest is unknown. Without host events
    everything is unknown. ``masks`` of the session save finding them again. O(n log n).
    """
    left = complement(*busy, window)
    hosts = session.table("host_ops")
    if hosts is None:
        return Idle({"unknown": left}, {})
    masks = host_masks(session, classes) if masks is None else masks
    owned: dict[IdleCause, Intervals] = {}
    for cause in classes.order:
        if cause == "sync":
            # A pair of copies around a host operator also looks like a wait; the operator is the better name.
            owned["fallback"], left = _claim(left, fallback_gaps(session, hosts, kernels))
        claims = _waits(hosts, masks[cause]) if cause == "sync" else _spans(hosts, masks[cause])
        owned[cause], left = _claim(left, claims)
    owned["launch"], owned["unknown"] = _claim(left, _late(left, hosts, kernels, ~np.logical_or.reduce(list(masks.values()))))
    return Idle(owned, masks)


def _claim(left: Intervals, claims: Intervals) -> tuple[Intervals, Intervals]:
    if not len(claims[0]) or not len(left[0]):
        return _NONE, left
    near = covered_by(*left, *claims) > 0
    if not near.any():
        return _NONE, left
    touched = left[0][near], left[1][near]
    own, rest = common(touched, merged(*claims)), without(touched, merged(*claims))
    return own, merged(np.concatenate((left[0][~near], rest[0])), np.concatenate((left[1][~near], rest[1])))


def _spans(hosts: Table, rows: Array) -> Intervals:
    starts = hosts["start_ns"][rows]
    return starts, starts + hosts["duration_ns"][rows]


def _waits(hosts: Table, rows: Array) -> Intervals:
    """Blocking calls, each prolonged until the queue holds work again."""
    starts, ends = _spans(hosts, rows)
    launches = launch_table(hosts)
    if launches is None:
        return starts, ends
    begins = np.sort(launches.starts)
    after = np.sort(launches.ends)
    place = np.searchsorted(begins, ends)
    refilled = np.where(place < len(after), after[np.minimum(place, len(after) - 1)] + HAND_OVER_NS, ends)
    return starts, np.maximum(ends, np.minimum(refilled, ends + REFILL_NS))


@dataclass(frozen=True, slots=True)
class Launches:
    """One host launch a connection id, ascending by id: the last event that carries it is the one nearest to the device."""

    ids: Array
    starts: Array
    ends: Array

    def of(self, connections: Array) -> Array:
        """For each connection the place of its launch, -1 where unknown."""
        place = np.minimum(np.searchsorted(self.ids, connections), len(self.ids) - 1)
        return np.where((connections >= 0) & (self.ids[place] == connections), place, -1)


def launch_table(hosts: Table) -> Launches | None:
    """The launches among host events; None when no event is linked to a device task."""
    if "connection_id" not in hosts:
        return None
    rows = np.flatnonzero(hosts["connection_id"] >= 0)
    if not len(rows):
        return None
    order = rows[np.lexsort((hosts["start_ns"][rows], hosts["connection_id"][rows]))]
    ids = hosts["connection_id"][order]
    last = np.append(ids[1:] != ids[:-1], True)
    order = order[last]
    starts = hosts["start_ns"][order]
    return Launches(ids[last], starts, starts + hosts["duration_ns"][order])


def _late(left: Intervals, hosts: Table, kernels: Table | None, plain: Array) -> Intervals:
    """Idle time before kernels whose launch had not ended when the device ran dry; without links, where the host worked."""
    launches = launch_table(hosts)
    if launches is None or kernels is None or "connection_id" not in kernels:
        return _spans(hosts, plain)
    begins, ends = left
    if not len(begins):
        return _NONE
    starts = kernels["start_ns"]
    next_kernel = np.minimum(np.searchsorted(starts, ends), len(starts) - 1)
    launch = launches.of(kernels["connection_id"][next_kernel])
    known = (launch >= 0) & (starts[next_kernel] >= ends) & (starts[next_kernel] - ends <= LATENCY_NS)
    done = np.where(known, launches.ends[launch], 0)
    late = known & (done + LATENCY_NS > begins)
    until = np.where(ends - done <= HAND_OVER_NS, ends, np.minimum(ends, done))
    return begins[late], until[late]


def fallback_gaps(session: Session, hosts: Table | None, kernels: Table | None) -> Intervals:
    """From the begin of a copy to the host to the end of the copy back, where no kernel runs between them and a
    framework operator on the host fills the time (without host events nothing is claimed)."""
    copies = session.table("copies")
    if copies is None or kernels is None or hosts is None or len(copies) < 2:
        return _NONE
    down, up = session.code("d2h"), session.code("h2d")
    pair = np.flatnonzero((copies["kind"][:-1] == down) & (copies["kind"][1:] == up))
    begins, ends = copies["start_ns"][pair], copies["start_ns"][pair + 1] + copies["duration_ns"][pair + 1]
    inner = begins + copies["duration_ns"][pair], copies["start_ns"][pair + 1]
    starts = kernels["start_ns"]
    quiet = np.searchsorted(starts, begins) == np.searchsorted(starts, ends)
    works = cpu_operators(session, hosts)
    filled = covered_by(*inner, *_spans(hosts, works)) >= _COVERED * np.maximum(inner[1] - inner[0], 1)
    return begins[quiet & filled], ends[quiet & filled]


def cpu_operators(session: Session, hosts: Table) -> Array:
    """Boolean mask of framework operators that launched nothing on the device: no link, and no linked event inside."""
    framework = hosts["layer"] == session.code("framework")
    operators = np.array([text.startswith(("aten::", "npu::", "torch_npu::")) or "cpu" in text.lower() for text in (*session.strings, "")])
    own = framework & operators[hosts["name"]]
    launches = launch_table(hosts)
    if launches is None:
        return np.asarray(own)
    times = np.sort(launches.starts)
    begins, ends = hosts["start_ns"], hosts["start_ns"] + hosts["duration_ns"]
    return np.asarray(own & (np.searchsorted(times, begins) == np.searchsorted(times, ends)))
