"""The Tuning Impact Score: one figure for how much a published change was worth."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from kb.domain.provenance import Provenance

ImpactPart = Literal["latency", "throughput", "memory", "stability"]
IMPACT_PARTS: Final[tuple[ImpactPart, ...]] = ("latency", "throughput", "memory", "stability")


class Impact(msgspec.Struct, frozen=True, kw_only=True):
    """``score`` (0..100) = 100 x max(0, mean benefit) x (0.8 + 0.2 x ease).

    ``benefits`` (-1..1): time of a step saved (latency), work per time (throughput: 1 - before / after), device memory saved, spread of the
    step time removed (stability: 1 - after / before). The mean weighs the parts that are known; ``weights`` are those used,
    summing to 1. ``ease`` (0..1) is 1 for a flag and 0 for a new kernel. ``from_sessions``: computed from attached
    sessions, else from the figures of the outcomes. ``provenance`` is the weakest tier of what went in.
    """

    score: float
    benefits: dict[ImpactPart, float]
    weights: dict[ImpactPart, float]
    ease: float
    provenance: Provenance
    from_sessions: bool = False
