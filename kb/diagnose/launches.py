"""What tasks beside the kernels (copies, collectives) hold up, and what only happens while something else is late."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.diagnose.idle import launch_table
from kb.diagnose.intervals import covered_by
from kb.diagnose.view import RankView
from kb.session.session import Array, Table

_BLOCKED: Final = 0.5
"""A host call blocks on a task when it covers at least half of the time in question."""


def held_ns(view: RankView, begins: Array, ends: Array, *, blocking: bool) -> Array:
    """Of each task (begin and end, ns), how long the kernels waited for it.

    A gap before a kernel that starts while the task still runs was not the task's, so only the time from the last kernel to
    the task's end counts; and there only what is left once the next kernel has been launched. With ``blocking`` a launch
    that came late because the host was blocked in a copy or a wait counts as held by the task. Kernels that carry no link to
    their launch count as launched.
    """
    kernels = view.kernels
    if kernels is None or not len(begins):
        return np.asarray(ends - begins)
    own = kernels.where(~view.communication(kernels))
    starts = own["start_ns"]
    if not len(starts):
        return np.asarray(ends - begins)
    done = np.maximum.accumulate(starts + own["duration_ns"])
    place = np.searchsorted(starts, ends)
    idle_from = np.clip(np.where(place > 0, done[place - 1], begins), begins, ends)
    return np.asarray(ends - np.maximum(idle_from, _launched(view, own, place, idle_from, ends, blocking=blocking)))


def _launched(view: RankView, own: Table, place: Array, begins: Array, ends: Array, *, blocking: bool) -> Array:
    """When the kernel after each task had been launched, cut to the span; its begin where that is unknown."""
    hosts = view.session.table("host_ops")
    launches = launch_table(hosts) if hosts is not None else None
    if hosts is None or launches is None or "connection_id" not in own:
        return begins
    launch = launches.of(own["connection_id"][np.minimum(place, len(own) - 1)])
    known = (launch >= 0) & (place < len(own))
    if blocking:
        known &= ~_blocked(view, hosts, begins, ends)
    return np.where(known, np.clip(launches.ends[launch], begins, ends), begins)


def _blocked(view: RankView, hosts: Table, begins: Array, ends: Array) -> Array:
    copying = np.array(["memcpy" in text.lower() or "copy_" in text for text in (*view.session.strings, "")])
    waiting = view.books.idle.masks.get("sync") if view.books.idle is not None else None
    mask = copying[hosts["name"]] if waiting is None else copying[hosts["name"]] | waiting
    starts = hosts["start_ns"][mask]
    held = covered_by(begins, ends, starts, starts + hosts["duration_ns"][mask])
    return np.asarray(held >= _BLOCKED * np.maximum(ends - begins, 1))
