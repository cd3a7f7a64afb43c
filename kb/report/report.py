"""What a report file carries: every value it was made from, free of language, so that it can be opened again, rendered in the
other format or language, and published."""

from __future__ import annotations

from typing import Final

import msgspec

from kb.domain.case import Answer
from kb.domain.catalogue import CauseId
from kb.domain.comparison import Comparison
from kb.domain.diagnosis import Diagnosis
from kb.domain.drilldown import DrillDown
from kb.domain.finding import Finding
from kb.domain.plan import Plan
from kb.domain.recommendation import Recommendation
from kb.domain.record import Record
from kb.domain.text import Lang, Text
from kb.domain.version import Version
from kb.report.figures import Bin
from kb.report.pictures.facts import SessionFacts
from kb.session.health import Health

FORMAT: Final = "diagnosis-recipes report"
SCHEMA: Final = 1


class Reuse(msgspec.Struct, frozen=True, kw_only=True):
    """How far a cause reaches in the casebook: cases, those that got better, and the chip families and model types they ran on."""

    cause: CauseId
    cases: int
    improved: int
    families: tuple[str, ...] = ()
    model_types: tuple[str, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """``record`` is the draft to publish; ``version`` a stored record shown as a report. None = not part of this report.

    ``after`` are the facts of the second session of ``comparison``. ``calibration`` are bins of a benchmark's confidences
    with their expected calibration error.
    """

    format: str = FORMAT
    schema: int = SCHEMA
    lang: Lang = "en"
    diagnosis: Diagnosis | None = None
    facts: tuple[SessionFacts, ...] = ()
    health: Health | None = None
    recommendation: Recommendation | None = None
    plan: Plan | None = None
    answer: Answer | None = None
    reuse: tuple[Reuse, ...] = ()
    pitfalls: tuple[Text, ...] = ()
    comparison: Comparison | None = None
    after: SessionFacts | None = None
    drilldown: DrillDown | None = None
    version: Version | None = None
    record: Record | None = None
    calibration: tuple[Bin, ...] = ()
    calibration_error: float = 0.0

    @property
    def simulated(self) -> bool:
        """Whether any figure in it comes from the simulated backend."""
        origins = [session.origin for session in self.diagnosis.sessions] if self.diagnosis else []
        origins += self.comparison.origins if self.comparison else ()
        return "simulated" in origins or (self.version is not None and self.version.record.provenance == "simulated")

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every finding, most important first; empty without a diagnosis."""
        return self.diagnosis.all_findings() if self.diagnosis else ()
