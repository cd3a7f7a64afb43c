"""Ranked strategies under constraints."""

from __future__ import annotations

from typing import Literal

import msgspec

from kb.domain.catalogue import CauseId, Effort, StrategyId
from kb.domain.provenance import Provenance
from kb.domain.soc import SocFamily
from kb.domain.text import Text

Target = Literal["latency", "throughput", "memory", "energy"]


class Constraints(msgspec.Struct, frozen=True, kw_only=True):
    """What the user can live with. None or empty = no constraint. Limits are in base units (ns, B, 1/s)."""

    target: Target = "latency"
    max_latency_ns: float | None = None
    max_memory_b: float | None = None
    min_throughput: float | None = None
    max_precision_loss: float | None = None
    soc_family: SocFamily | None = None
    allow_model_change: bool = True
    allow_retrain: bool = True
    allow: tuple[StrategyId, ...] = ()
    forbid: tuple[StrategyId, ...] = ()
    max_effort: Effort = "kernel"


class CaseSupport(msgspec.Struct, frozen=True, kw_only=True):
    """A case behind an expectation."""

    ref: str
    similarity: float
    gain_fraction: float | None
    provenance: Provenance


class RankedStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """``gain_fraction`` of the step (0..1) and the same in ns; ``interval`` holds it at
    ``interval_level``; ``provenance`` is the weakest tier among the figures used."""

    id: StrategyId
    cause: CauseId
    gain_fraction: float
    gain_ns: int
    interval: tuple[float, float]
    interval_level: float
    confidence: float
    cases: tuple[CaseSupport, ...]
    provenance: Provenance
    effort: Effort
    simulatable: bool
    rationale: Text = Text()


class Excluded(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy a hard constraint removed."""

    id: StrategyId
    reason: Text


class Recommendation(msgspec.Struct, frozen=True, kw_only=True):
    """Best first. ``feasible`` is False when the constraints cannot be met; ``closest`` then says by how much."""

    strategies: tuple[RankedStrategy, ...]
    excluded: tuple[Excluded, ...]
    feasible: bool
    closest: Text = Text()
    notes: tuple[Text, ...] = ()
