"""The diagnosis of one or more sessions."""

from __future__ import annotations

import msgspec

from kb.domain.accounting import Accounting
from kb.domain.finding import Finding, Healthy, NotJudged
from kb.domain.provenance import Origin


class SessionDiagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """One rank: ``accounting`` of its representative step, and what the rules say about it.

    ``name`` is the folder or file name; ``rank`` and ``stage`` are None where the capture does not say.
    ``steps`` counts complete steps in the capture.
    """

    name: str
    rank: int | None
    stage: int | None
    origin: Origin
    steps: int
    accounting: Accounting
    findings: tuple[Finding, ...]
    healthy: tuple[Healthy, ...]
    not_judged: tuple[NotJudged, ...]
    violations: tuple[str, ...] = ()
    """Why the books cannot be trusted; empty when they balance."""


class ClusterDiagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What only shows across ranks. ``world_size`` is None where no rank states it."""

    findings: tuple[Finding, ...] = ()
    healthy: tuple[Healthy, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()
    captured_ranks: tuple[int, ...] = ()
    world_size: int | None = None


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """All sessions of one input, and the view across them."""

    sessions: tuple[SessionDiagnosis, ...]
    cluster: ClusterDiagnosis
    template: str = "auto"

    def all_findings(self) -> tuple[Finding, ...]:
        """Every finding, cluster's first, then by rank, each group by exposed time."""
        own = [finding for session in self.sessions for finding in session.findings]
        return (*self.cluster.findings, *sorted(own, key=lambda finding: -finding.exposed_ns))

    def has_books(self) -> bool:
        """Whether any session has a step whose parts add up to it."""
        return any(session.accounting.step_ns and not session.violations for session in self.sessions)

    def has_fault(self) -> bool:
        """Whether a rule raised, so that the command must exit with status 4."""
        skipped = [*self.cluster.not_judged, *(note for session in self.sessions for note in session.not_judged)]
        return any(note.fault for note in skipped)
