"""Where the step's time went, as a tree: engine, operator type, operand shapes."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.report.figures import Frame
from kb.report.pictures.tasks import ROLES, Tasks, sums_by
from kb.session.session import Array

_SMALLEST: Final = 4e-4
"""Frames below this share of the root are drawn together: they would be thinner than a pixel."""
_CHILDREN: Final = 40
_NAME: Final = 120


def flame_root(tasks: Tasks, idle_ns: int) -> Frame:
    """The root; its children are engines, named by role, and the time in which nothing ran.

    Values are summed durations, so with concurrent streams the root is longer than the step.
    """
    total = int(tasks.durations.sum()) + idle_ns
    engines = []
    keys, sums, inverse = sums_by(tasks.role, tasks.durations)
    for place in np.argsort(-sums, kind="stable").tolist():
        role = int(keys[place])
        rows = np.flatnonzero(inverse == place)
        engines.append(Frame(ROLES[role], int(sums[place]), ROLES[role], len(rows), _types(tasks, rows, role, total)))
    if idle_ns > 0:
        engines.append(Frame("idle", idle_ns, "idle"))
    return Frame("step", total, "accent", len(tasks), tuple(engines))


def _types(tasks: Tasks, rows: Array, role: int, total: int) -> tuple[Frame, ...]:
    keys, sums, inverse = sums_by(tasks.kind[rows], tasks.durations[rows])
    counts = np.bincount(inverse)
    frames: list[Frame] = []
    for place in np.argsort(-sums, kind="stable").tolist():
        own = rows[inverse == place] if sums[place] >= _SMALLEST * total and len(frames) < _CHILDREN else rows[:0]
        children = _shapes(tasks, own, role, total) if len(own) else ()
        frames.append(Frame(_text(tasks, int(keys[place])), int(sums[place]), ROLES[role], int(counts[place]), children))
    return _condensed(frames, total, role)


def _shapes(tasks: Tasks, rows: Array, role: int, total: int) -> tuple[Frame, ...]:
    shapes = tasks.column("input_shapes")
    if shapes is None:
        return ()
    keys, sums, inverse = sums_by(shapes[rows], tasks.durations[rows])
    counts = np.bincount(inverse)
    order = np.argsort(-sums, kind="stable").tolist()
    frames = [Frame(_text(tasks, int(keys[place])), int(sums[place]), ROLES[role], int(counts[place])) for place in order]
    return _condensed(frames, total, role)


def _condensed(frames: list[Frame], total: int, role: int) -> tuple[Frame, ...]:
    """Large frames as they are, the rest as one."""
    kept = [frame for frame in frames[:_CHILDREN] if frame.value_ns >= _SMALLEST * total]
    rest = frames[len(kept) :]
    if rest:
        kept.append(Frame(f"… ({len(rest)})", sum(frame.value_ns for frame in rest), ROLES[role], sum(frame.count for frame in rest)))
    return tuple(kept)


def _text(tasks: Tasks, code: int) -> str:
    return (tasks.session.text(code) or "–")[:_NAME]
