"""Job: a template from what a diagnosis judged, and how a later session stands against that history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from kb.diagnose.thresholds import load_thresholds
from kb.domain.catalogue import Catalogue, CauseId
from kb.domain.diagnosis import ClusterDiagnosis, Diagnosis, SessionDiagnosis
from kb.domain.record import checked_slug
from kb.domain.template import Check, Seen, Template
from kb.domain.text import Text
from kb.errors import KbError
from kb.report.numbers import percent
from kb.text.slug import slug_of
from kb.workflow.diagnose import Diagnosed

Standing = Literal["new", "gone", "better", "worse", "same", "healthy", "not_judged", "no_history"]
SAME: Final = 0.02
"""Difference of two shares of the step (absolute) below which a finding counts as unchanged."""

_PITFALLS: Final = 6


class Compared(msgspec.Struct, frozen=True):
    """One check against the template's history: exposed shares of the step (0..1), None where there is none."""

    cause: CauseId
    standing: Standing
    before: float | None
    now: float | None


def template_of(diagnosed: Diagnosed, name: str, description: str) -> Template:
    """A template that asks for every cause the diagnosis could judge: what was found first, by share, then what was healthy.

    Each check carries the thresholds it was judged with and what it showed. Raises KbError when nothing could be judged,
    UsageError for a name without a letter or digit.
    """
    diagnosis, catalogue = diagnosed.diagnosis, diagnosed.catalogue
    found, healthy = _shares(diagnosis), _healthy(diagnosis)
    causes = (*sorted(found, key=lambda cause: -found[cause]), *(cause for cause in healthy if cause not in found))
    if not causes:
        raise KbError(
            "nothing could be judged in this capture, so there is nothing to make a template of", do="kb health says what to capture"
        )
    models = tuple(dict.fromkeys(session.meta.model.name for session in diagnosed.sessions if session.meta.model.name))
    types = tuple(dict.fromkeys(session.meta.model.type for session in diagnosed.sessions if session.meta.model.type))
    return Template(
        slug=checked_slug(slug_of(name, "template")),
        name=Text(zh=name.replace("_", " "), en=name.replace("_", " ")),
        description=Text(zh=description, en=description) if description else _described(diagnosed, len(causes)),
        checks=tuple(_check(cause, found.get(cause), diagnosed, catalogue) for cause in causes),
        models=models,
        model_types=types,
        pitfalls=_prerequisites(found, catalogue),
    )


def _prerequisites(causes: Iterable[CauseId], catalogue: Catalogue) -> tuple[Text, ...]:
    """What the first answer to each cause asks for."""
    answers = [catalogue.cause(cause).strategies[:1] for cause in causes]
    needs = [need for names in answers for name in names for need in catalogue.strategy(name).prerequisites]
    return tuple(dict.fromkeys(needs))[:_PITFALLS]


def _shares(diagnosis: Diagnosis) -> dict[CauseId, float]:
    """The largest exposed share of each cause over ranks and the cluster."""
    shares: dict[CauseId, float] = {}
    for finding in diagnosis.all_findings():
        shares[finding.cause] = max(finding.share, shares.get(finding.cause, 0.0))
    return shares


def _healthy(diagnosis: Diagnosis) -> tuple[CauseId, ...]:
    parts: tuple[ClusterDiagnosis | SessionDiagnosis, ...] = (diagnosis.cluster, *diagnosis.sessions)
    return tuple(dict.fromkeys(item.cause for part in parts for item in part.healthy))


def _check(cause: CauseId, share: float | None, diagnosed: Diagnosed, catalogue: Catalogue) -> Check:
    limits = {name: value for name, value in load_thresholds().values.items() if name.startswith(cause)}
    first = diagnosed.sessions[0].meta
    name, simulated = first.model.name or first.name, first.origin == "simulated"
    seen = Seen(session=name, origin=first.origin, share=round(share or 0.0, 6))
    mark_zh, mark_en = ("（仿真）", " (simulated)") if simulated else ("", "")
    definition = catalogue.cause(cause).name
    if share is None:
        reason = Text(zh=f"{definition.zh}：{name}{mark_zh} 中正常。", en=f"{definition.en}: healthy in {name}{mark_en}.")
    else:
        reason = Text(
            zh=f"{definition.zh}：在 {name}{mark_zh} 中暴露 {percent(share)} 的单步。",
            en=f"{definition.en}: {percent(share)} of the step exposed in {name}{mark_en}.",
        )
    return Check(cause=cause, thresholds=limits, reason=reason, history=(seen,))


def _described(diagnosed: Diagnosed, count: int) -> Text:
    name = diagnosed.sessions[0].meta.model.name or diagnosed.sessions[0].meta.name
    return Text(zh=f"由 {name} 的诊断生成，{count} 项检查。", en=f"Made from the diagnosis of {name}: {count} checks.")


def against_history(diagnosis: Diagnosis, template: Template) -> tuple[Compared, ...]:
    """Each check of the template: what its history showed (the newest entry) and what this diagnosis shows."""
    found, healthy = _shares(diagnosis), _healthy(diagnosis)
    return tuple(_compared(check, found, healthy) for check in template.checks)


def _compared(check: Check, found: Mapping[CauseId, float], healthy: Sequence[CauseId]) -> Compared:
    before = check.history[-1].share if check.history else None
    now = found.get(check.cause, 0.0 if check.cause in healthy else None)
    return Compared(check.cause, _standing(before, now), before, now)


def _standing(before: float | None, now: float | None) -> Standing:
    if now is None:
        return "not_judged"
    if before is None:
        return "no_history"
    if not now:
        return "gone" if before else "healthy"
    if not before:
        return "new"
    if abs(now - before) < SAME:
        return "same"
    return "worse" if now > before else "better"
