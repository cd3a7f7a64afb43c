"""The steps of a session, the representative one among them, and the rows that belong to it."""

from __future__ import annotations

import msgspec
import numpy as np

from kb.session.session import Array, Session, Table


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One complete step.

    ``code`` indexes ``Session.strings`` (-1 = not marked). ``trace_row`` is the position in the table
    ``step_trace``, None where the exporter gave no totals. ``window`` is (begin, end) in ns, None where
    neither a marker nor kernels place the step in time.
    """

    code: int
    label: str
    step_ns: int
    warmup: bool
    trace_row: int | None
    window: tuple[int, int] | None


def complete_steps(session: Session) -> tuple[Step, ...]:
    """Every complete step, in the order of the source.

    Taken from the exporter's totals where they exist (length = Stage + Bubble), else from markers
    (length = span), else from the span of the kernels of each step id; kernels without ids are one step.
    """
    for source in (_traced, _marked, _spanned):
        steps = source(session)
        if steps:
            return steps
    return ()


def candidates(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps that may represent the run: those not marked as warm-up, or all when every one is."""
    return tuple(step for step in steps if not step.warmup) or steps


def representative(steps: tuple[Step, ...]) -> Step | None:
    """The step of (lower) median length among the candidates: a real step, so its rows can be cited. None for no steps."""
    ordered = sorted(candidates(steps), key=lambda step: step.step_ns)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def rows_of(table: Table, step: Step, *, only: bool) -> Array:
    """Positions (ascending int64) of the rows of a table with ``start_ns`` that belong to ``step``.

    A marker without exporter totals decides by time; else the step id decides; else the marker; else every
    row, but only when the capture holds one step (``only``): rows of unknown step are never guessed.
    """
    if step.trace_row is None and step.window is not None:
        return _overlapping(table, step.window)
    if step.code >= 0 and "step_id" in table:
        own = np.flatnonzero(table["step_id"] == step.code)
        if len(own):
            return own
    if step.window is not None:
        return _overlapping(table, step.window)
    return np.arange(len(table)) if only else np.empty(0, np.int64)


def _overlapping(table: Table, window: tuple[int, int]) -> Array:
    begin, end = window
    starts = table["start_ns"]
    return np.flatnonzero((starts >= 0) & (starts < end) & (starts + table["duration_ns"] > begin))


def _traced(session: Session) -> tuple[Step, ...]:
    trace = session.table("step_trace")
    if trace is None:
        return ()
    markers = {step.code: step for step in _marked(session)}
    warmups = _warmups(session)
    lengths = trace["stage_ns"] + trace["bubble_ns"]
    found = []
    for row in np.flatnonzero(lengths > 0).tolist():
        code = int(trace["step_id"][row])
        marker = markers.get(code)
        found.append(
            Step(
                code=code,
                label=session.text(code) or "",
                step_ns=int(lengths[row]),
                warmup=code in warmups,
                trace_row=row,
                window=marker.window if marker else None,
            )
        )
    return tuple(found)


def _marked(session: Session) -> tuple[Step, ...]:
    markers = session.table("steps")
    if markers is None or "start_ns" not in markers or "end_ns" not in markers:
        return ()
    found = []
    for row in np.flatnonzero((markers["start_ns"] >= 0) & (markers["end_ns"] > markers["start_ns"])).tolist():
        begin, end, code = int(markers["start_ns"][row]), int(markers["end_ns"][row]), int(markers["step_id"][row])
        warmup = bool(markers["warmup"][row] == 1)
        found.append(
            Step(code=code, label=session.text(code) or "", step_ns=end - begin, warmup=warmup, trace_row=None, window=(begin, end))
        )
    return tuple(found)


def _spanned(session: Session) -> tuple[Step, ...]:
    kernels = session.table("kernels")
    if kernels is None:
        return ()
    starts = kernels["start_ns"]
    ends = starts + kernels["duration_ns"]
    ids = kernels["step_id"] if "step_id" in kernels else np.full(len(kernels), -1)
    warmups = _warmups(session)
    found = []
    for code in np.unique(ids[ids >= 0]).tolist() or [-1]:
        own = ids == code
        begin, end = int(starts[own].min()), int(ends[own].max())
        if end > begin:
            label = session.text(code) or ""
            found.append(Step(code=code, label=label, step_ns=end - begin, warmup=code in warmups, trace_row=None, window=(begin, end)))
    return tuple(found)


def _warmups(session: Session) -> frozenset[int]:
    markers = session.table("steps")
    if markers is None:
        return frozenset()
    return frozenset(markers["step_id"][markers["warmup"] == 1].tolist()) - {-1}
