"""Job: compare two captures."""

from __future__ import annotations

from pathlib import Path

from kb.compare.comparison import compare
from kb.domain.comparison import Comparison
from kb.errors import NotComparableError, UnusableCaptureError
from kb.profile.sources import load
from kb.session.session import Session


def compare_paths(before: Path, after: Path) -> Comparison:
    """Compare the captures at two paths: of several ranks, the same rank on both sides, the slowest of ``before``."""
    return compare(*pair(load(before), load(after)))


def pair(before: tuple[Session, ...], after: tuple[Session, ...]) -> tuple[Session, Session]:
    """The sessions to compare. Raises NotComparableError when no rank is on both sides."""
    if not before or not after:
        raise UnusableCaptureError("one side holds no session", do="run kb health on both")
    if len(before) == len(after) == 1:
        return before[0], after[0]
    others = {session.meta.rank: session for session in after}
    shared = [session for session in before if session.meta.rank in others]
    if not shared:
        ranks = [session.meta.rank for session in before], [session.meta.rank for session in after]
        raise NotComparableError(f"no rank is on both sides: {ranks[0]} and {ranks[1]}", do="capture the same ranks before and after")
    first = max(shared, key=_length)
    return first, others[first.meta.rank]


def _length(session: Session) -> int:
    trace = session.table("step_trace")
    if trace is not None:
        return int(trace["stage_ns"].max() + trace["bubble_ns"].max())
    kernels = session.table("kernels")
    return int(kernels["duration_ns"].sum()) if kernels is not None else 0
