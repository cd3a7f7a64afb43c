"""Two sessions, side by side, with the noise taken seriously."""

from __future__ import annotations

from typing import Literal

import msgspec

from kb.domain.provenance import Origin
from kb.domain.text import Text

Verdict = Literal["improved", "regressed", "no_change", "inconclusive", "not_comparable"]


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """One operator type, part or cause: time per step before and after, ns."""

    name: str
    before_ns: int
    after_ns: int
    before_count: int = 0
    after_count: int = 0

    @property
    def saved_ns(self) -> int:
        """Positive when the second session spends less."""
        return self.before_ns - self.after_ns


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """``gain_fraction`` = 1 - after / before of the representative step; ``interval`` holds it at
    ``interval_level``; ``noise_fraction`` is the band inside which the verdict is ``no_change``;
    ``n`` counts steps on each side. ``reasons`` say why a verdict was withheld or weakened.
    ``quality`` is "unchecked" until somebody compares the outputs."""

    before: str
    after: str
    verdict: Verdict
    before_step_ns: int
    after_step_ns: int
    gain_fraction: float
    interval: tuple[float, float]
    interval_level: float
    noise_fraction: float
    n: tuple[int, int]
    origins: tuple[Origin, Origin]
    parts: tuple[Delta, ...] = ()
    operators: tuple[Delta, ...] = ()
    resolved_causes: tuple[str, ...] = ()
    new_causes: tuple[str, ...] = ()
    reasons: tuple[Text, ...] = ()
    quality: Literal["unchecked", "kept", "lost"] = "unchecked"
    captures: tuple[int, int] = (1, 1)
    """Captures on each side; one a side cannot show the spread between captures."""
    causes: tuple[Delta, ...] = ()
    """Exposed time of each cause either side has, ns; counts are numbers of findings."""
    controls: tuple[Delta, ...] = ()
    """Operator types with equal counts on both sides: what the change did not touch should not have moved."""
    control_drift: float | None = None
    """Time of the controls after over before, minus 1; None without any."""
    p99_ns: tuple[int, int] | None = None
    """99th percentile of the step, where both sides have enough steps."""
    scaling_efficiency: float | None = None
    """Where the world sizes differ: time x ranks before over after, for the same total work."""
