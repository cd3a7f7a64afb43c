"""How sure a finding is: the share of right findings on planted truth, by cause and by how far the loss is above its threshold.

The numbers stand in ``confidence.json`` and are made again by ``benchmarks/confidence_fit.py`` from rows of development seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from kb.domain.catalogue import CauseId
from kb.domain.thresholds import Thresholds

FILE: Final = Path(__file__).with_name("confidence.json")


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """From the margin ``least`` on (exposed share over the rule's least share) the log-odds of being right."""

    least: float
    log_odds: float


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """The data file. ``causes`` are log-odds on top of the step's; a cause that was never planted has none. ``highest`` is the
    most confidence the number of findings behind the fit supports."""

    about: str
    rows: int
    findings: int
    steps: tuple[Step, ...]
    causes: Mapping[CauseId, float]
    highest: float

    def probability(self, cause: CauseId, margin: float | None) -> float:
        """Of being right with full evidence; ``margin`` None where the rule has no least share."""
        passed = [step for step in self.steps if margin is None or margin >= step.least]
        odds = (passed[-1] if passed else self.steps[0]).log_odds + self.causes.get(cause, 0.0)
        return min(self.highest, 1.0 / (1.0 + math.exp(-odds)))


@cache
def load_calibration() -> Calibration:
    """The shipped calibration."""
    return msgspec.json.decode(FILE.read_bytes(), type=Calibration)


def confidence(thresholds: Thresholds, cause: CauseId, margin: float | None = None, *, major: int = 0, minor: int = 0) -> float:
    """The calibrated probability less what is missing: ``major`` gaps could overturn the cause, ``minor`` ones widen the
    bound. The losses are judgement."""
    value = load_calibration().probability(cause, margin)
    value -= major * thresholds["confidence_loss_major"] + minor * thresholds["confidence_loss_minor"]
    return round(max(value, thresholds["confidence_floor"]), 4)
