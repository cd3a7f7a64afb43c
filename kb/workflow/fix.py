"""Job: the steps against one named bottleneck of a capture."""

from __future__ import annotations

from collections.abc import Sequence

from kb.domain.catalogue import Catalogue, StrategyId
from kb.domain.diagnosis import ClusterDiagnosis, Diagnosis, SessionDiagnosis
from kb.domain.recommendation import Constraints
from kb.errors import NotFoundError
from kb.session.session import Session
from kb.workflow.casebook import Casebook
from kb.workflow.diagnose import diagnose_sessions
from kb.workflow.recommend import recommend_for


def steps_against(casebook: Casebook, session: Session, bottleneck: str, constraints: Constraints) -> tuple[StrategyId, ...]:
    """Recommended strategies for the cause ``bottleneck`` (id or alias), best first.

    Raises NotFoundError for an unknown cause, and when the capture does not show it, naming what it shows.
    """
    cause = casebook.catalogue.cause(bottleneck)
    diagnosed = diagnose_sessions((session,), casebook.catalogue)
    found = list(dict.fromkeys(finding.cause for finding in diagnosed.diagnosis.all_findings()))
    if cause.id not in found:
        raise NotFoundError(
            f"{session.meta.name} does not show {cause.id}: {_why(diagnosed.diagnosis, cause.id)}",
            allowed=f"a bottleneck it shows: {', '.join(found) or 'none'}",
            do="see kb diagnose for what was found and what could not be judged",
        )
    recommendation = recommend_for(casebook, diagnosed, constraints)
    ranked = [item.id for item in recommendation.strategies if item.cause == cause.id]
    return tuple(dict.fromkeys((*ranked, *_direct(casebook.catalogue, cause.id, [item.id for item in recommendation.strategies]))))


def _direct(catalogue: Catalogue, cause: str, ranked: Sequence[StrategyId]) -> list[StrategyId]:
    """Strategies that answer this cause but are listed under another one they answer too."""
    return [name for name in ranked if cause in catalogue.strategy(name).addresses]


def _why(diagnosis: Diagnosis, cause: str) -> str:
    parts: tuple[ClusterDiagnosis | SessionDiagnosis, ...] = (diagnosis.cluster, *diagnosis.sessions)
    reasons = [note.reason.en for part in parts for note in part.not_judged if note.cause == cause]
    if reasons:
        return f"it could not be judged ({reasons[0]})"
    checked = any(item.cause == cause for part in parts for item in part.healthy)
    return "it was checked and is healthy" if checked else "no check of this version judges it"
