"""Waiting inside communication operators, from the tasks of their planes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from kb.diagnose.intervals import union_length
from kb.session.session import Array, Session

_WAIT: Final = ("Notify_Wait", "Notify Wait", "NOTIFY_WAIT", "Notify_Wait_Timeout")
_SIGNAL: Final = ("Notify_Record", "Notify Record", "NOTIFY_RECORD", *_WAIT)
LOCAL: Final = 4_294_967_295


@dataclass(frozen=True, slots=True)
class OpWait:
    """One communication operator, ns: ``longest`` is the waiting on the plane that waits most, ``union`` the time at
    least one plane waits, ``transfer`` the time some plane moves data while none waits. ``peer`` is the rank inside the
    group that the longest wait names (None where unknown); ``row`` that wait's position in ``comm_tasks``."""

    longest: int
    union: int
    transfer: int
    peer: int | None
    row: int


def op_waits(session: Session, window: tuple[int, int] | None) -> Mapping[int, OpWait]:
    """By string code of the operator; empty without ``comm_tasks``. ``window`` (begin, end) selects by task start.

    Never the shortest plane: it has nothing to wait for while others do. O(n log n).
    """
    tasks = session.table("comm_tasks")
    if tasks is None:
        return {}
    kept = np.arange(len(tasks))
    if window is not None:
        kept = np.flatnonzero((tasks["start_ns"] >= window[0]) & (tasks["start_ns"] < window[1]))
    waits = np.isin(tasks["kind"], session.codes(_WAIT))
    signals = np.isin(tasks["kind"], session.codes(_SIGNAL))
    order = kept[np.argsort(tasks["op"][kept], kind="stable")]
    codes = tasks["op"][order]
    edges = np.flatnonzero(np.diff(codes, prepend=codes[:1] - 1, append=codes[-1:] + 1))
    found = {}
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        rows = order[first:last]
        found[int(codes[first])] = _op_wait(session, rows[waits[rows]], rows[~signals[rows]])
    return found


def _op_wait(session: Session, waits: Array, moves: Array) -> OpWait:
    tasks = session.tables["comm_tasks"]
    starts, ends = tasks["start_ns"], tasks["start_ns"] + tasks["duration_ns"]
    union = union_length(starts[waits], ends[waits])
    both = np.concatenate((waits, moves))
    transfer = union_length(starts[both], ends[both]) - union
    if not len(waits):
        return OpWait(0, 0, transfer, None, -1)
    planes = tasks["plane"][waits]
    longest = max(union_length(starts[waits[planes == plane]], ends[waits[planes == plane]]) for plane in np.unique(planes).tolist())
    row = int(waits[np.argmax(tasks["duration_ns"][waits])])
    peer = int(tasks["dst_rank"][row]) if "dst_rank" in tasks else -1
    return OpWait(longest, union, transfer, peer if 0 <= peer < LOCAL else None, row)
