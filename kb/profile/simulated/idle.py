"""Idle intervals of a device: the gaps between its kernels by cause, less the time it communicates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kb.profile.simulated.engine import Record
from kb.profile.simulated.plan import IDLE_CAUSES
from kb.profile.simulated.truth import IdleIntervals, Ints

_SYNC, _BARRIER = IDLE_CAUSES.index("sync"), IDLE_CAUSES.index("barrier")


def idle_intervals(records: Sequence[Record], calls: Sequence[int]) -> IdleIntervals:
    """Every idle interval of all steps, split where its cause changes, by start. ``calls`` are the places that communicate."""
    parts = [_of(record, frozenset(calls)) for record in records]
    starts, ends, causes = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.argsort(starts, kind="stable")
    return IdleIntervals(starts[order], ends[order], causes[order])


def _of(record: Record, calls: frozenset[int]) -> tuple[Ints, Ints, Ints]:
    kernels = np.array([place for place in range(len(record.starts)) if place not in calls], dtype=np.int64)
    waits = np.array(record.waits, dtype=np.int64).reshape(-1, len(IDLE_CAUSES))[kernels]
    begins = np.array(record.starts, dtype=np.int64)[kernels]
    edges = (begins - waits.sum(axis=1))[:, None] + waits.cumsum(axis=1)
    last_kernel = int(np.array(record.ends, dtype=np.int64)[kernels].max(initial=record.begin))
    tail = record.end - record.tail
    starts = np.concatenate([(edges - waits).reshape(-1), [min(last_kernel, tail), tail]])
    ends = np.concatenate([edges.reshape(-1), [tail, record.end]])
    causes = np.concatenate([np.tile(np.arange(len(IDLE_CAUSES)), len(kernels)), [_BARRIER, _SYNC]])
    real = ends > starts
    busy = sorted((record.starts[place], record.ends[place]) for place in calls if record.ends[place] > record.starts[place])
    return _without(starts[real], ends[real], causes[real], busy) if busy else (starts[real], ends[real], causes[real])


def _without(starts: Ints, ends: Ints, causes: Ints, busy: Sequence[tuple[int, int]]) -> tuple[Ints, Ints, Ints]:
    """The intervals less the ``busy`` ones, which are sorted and do not overlap."""
    busy_ends = np.array([end for _, end in busy], dtype=np.int64)
    found: list[tuple[int, int, int]] = []
    for start, end, cause in zip(starts.tolist(), ends.tolist(), causes.tolist(), strict=True):
        number = int(np.searchsorted(busy_ends, start, side="right"))
        while number < len(busy) and busy[number][0] < end:
            if busy[number][0] > start:
                found.append((start, busy[number][0], cause))
            start = max(start, busy[number][1])
            number += 1
        if start < end:
            found.append((start, end, cause))
    made = np.array(found, dtype=np.int64).reshape(-1, 3)
    return made[:, 0], made[:, 1], made[:, 2]
