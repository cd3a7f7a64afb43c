"""Runs one rule and checks what it returns, so that a defect of a rule costs its own answer and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kb.diagnose.ruleset import RuleEntry
from kb.domain.catalogue import CauseId
from kb.domain.finding import Finding, Judgement, NotJudged
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds


def run(entry: RuleEntry, view: Any, thresholds: Thresholds, known: Iterable[CauseId]) -> tuple[Judgement, ...]:
    """The rule's judgements of ``view`` (a RankView or a ClusterView, as ``entry.kind`` says).

    A rule that raises, names a cause outside its own or outside the ``known`` ones, returns nothing for one of
    its causes, or a finding without evidence or with impossible times gets ``NotJudged(fault=True)`` in place.
    """
    try:
        judgements = tuple(entry.rule(view, thresholds))
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        return tuple(fault(cause, reason) for cause in entry.causes)
    catalogued = frozenset(known)
    checked = [_checked(judgement, entry, catalogued) for judgement in judgements]
    silent = [cause for cause in entry.causes if cause not in {judgement.cause for judgement in checked}]
    return (*checked, *(fault(cause, "the rule gave no judgement") for cause in silent))


def fault(cause: CauseId, reason: str) -> NotJudged:
    """A check lost to a defect of ours."""
    return NotJudged(cause=cause, reason=Text(f"内部错误：{reason}", f"internal error: {reason}"), fault=True)


def _checked(judgement: Judgement, entry: RuleEntry, known: frozenset[CauseId]) -> Judgement:
    breach = _breach(judgement, entry, known)
    return fault(judgement.cause, breach) if breach else judgement


def _breach(judgement: Judgement, entry: RuleEntry, known: frozenset[CauseId]) -> str | None:
    if judgement.cause not in entry.causes:
        return f"the rule is not responsible for {judgement.cause}"
    if judgement.cause not in known:
        return f"the catalogue has no cause {judgement.cause}"
    if not isinstance(judgement, Finding):
        return None
    if not judgement.evidence:
        return "a finding without evidence"
    if not 0 <= judgement.gain_bound_ns <= judgement.exposed_ns:
        return f"gain bound {judgement.gain_bound_ns} ns outside 0..{judgement.exposed_ns} ns exposed"
    if not 0.0 <= judgement.share <= 1.0:
        return f"share {judgement.share} outside 0..1"
    return None
