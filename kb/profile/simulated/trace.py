"""What happened on one rank as arrays: kernels and calls of all steps, and the totals of each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kb.profile.simulated.engine import Record
from kb.profile.simulated.plan import Call
from kb.profile.simulated.truth import Ints


@dataclass(frozen=True, slots=True)
class Trace:
    """``starts``, ``durations``, ``waits``, ``streams`` of shape (steps, places) in ns; a step's totals are lists.

    ``comm`` marks the places that communicate. ``bubble`` is the exposed part of receives. Totals come from unions of
    intervals, so they hold with several streams.
    """

    records: Sequence[Record]
    starts: Ints
    durations: Ints
    waits: Ints
    streams: Ints
    comm: np.typing.NDArray[np.bool_]
    computing: list[int]
    communication: list[int]
    comm_exposed: list[int]
    bubble: list[int]


def trace_of(records: Sequence[Record], calls: Mapping[int, Call]) -> Trace:
    """The arrays of a rank's records."""
    starts = np.array([record.starts for record in records], dtype=np.int64)
    ends = np.array([record.ends for record in records], dtype=np.int64)
    comm = np.zeros(starts.shape[1], dtype=bool)
    comm[list(calls)] = True
    received = np.zeros(starts.shape[1], dtype=bool)
    received[[place for place, call in calls.items() if call.key[0] == "receive"]] = True
    totals = [_totals(begin, end, comm, received) for begin, end in zip(starts, ends, strict=True)]
    computing, communication, exposed, bubble = (list(column) for column in zip(*totals, strict=True))
    return Trace(
        records=records,
        starts=starts,
        durations=ends - starts,
        waits=np.array([record.waits for record in records], dtype=np.int64).sum(axis=2),
        streams=np.array([record.stream for record in records], dtype=np.int64),
        comm=comm,
        computing=computing,
        communication=communication,
        comm_exposed=exposed,
        bubble=bubble,
    )


def _totals(
    starts: Ints, ends: Ints, comm: np.typing.NDArray[np.bool_], received: np.typing.NDArray[np.bool_]
) -> tuple[int, int, int, int]:
    computing = covered(starts[~comm], ends[~comm])
    if not comm.any():
        return computing, 0, 0, 0
    everything = covered(starts, ends)
    without = ~comm | received
    bubble = covered(starts[without], ends[without]) - computing if received.any() else 0
    return computing, covered(starts[comm], ends[comm]), everything - computing, bubble


def covered(starts: Ints, ends: Ints) -> int:
    """ns that at least one interval covers."""
    if not len(starts):
        return 0
    order = np.argsort(starts, kind="stable")
    begin, reach = starts[order], np.maximum.accumulate(ends[order])
    gaps = np.maximum(0, begin[1:] - reach[:-1])
    return int(reach[-1] - begin[0] - gaps.sum())
