"""The diagnosis of one or more sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kb.domain.accounting import Accounting
from kb.domain.finding import Finding, Healthy, NotJudged
from kb.domain.provenance import Origin

UNEXPLAINED_LARGE: Final = 0.05
"""Share of the step, of the size a launch-bound step begins at, from which unexplained idle time leaves the checks on it open."""


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
    unexplained_ns: int = 0
    """Idle time of unknown cause that no finding claims."""

    def leaves_open(self, findings: Sequence[Finding] = ()) -> bool:
        """Whether unexplained idle time is large, and a larger loss than any of ``findings``."""
        step = self.accounting.step_ns
        least = max((finding.share for finding in findings), default=0.0)
        return bool(step) and self.unexplained_ns >= max(UNEXPLAINED_LARGE, least) * step

    def saw_device(self) -> bool:
        """Whether the device did anything in the step: a capture of the host alone says nothing about it."""
        return any(value for part, value in self.accounting.parts.items() if part in ("compute", "comm_exposed", "copy_exposed"))


class ClusterDiagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What only shows across ranks. ``world_size`` is None where no rank states it."""

    findings: tuple[Finding, ...] = ()
    healthy: tuple[Healthy, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()
    captured_ranks: tuple[int, ...] = ()
    world_size: int | None = None
    group_size: int | None = None
    """Ranks of the largest group that tasks name: at least so many there are where no rank states the world size."""


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
        """Whether any session has a step with work of the device, whose parts add up to it."""
        return any(session.accounting.step_ns and session.saw_device() and not session.violations for session in self.sessions)

    def has_fault(self) -> bool:
        """Whether a rule raised, so that the command must exit with status 4."""
        skipped = [*self.cluster.not_judged, *(note for session in self.sessions for note in session.not_judged)]
        return any(note.fault for note in skipped)
