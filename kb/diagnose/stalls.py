"""Idle time by host cause, in the representative step and spread over all steps of the capture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kb.diagnose.accounting import device_tasks
from kb.diagnose.hosts import IdleCause, load_host_classes
from kb.diagnose.idle import split_idle
from kb.diagnose.intervals import clipped, covered_by, union_length
from kb.diagnose.steps import candidates, complete_steps
from kb.diagnose.view import RankView
from kb.session.session import Array


@dataclass(frozen=True, slots=True)
class Stall:
    """``own``: idle ns of the representative step; ``spread``: idle ns a step over the capture's ``steps``, for pauses
    that hit some steps only. ``rows`` are host events of the cause while the device idled (positions in ``host_ops``),
    and ``events`` their number."""

    own: int
    spread: int
    steps: int
    rows: Array
    events: int
    before: int = 0
    """The same in the preparation of the step, which the exporter sets beside it."""

    @property
    def cost(self) -> int:
        """What the cause costs a step, ns."""
        return max(self.own, self.spread) + self.before


def has_hosts(view: RankView) -> bool:
    """Whether host events were captured at all."""
    return view.session.table("host_ops") is not None and view.books.idle is not None


def stall(view: RankView, causes: Sequence[IdleCause], *, spread: bool = False, preparing: bool = False) -> Stall:
    """Idle time of ``causes``. ``spread`` also looks at the other steps, for causes that come at intervals, ``preparing``
    at the time the exporter sets before the step."""
    own = sum(view.accounting.splits.get("idle", {}).get(cause, 0) for cause in causes)
    hosts = view.session.table("host_ops")
    if hosts is None or view.books.idle is None:
        return Stall(own, 0, 0, np.empty(0, np.int64), 0)
    masks = view.books.idle.masks
    named = [masks[cause] for cause in causes if cause in masks]
    rows = np.flatnonzero(np.logical_or.reduce(named)) if named else np.empty(0, np.int64)
    window = _capture(view) if spread and len(rows) else None
    if window is None:
        before, early = _preparing(view, rows) if preparing else (0, rows[:0])
        touching = np.union1d(_touching(view, rows, causes), early)
        return Stall(own, 0, 1, touching, len(touching), before)
    begin, end, steps = window
    every = np.arange(len(view.session.tables["kernels"])) if "kernels" in view.session.tables else np.empty(0, np.int64)
    ops = np.arange(len(view.session.tables["comm_ops"])) if "comm_ops" in view.session.tables else np.empty(0, np.int64)
    kernels = view.session.table("kernels")
    idle = split_idle(view.session, (begin, end), device_tasks(view.session, every, ops), kernels, load_host_classes(), masks)
    total = sum(idle.length(cause) for cause in causes)
    starts = hosts["start_ns"][rows]
    inside = rows[(starts < end) & (starts + hosts["duration_ns"][rows] > begin)]
    return Stall(own, total // steps, steps, inside, len(inside))


def boundary_ns(view: RankView, causes: Sequence[IdleCause]) -> int:
    """Idle ns of ``causes`` at the very begin and end of the step."""
    idle, window = view.books.idle, view.window
    if idle is None or window is None:
        return 0
    found = 0
    for cause in causes:
        begins, ends = idle.owned.get(cause, (np.empty(0, np.int64),) * 2)
        found += int((ends - begins)[(begins <= window[0]) | (ends >= window[1])].sum())
    return found


def outlier_ns(view: RankView) -> int:
    """By how much the mean step is longer than the representative one: the room for causes that hit some steps only."""
    lengths = [step.step_ns for step in candidates(complete_steps(view.session))]
    return max(0, sum(lengths) // len(lengths) - view.accounting.step_ns) if lengths else 0


def _preparing(view: RankView, rows: Array) -> tuple[int, Array]:
    """Time of the host events between the step's marker and its first device task, with the events."""
    step, window = view.books.step, view.window
    hosts = view.session.tables["host_ops"]
    if step is None or window is None or step.window is None or step.trace_row is None or step.window[0] >= window[0]:
        return 0, rows[:0]
    starts = hosts["start_ns"][rows]
    spans = clipped(starts, starts + hosts["duration_ns"][rows], (step.window[0], window[0]))
    return union_length(*spans), rows[spans[1] > spans[0]]


def _touching(view: RankView, rows: Array, causes: Sequence[IdleCause]) -> Array:
    idle, hosts = view.books.idle, view.session.tables["host_ops"]
    if idle is None or not len(rows):
        return rows[:0]
    starts = hosts["start_ns"][rows]
    ends = starts + hosts["duration_ns"][rows]
    covered = sum(covered_by(starts, ends, *idle.owned[cause]) for cause in causes if cause in idle.owned)
    # A wait that ends as the device runs dry touches only the idle time after it.
    after = sum(covered_by(ends, ends + 1_000, *idle.owned[cause]) for cause in causes if cause in idle.owned)
    return rows[np.asarray(covered + after) > 0]


def _capture(view: RankView) -> tuple[int, int, int] | None:
    """Begin and end of the steps that may represent the run, and their number; None for one or unplaced steps."""
    steps = candidates(complete_steps(view.session))
    windows = [step.window for step in steps if step.window is not None]
    if len(windows) < 2 or len(windows) != len(steps):
        return None
    return min(window[0] for window in windows), max(window[1] for window in windows), len(windows)
