"""The JSON shapes that scripts rely on. Units stand in the key names; keys are never renamed, only added."""

from __future__ import annotations

from typing import Any

import msgspec

from kb.domain.accounting import PARTS
from kb.domain.case import Answer
from kb.domain.comparison import Comparison
from kb.domain.diagnosis import Diagnosis, SessionDiagnosis
from kb.domain.field import FieldAnswer
from kb.domain.finding import Finding, Healthy, NotJudged
from kb.domain.plan import Plan
from kb.domain.protocols import Summary
from kb.domain.recommendation import Recommendation
from kb.domain.version import Version


def diagnosis_payload(diagnosis: Diagnosis) -> dict[str, Any]:
    """``kb diagnose --json``."""
    cluster = diagnosis.cluster
    return {
        "sessions": [_session(session) for session in diagnosis.sessions],
        "cluster": {
            "findings": [_finding(finding) for finding in cluster.findings],
            "healthy": [_healthy(item) for item in cluster.healthy],
            "not_judged": [_not_judged(item) for item in cluster.not_judged],
            "captured_ranks": list(cluster.captured_ranks),
            "world_size": cluster.world_size,
            "group_size": cluster.group_size,
        },
        "template": diagnosis.template,
    }


def _session(session: SessionDiagnosis) -> dict[str, Any]:
    books = session.accounting
    return {
        "name": session.name,
        "rank": session.rank,
        "stage": session.stage,
        "origin": session.origin,
        "step": books.step,
        "step_ns": books.step_ns,
        "preparing_ns": books.preparing_ns,
        "steps": session.steps,
        "accounting_ns": {part: books.parts.get(part, 0) for part in PARTS},
        "splits_ns": books.splits,
        "accounting_source": books.source,
        "unexplained_ns": session.unexplained_ns,
        "violations": list(session.violations),
        "notes": [plain(note) for note in books.notes],
        "findings": [_finding(finding) for finding in session.findings],
        "healthy": [_healthy(item) for item in session.healthy],
        "not_judged": [_not_judged(item) for item in session.not_judged],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "cause": finding.cause,
        "priority": finding.priority,
        "exposed_ns": finding.exposed_ns,
        "share": finding.share,
        "gain_bound_ns": finding.gain_bound_ns,
        "confidence": finding.confidence,
        "message": plain(finding.message),
        "where": plain(finding.where),
        "evidence": [plain(item) for item in finding.evidence],
        "strategies": list(finding.strategies),
        "observed": dict(finding.observed),
        "healthy": dict(finding.healthy),
        "notes": [plain(note) for note in finding.notes],
    }


def _healthy(item: Healthy) -> dict[str, Any]:
    found: dict[str, Any] = plain(item)
    return found


def _not_judged(item: NotJudged) -> dict[str, Any]:
    found: dict[str, Any] = plain(item)
    return found


def answer_payload(answer: Answer) -> dict[str, Any]:
    """``kb search --json``."""
    return {
        "hits": [
            {
                "slug": hit.slug,
                "version": hit.version,
                "origin": hit.origin,
                "kind": hit.kind,
                "title": plain(hit.title),
                "score": hit.score,
                "similarity": hit.similarity,
                "why": [{"feature": why.feature, "text": plain(why.text), "contribution": why.contribution} for why in hit.why],
                "provenance": hit.provenance,
                "status": hit.status,
                "snippet": plain(hit.snippet),
                "contrasts": [plain(contrast) for contrast in hit.contrasts],
            }
            for hit in answer.hits
        ],
        "abstained": answer.abstained,
        "notes": [plain(note) for note in answer.notes],
    }


def recommendation_payload(recommendation: Recommendation) -> dict[str, Any]:
    """``kb recommend --json``."""
    return {
        "strategies": [
            {**plain(item), "interval": list(item.interval), "cases": [plain(case) for case in item.cases]}
            for item in recommendation.strategies
        ],
        "excluded": [{"id": item.id, "reason": plain(item.reason)} for item in recommendation.excluded],
        "feasible": recommendation.feasible,
        "closest": plain(recommendation.closest),
        "notes": [plain(note) for note in recommendation.notes],
        "front": list(recommendation.front),
        "percentiles": [plain(item) for item in recommendation.percentiles],
    }


def plan_payload(plan: Plan) -> dict[str, Any]:
    """``kb plan --json``."""
    found: dict[str, Any] = plain(plan)
    return found


def field_payload(answer: FieldAnswer) -> dict[str, Any]:
    """``kb recommend --symptom --json``."""
    found: dict[str, Any] = plain(answer)
    return found


def comparison_payload(comparison: Comparison) -> dict[str, Any]:
    """``kb compare --json``."""
    found: dict[str, Any] = plain(comparison)
    return found


def summary_payload(summary: Summary, version: Version) -> dict[str, Any]:
    """One entry of ``kb list --json``."""
    return {
        "slug": summary.ref.slug,
        "version": summary.ref.n,
        "origin": summary.ref.origin,
        "kind": summary.kind,
        "title": plain(version.record.title),
        "provenance": summary.provenance,
        "languages": [lang for lang in ("zh", "en") if getattr(version.record.title, lang)],
        "tags": list(version.record.tags),
        "status": summary.status,
        "sha256": version.sha256,
    }


def version_payload(version: Version) -> dict[str, Any]:
    """``kb show --json``."""
    found: dict[str, Any] = plain(version)
    return found


def plain(value: Any) -> Any:
    """A domain value as dicts, lists and scalars; every field present, also those left at their default."""
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
