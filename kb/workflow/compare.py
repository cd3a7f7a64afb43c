"""Job: compare two captures, or two sets of repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kb.compare.comparison import compare_sets, middle
from kb.compare.quality import judge_quality
from kb.diagnose.diagnosis import diagnose
from kb.domain.comparison import Comparison
from kb.errors import MalformedInputError, NotComparableError, UnusableCaptureError, UsageError
from kb.profile.sources import load
from kb.session.session import Session
from kb.workflow.location import shipped_catalogue


def compare_paths(
    before: Path,
    after: Path,
    *,
    more_before: Sequence[Path] = (),
    more_after: Sequence[Path] = (),
    quality: Sequence[str] = (),
    max_loss: float = 0.0,
) -> Comparison:
    """Compare the captures at two paths: of several ranks, the same rank on both sides, the slowest of ``before``.

    ``more_*`` are repeats of each side. ``quality`` holds two values or JSON files of metrics, before and after.
    """
    sides = tuple([load(path) for path in paths] for paths in ((before, *more_before), (after, *more_after)))
    first, second = pair(sides[0][0], sides[1][0])
    rank = first.meta.rank
    repeats = [_of_rank(capture, rank, known) for side, known in zip(sides, (first, second), strict=True) for capture in side]
    count = len(sides[0])
    return with_quality(compared(repeats[:count], repeats[count:]), quality, max_loss)


def compared(before: Sequence[Session], after: Sequence[Session]) -> Comparison:
    """Compare sets of repeats of one rank, with the causes of the middle capture of each side."""
    catalogue = shipped_catalogue()
    chosen = middle(before), middle(after)
    diagnoses = diagnose([chosen[0]], catalogue).sessions[0], diagnose([chosen[1]], catalogue).sessions[0]
    return compare_sets(before, after, diagnoses=diagnoses)


def with_quality(comparison: Comparison, quality: Sequence[str], max_loss: float) -> Comparison:
    """The comparison with the quality judged; unchanged without ``quality``. Raises UsageError unless there are two values."""
    if not quality:
        return comparison
    if len(quality) != 2:
        raise UsageError(f"--quality takes two values, got {len(quality)}", allowed="a number or a JSON file of metrics, before and after")
    state, texts = judge_quality(metrics(quality[0]), metrics(quality[1]), max_loss)
    return msgspec.structs.replace(comparison, quality=state, reasons=(*comparison.reasons, *texts))


def metrics(text: str) -> Mapping[str, float]:
    """A number, or a JSON file of numbers by name. Raises UsageError or MalformedInputError."""
    try:
        return {"value": float(text)}
    except ValueError:
        path = Path(text)
    if not path.is_file():
        raise UsageError(f"{text} is neither a number nor a file", allowed='0.76, or a file like {"accuracy": 0.76}')
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, float])
    except msgspec.MsgspecError as error:
        raise MalformedInputError(f"{path}: {error}", do='write numbers by name, like {"accuracy": 0.76}') from error


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


def _of_rank(capture: tuple[Session, ...], rank: int | None, known: Session) -> Session:
    """The session of ``rank`` in one capture; ``known`` is already chosen."""
    if known in capture:
        return known
    if len(capture) == 1:
        return capture[0]
    found = next((session for session in capture if session.meta.rank == rank), None)
    if found is None:
        raise NotComparableError(f"a repeat lacks rank {rank}", do="capture the same ranks in every repeat")
    return found


def _length(session: Session) -> int:
    trace = session.table("step_trace")
    if trace is not None:
        return int(trace["stage_ns"].max() + trace["bubble_ns"].max())
    kernels = session.table("kernels")
    return int(kernels["duration_ns"].sum()) if kernels is not None else 0
