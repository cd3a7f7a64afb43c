"""Names of catalogue entries and places, in the reader's language."""

from __future__ import annotations

from kb.domain.catalogue import Catalogue
from kb.domain.diagnosis import Diagnosis, SessionDiagnosis
from kb.domain.finding import Finding
from kb.report.evidence_names import observed_name
from kb.report.labels import Labels


def cause_name(cause: str, catalogue: Catalogue, words: Labels) -> str:
    """The cause's name, or its id when the catalogue does not know it."""
    known = catalogue.causes.get(cause)
    return known.name.pick(words.lang) if known else cause


def strategy_name(strategy: str, catalogue: Catalogue, words: Labels) -> str:
    """The strategy's name, or its id when the catalogue does not know it."""
    known = catalogue.strategies.get(strategy)
    return known.name.pick(words.lang) if known else strategy


def metric_name(metric: str, catalogue: Catalogue, words: Labels) -> str:
    """The metric's name, or its id in words."""
    known = catalogue.metrics.get(metric)
    return known.name.pick(words.lang) if known else observed_name(metric, words.lang)


def session_name(session: SessionDiagnosis, words: Labels) -> str:
    """Rank and stage where known, else the session's own name."""
    if session.rank is None:
        return session.name
    place = f"{words('rank')} {session.rank}"
    return f"{place} · {words('stage')} {session.stage}" if session.stage is not None else place


def owner_of(finding: Finding, diagnosis: Diagnosis, words: Labels) -> str:
    """Whose finding it is."""
    owner = next((session for session in diagnosis.sessions if any(item is finding for item in session.findings)), None)
    return session_name(owner, words) if owner else words("cluster")
