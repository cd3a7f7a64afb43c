"""Compares two sessions: step, parts and operators, with the noise taken seriously."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from kb.compare.comparability import common_work, doubts, refusals
from kb.compare.deltas import operator_deltas, part_deltas, work_classes
from kb.compare.evidence import all_lengths, cause_deltas, cautions, controls, order_caution, scaling, tails, warms_up
from kb.compare.limits import load_limits
from kb.compare.noise import Band, Basis, lower_median, noise_band, verdict
from kb.diagnose.operators import load_classes
from kb.diagnose.view import RankView, rank_view
from kb.domain.comparison import Comparison, Verdict
from kb.domain.diagnosis import SessionDiagnosis
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds
from kb.session.meta import SessionMeta
from kb.session.session import Array, Session

_NO_STEP: Final = Text("至少一方没有完整的一步", "at least one side has no complete step")
_BOOKS: Final = Text("至少一方的账目不平，分项差异不可信", "the books of at least one side do not balance, so its parts cannot be trusted")
_INTERLEAVE: Final = Text(
    "差异小于两次采集之间常见的波动：请交替重跑两方（A B A B），每方至少三次采集，再下结论",
    "the difference is within what two captures of one program differ by: re-run interleaved (A B A B), at least three captures a side",
)
_UNCHECKED: Final = Text(
    "缺少算子类型，无法核对两次是不是同一任务", "operator types are missing: whether both did the same work is unchecked"
)
_BASES: Final[Mapping[Basis, tuple[Text, ...]]] = {
    "exact": (),
    "repeats": (
        Text(
            "每方只有一次采集：各步之间的波动已计入，两次采集之间的波动没有",
            "a single capture a side: the spread between steps counts, the spread between captures does not",
        ),
    ),
    "single": (
        Text(
            "每方只有一次采集且步数不足，噪声按默认值计",
            "a single capture with too few steps a side: the noise is a default, not measured",
        ),
    ),
}


def compare(before: Session, after: Session, *, diagnoses: tuple[SessionDiagnosis, SessionDiagnosis] | None = None) -> Comparison:
    """Compare the representative steps of two sessions.

    A pair that differs in chip, world size, model, phase, origin or work gets the verdict ``not_comparable`` with the
    reasons, a gain of 0 and an empty interval; parts and operators are still there. ``diagnoses`` (of before and
    after) fills resolved and new causes. Never raises for what the sessions hold.
    """
    return compare_sets((before,), (after,), diagnoses=diagnoses)


def compare_sets(
    before: Sequence[Session], after: Sequence[Session], *, diagnoses: tuple[SessionDiagnosis, SessionDiagnosis] | None = None
) -> Comparison:
    """The same for repeats: one or more captures a side of one rank each, at least one a side.

    With several captures the spread between them is what counts: the noise comes from their middle steps. Parts,
    operators and names are those of the middle capture of each side; ``diagnoses`` belong to those.
    """
    classes, limits = load_classes(), load_limits()
    first, second = middle(before), middle(after)
    views = rank_view(first, classes), rank_view(second, classes)
    steps = _pooled(before), _pooled(after)
    spread = _spread(before), _spread(after)
    captures = len(before), len(after)
    outcome = _outcome(views, spread, captures, limits)
    resolved, new = _causes(diagnoses)
    operators = operator_deltas(*views)
    untouched, drift = controls(operators)
    lengths = views[0].accounting.step_ns, views[1].accounting.step_ns
    more = (*cautions((before, after), drift, limits), *(order_caution(before, after) if max(captures) > 1 else ()))
    return Comparison(
        before=first.meta.name,
        after=second.meta.name,
        verdict=outcome.verdict,
        before_step_ns=views[0].accounting.step_ns,
        after_step_ns=views[1].accounting.step_ns,
        gain_fraction=outcome.gain,
        interval=outcome.band.interval,
        interval_level=limits["interval_level"],
        noise_fraction=outcome.band.fraction,
        n=(len(steps[0]), len(steps[1])),
        origins=(first.meta.origin, second.meta.origin),
        parts=part_deltas(*views),
        operators=operators,
        resolved_causes=resolved,
        new_causes=new,
        reasons=(*outcome.reasons, *more),
        captures=captures,
        causes=cause_deltas(diagnoses),
        controls=untouched,
        control_drift=drift,
        p99_ns=tails(*steps, limits),
        scaling_efficiency=scaling(first.meta, second.meta, lengths),
    )


def middle(captures: Sequence[Session]) -> Session:
    """The capture whose middle step is the (lower) middle one; captures without a step come last."""
    ordered = sorted(captures, key=lambda capture: lower_median(own) if len(own := _lengths(capture)) else sys.maxsize)
    return ordered[(len(ordered) - 1) // 2]


class _Outcome(msgspec.Struct, frozen=True):
    verdict: Verdict
    gain: float
    band: Band
    reasons: tuple[Text, ...]


def _outcome(views: tuple[RankView, RankView], steps: tuple[Array, Array], captures: tuple[int, int], limits: Thresholds) -> _Outcome:
    metas = views[0].session.meta, views[1].session.meta
    totals = work_classes(views[0]), work_classes(views[1])
    against = refusals(*metas, totals, limits)
    if not len(steps[0]) or not len(steps[1]):
        against = (*against, _NO_STEP)
    if against:
        return _Outcome("not_comparable", 0.0, Band(0.0, (0.0, 0.0), "single"), against)
    band = noise_band(*steps, metas, limits)
    gain = 1.0 - lower_median(steps[1]) / lower_median(steps[0])
    doubted = list(doubts(*metas))
    if any(view.books.violations for view in views):
        doubted.append(_BOOKS)
    unchecked = () if common_work(*totals) is not None else (_UNCHECKED,)
    judged = verdict(gain, band, limits)
    if min(captures) == 1 and band.basis == "repeats" and _between(metas, gain, limits) and judged in ("improved", "regressed"):
        doubted.append(_INTERLEAVE)
    basis = _BASES[band.basis] if min(captures) == 1 else ()
    return _Outcome("inconclusive" if doubted else judged, gain, band, (*doubted, *unchecked, *basis))


def _between(metas: tuple[SessionMeta, SessionMeta], gain: float, limits: Thresholds) -> bool:
    """Whether two measured captures may differ by ``gain`` without any change."""
    return "simulated" not in (metas[0].origin, metas[1].origin) and abs(gain) <= limits["single_step_noise"]


def _pooled(captures: Sequence[Session]) -> Array:
    return np.concatenate([_lengths(capture) for capture in captures])


def _spread(captures: Sequence[Session]) -> Array:
    """Values whose scatter is the noise: the steps of one capture, or the middle step of each of several."""
    if len(captures) == 1:
        return _lengths(captures[0])
    return np.array([lower_median(own) for capture in captures if len(own := _lengths(capture))], np.int64)


def _lengths(session: Session) -> Array:
    """Lengths of the steps that may represent the run, int64 ns, shape (n,); a first step that is a warm-up is left out."""
    every = all_lengths(session)
    return every[1:] if warms_up(every, load_limits()) else every


def _causes(diagnoses: tuple[SessionDiagnosis, SessionDiagnosis] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if diagnoses is None:
        return (), ()
    before, after = ({finding.cause for finding in diagnosis.findings} for diagnosis in diagnoses)
    return tuple(sorted(before - after)), tuple(sorted(after - before))
