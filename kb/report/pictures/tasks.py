"""The device tasks of the representative step, as columns every picture starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from kb.diagnose.view import RankView
from kb.report.figures import Role
from kb.session.session import Array, Session, Table

ROLES: Final[tuple[Role, ...]] = ("cube", "vector", "mix", "ai_cpu", "communication", "other")
_COMMUNICATION: Final = ROLES.index("communication")
_OTHER: Final = ROLES.index("other")


@dataclass(frozen=True, slots=True)
class Tasks:
    """``table`` holds the step's kernel rows, sorted by start; ``role`` indexes ``ROLES``; ``kind`` is the operator
    type's string code, or the kernel name's where the capture has no type; ``begin`` and ``end`` bound the step, ns."""

    session: Session
    table: Table
    role: Array
    kind: Array
    begin: int
    end: int

    def __len__(self) -> int:
        return len(self.table)

    @property
    def starts(self) -> Array:
        """Begin of each task, ns since the step's begin."""
        return self.table["start_ns"] - self.begin

    @property
    def durations(self) -> Array:
        """Duration of each task, ns."""
        return self.table["duration_ns"]

    def column(self, name: str) -> Array | None:
        """A column, or None when it was not captured."""
        return self.table.columns.get(name)


def step_tasks(view: RankView) -> Tasks | None:
    """The tasks of ``view``'s representative step; None when no device task of the step was captured."""
    table = view.kernels
    if table is None or not len(table):
        return None
    starts, ends = table["start_ns"], table["start_ns"] + table["duration_ns"]
    window = view.books.step.window if view.books.step is not None else None
    begin, end = int(starts.min()), int(ends.max())
    if window is not None:
        begin, end = min(begin, window[0]), max(end, window[1])
    kind = table["op_type"]
    return Tasks(view.session, table, _roles(view, table), np.where(kind >= 0, kind, table["name"]), begin, end)


def _roles(view: RankView, table: Table) -> Array:
    role = np.full(len(table), _OTHER, np.int8)
    for place, name in enumerate(ROLES):
        if name in view.classes.cores:
            role[np.isin(table["core"], view.session.codes(view.classes.cores[name]))] = place
    role[view.communication(table)] = _COMMUNICATION
    return role


def is_communication(tasks: Tasks) -> Array:
    """Boolean mask of communication tasks."""
    found: Array = tasks.role == _COMMUNICATION
    return found


def sums_by(groups: Array, values: Array) -> tuple[Array, Array, Array]:
    """Distinct values of ``groups``, the sum of ``values`` in each, and the inverse index of every row."""
    keys, inverse = np.unique(groups, return_inverse=True)
    return keys, np.bincount(inverse, weights=values, minlength=len(keys)), inverse
