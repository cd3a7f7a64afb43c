"""Launches that waited for room in the queue, and the step replayed without that waiting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from kb.diagnose.idle import launch_table
from kb.diagnose.intervals import covered_by
from kb.diagnose.view import RankView
from kb.session.session import Array, Table

TOUCH_NS: Final = 3_000
"""A launch that begins at most this long after a kernel ends began because the kernel ended."""
LEAST_WAIT_NS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Blocked:
    """``rows`` of ``host_ops`` that waited, how long each (``waited`` ns), out of ``launches`` of the step, and what the
    device would have saved with an endless queue."""

    rows: Array
    waited: Array
    launches: int
    saved_ns: int


def blocked_launches(view: RankView) -> Blocked | None:
    """None where kernels are not linked to launches."""
    hosts, kernels = view.session.table("host_ops"), view.kernels
    launches = launch_table(hosts) if hosts is not None else None
    if hosts is None or kernels is None or launches is None or "connection_id" not in kernels:
        return None
    place = launches.of(kernels["connection_id"])
    linked = np.flatnonzero(place >= 0)
    if not len(linked):
        return None
    order = linked[np.argsort(launches.starts[place[linked]], kind="stable")]
    own = place[order]
    starts, ends = launches.starts[own], launches.ends[own]
    before = np.concatenate(([starts[0]], np.maximum.accumulate(ends)[:-1]))
    quiet = starts - before
    device_ends = np.sort(kernels["start_ns"] + kernels["duration_ns"])
    nearest = device_ends[np.maximum(np.searchsorted(device_ends, starts, side="right") - 1, 0)]
    held = (quiet >= LEAST_WAIT_NS) & (starts >= nearest) & (starts - nearest <= TOUCH_NS) & _unoccupied(view, hosts, before, starts)
    rows = _rows(hosts, kernels["connection_id"][order[held]])
    saved = _saved(view, kernels, order, ends - starts, np.where(held, 0, quiet), starts)
    return Blocked(rows, quiet[held], len(np.unique(own)), saved)


def _unoccupied(view: RankView, hosts: Table, begins: Array, ends: Array) -> Array:
    """Whether the host did nothing that was recorded in each span (a wait for the device counts as something)."""
    masks = view.books.idle.masks if view.books.idle is not None else {}
    leaf = np.isin(hosts["layer"], view.session.codes(("framework", "acl", "node", "runtime")))
    for mask in masks.values():
        leaf |= mask
    starts = hosts["start_ns"][leaf]
    covered = covered_by(begins, ends, starts, starts + hosts["duration_ns"][leaf])
    return np.asarray(covered * 10 <= np.maximum(ends - begins, 1))


def _rows(hosts: Table, connections: Array) -> Array:
    return np.flatnonzero(np.isin(hosts["connection_id"], connections))


def _saved(view: RankView, kernels: Table, order: Array, busy: Array, quiet: Array, starts: Array) -> int:
    """End of the device's work as it was, less its end when launches follow each other without the waits for room.

    The launch times are laid end to end; a kernel starts when it is launched and the device is free, so its start is a
    running maximum. Waits for the device restart the clock at their own place.
    """
    masks = view.books.idle.masks if view.books.idle is not None else {}
    hosts = view.session.tables["host_ops"]
    waits = np.sort(hosts["start_ns"][masks["sync"]]) if "sync" in masks else np.empty(0, np.int64)
    stretch = np.searchsorted(waits, starts)
    saved = 0
    durations, device = kernels["duration_ns"][order], kernels["start_ns"][order]
    edges = np.flatnonzero(np.diff(stretch, prepend=stretch[:1] - 1))
    for begin, end in zip(edges.tolist(), [*edges[1:].tolist(), len(order)], strict=True):
        span = slice(begin, end)
        first = int(starts[begin])
        ready = first + np.cumsum(busy[span] + np.concatenate(([0], quiet[span][1:])))
        done = np.cumsum(durations[span])
        finish = int((np.maximum.accumulate(ready - (done - durations[span])) + done)[-1])
        saved += max(0, int((device[span] + durations[span]).max()) - max(finish, int(ready[-1])))
    return saved
