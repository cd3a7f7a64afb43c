"""All steps of a run on the clock: segments one after another, the host waiting between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kb.profile.simulated.stream import IDLE_CAUSES, HostCosts, run_segment
from kb.profile.simulated.truth import IdleIntervals, Ints

BEGIN_NS = 1_000_000_000
"""Where the capture's clock stands when the first step begins."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Arrays in ns. Kernels: ``starts``, ``durations``, ``waits`` (kernels x causes), ``step``. Launches: ``launch_*``.

    Host waits: from ``sync_starts`` to ``sync_ends``; ``work_starts`` begin the host's own work of ``work_ns``
    each. ``bounds`` are the begins of the steps and the end of the last; ``tails`` the idle ns after the
    last kernel of each step (its cause is sync).
    """

    starts: Ints
    durations: Ints
    waits: Ints
    step: Ints
    launch_starts: Ints
    launch_ends: Ints
    sync_starts: Ints
    sync_ends: Ints
    work_starts: Ints
    work_ns: int
    bounds: Ints
    tails: Ints


def run(durations: Ints, launches: Ints, *, depth: int, costs: HostCosts) -> Timeline:
    """Run ``durations`` (steps, segments, kernels) with ``launches`` (steps, segments, kernels or 1)."""
    steps, segments, kernels = durations.shape
    parts, bounds, tails, work = [], [BEGIN_NS], [], []
    for step in range(steps):
        begin = idle_since = bounds[-1]
        for number in range(segments):
            work_ns = costs.work if number else 0
            if work_ns:
                work.append(begin)
            row = durations[step, number].tolist()
            part = run_segment(row, launches[step, number].tolist(), idle_since=idle_since, begin=begin + work_ns, depth=depth, costs=costs)
            parts.append(part)
            begin, idle_since = part.resume, part.starts[-1] + row[-1]
        bounds.append(begin)
        tails.append(begin - idle_since)
    return Timeline(
        starts=_joined(part.starts for part in parts),
        durations=durations.reshape(-1),
        waits=np.array([wait for part in parts for wait in part.waits], dtype=np.int64).reshape(-1, len(IDLE_CAUSES)),
        step=np.repeat(np.arange(steps), segments * kernels),
        launch_starts=_joined(part.launch_starts for part in parts),
        launch_ends=_joined(part.launch_ends for part in parts),
        sync_starts=np.array([part.launch_ends[-1] for part in parts], dtype=np.int64),
        sync_ends=np.array([part.resume for part in parts], dtype=np.int64),
        work_starts=np.array(work, dtype=np.int64),
        work_ns=costs.work,
        bounds=np.array(bounds, dtype=np.int64),
        tails=np.array(tails, dtype=np.int64),
    )


def _joined(lists: Iterator[Sequence[int]]) -> Ints:
    return np.array([value for values in lists for value in values], dtype=np.int64)


def idle_intervals(timeline: Timeline) -> IdleIntervals:
    """Every idle interval, split where its cause changes, by start."""
    total = timeline.waits.sum(axis=1)
    ends = (timeline.starts - total)[:, None] + timeline.waits.cumsum(axis=1)
    starts = ends - timeline.waits
    cause = np.broadcast_to(np.arange(len(IDLE_CAUSES)), starts.shape)
    tail_ends = timeline.bounds[1:]
    all_starts = np.concatenate([starts.reshape(-1), tail_ends - timeline.tails])
    all_ends = np.concatenate([ends.reshape(-1), tail_ends])
    causes = np.concatenate([cause.reshape(-1), np.zeros(len(tail_ends), dtype=np.int64)])
    real = all_ends > all_starts
    order = np.argsort(all_starts[real], kind="stable")
    return IdleIntervals(all_starts[real][order], all_ends[real][order], causes[real][order])
