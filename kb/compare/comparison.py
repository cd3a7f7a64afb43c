"""Compares two sessions: step, parts and operators, with the noise taken seriously."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np

from kb.compare.comparability import common_work, doubts, refusals
from kb.compare.deltas import operator_deltas, part_deltas
from kb.compare.limits import load_limits
from kb.compare.noise import Band, Basis, lower_median, noise_band, verdict
from kb.diagnose.operators import load_classes
from kb.diagnose.steps import candidates, complete_steps
from kb.diagnose.view import RankView, rank_view
from kb.domain.comparison import Comparison, Verdict
from kb.domain.diagnosis import SessionDiagnosis
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds
from kb.session.session import Array, Session

_NO_STEP: Final = Text("至少一方没有完整的一步", "at least one side has no complete step")
_BOOKS: Final = Text("至少一方的账目不平，分项差异不可信", "the books of at least one side do not balance, so its parts cannot be trusted")
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
    classes, limits = load_classes(), load_limits()
    views = rank_view(before, classes), rank_view(after, classes)
    steps = _lengths(before), _lengths(after)
    outcome = _outcome(views, steps, limits)
    resolved, new = _causes(diagnoses)
    return Comparison(
        before=before.meta.name,
        after=after.meta.name,
        verdict=outcome.verdict,
        before_step_ns=views[0].accounting.step_ns,
        after_step_ns=views[1].accounting.step_ns,
        gain_fraction=outcome.gain,
        interval=outcome.band.interval,
        interval_level=limits["interval_level"],
        noise_fraction=outcome.band.fraction,
        n=(len(steps[0]), len(steps[1])),
        origins=(before.meta.origin, after.meta.origin),
        parts=part_deltas(*views),
        operators=operator_deltas(*views),
        resolved_causes=resolved,
        new_causes=new,
        reasons=outcome.reasons,
    )


class _Outcome(msgspec.Struct, frozen=True):
    verdict: Verdict
    gain: float
    band: Band
    reasons: tuple[Text, ...]


def _outcome(views: tuple[RankView, RankView], steps: tuple[Array, Array], limits: Thresholds) -> _Outcome:
    metas = views[0].session.meta, views[1].session.meta
    totals = views[0].totals_by_type(), views[1].totals_by_type()
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
    judged = "inconclusive" if doubted else verdict(gain, band, limits)
    return _Outcome(judged, gain, band, (*doubted, *unchecked, *_BASES[band.basis]))


def _lengths(session: Session) -> Array:
    """Lengths of the steps that may represent the run, int64 ns, shape (n,)."""
    return np.array([step.step_ns for step in candidates(complete_steps(session))], np.int64)


def _causes(diagnoses: tuple[SessionDiagnosis, SessionDiagnosis] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if diagnoses is None:
        return (), ()
    before, after = ({finding.cause for finding in diagnosis.findings} for diagnosis in diagnoses)
    return tuple(sorted(before - after)), tuple(sorted(after - before))
