"""What a strategy did before, as the expectation before it is tried."""

from __future__ import annotations

import msgspec

from kb.domain.catalogue import StrategyId
from kb.domain.provenance import Provenance
from kb.domain.text import Text


class Potential(msgspec.Struct, frozen=True, kw_only=True):
    """``median`` saved fraction of what each case measured (negative: lost) over ``n`` outcomes with figures; ``interval`` holds the
    middle of them at ``level``, from the smallest to the largest for few. ``tiers`` counts outcomes by provenance, ``worked`` of
    ``reported`` outcomes helped, figures or not. ``provenance`` is the strongest tier, whose outcomes alone ``median`` and
    ``interval`` are of: tiers are never mixed. ``group`` says which cases; ``refs`` are the records, as slug@n.

    Without figures ``median`` and ``interval`` are None; ``interval`` also for one outcome, which says nothing about the spread.
    """

    strategy: StrategyId
    median: float | None
    interval: tuple[float, float] | None
    level: float
    n: int
    reported: int
    worked: int
    tiers: dict[Provenance, int]
    provenance: Provenance
    group: Text
    refs: tuple[str, ...] = ()
