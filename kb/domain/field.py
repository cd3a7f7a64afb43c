"""A problem told in words, without a profile, and what the casebook makes of it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kb.domain.catalogue import CauseId, StrategyId
from kb.domain.text import Text


class FieldQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody saw: ``symptom`` in Chinese or English, ``metrics`` as they were noted (name to value), and where it happened."""

    symptom: str
    metrics: Mapping[str, str] = {}
    hardware: str = ""
    model: str = ""
    workload: str = ""

    def words(self) -> str:
        """Everything that was said, as one text."""
        noted = " ".join(f"{name} {value}" for name, value in self.metrics.items())
        return " ".join(filter(None, (self.symptom, noted, self.hardware, self.model, self.workload)))

    def setting(self) -> str:
        """The symptom with the work that was running."""
        return " ".join(filter(None, (self.symptom, self.workload)))


class FieldCause(msgspec.Struct, frozen=True, kw_only=True):
    """A possible cause. ``probability`` (0..1) is calibrated where the answer says so; ``words`` are those of the question that
    spoke most for it; ``records`` are similar past cases with this cause, as slug@n."""

    id: CauseId
    probability: float
    words: tuple[str, ...] = ()
    records: tuple[str, ...] = ()


class FieldStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """A change worth trying. ``probability`` (0..1, not calibrated) that it is the answer: the sum over the possible causes of what
    answered them before. ``cause``: the one that speaks most for it. ``tried`` and ``worked``: outcomes in the casebook, over all
    causes."""

    id: StrategyId
    probability: float
    cause: CauseId
    tried: int = 0
    worked: int = 0


class FieldAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Causes and strategies, likeliest first. ``cases`` counts the past cases learnt from, ``calibrated_on`` those behind the
    calibration of the causes' probabilities (0: not calibrated)."""

    causes: tuple[FieldCause, ...]
    strategies: tuple[FieldStrategy, ...]
    cases: int
    calibrated_on: int = 0
    notes: tuple[Text, ...] = ()
