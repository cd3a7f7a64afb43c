"""Ranked strategies under constraints."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from kb.domain.catalogue import CauseId, Effort, StrategyId
from kb.domain.provenance import Provenance
from kb.domain.soc import SocFamily
from kb.domain.text import Text

Target = Literal["latency", "throughput", "memory", "energy"]
TARGETS: Final[tuple[Target, ...]] = ("latency", "throughput", "memory", "energy")
Per = Literal["step", "sample"]
Quality = Literal["latency", "throughput", "memory", "energy", "precision"]


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


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What a strategy is expected to do to one quality of the run, relative to before it.

    ``expected`` and ``interval`` are fractions saved (latency, memory, energy of a sample), gained (throughput) or lost
    (precision: relative error added); negative means the other way. The interval holds the true value at ``level``; its upper end is
    None where no bound is known. ``basis`` says where the figures come from, ``provenance`` is None for judgement.
    """

    quality: Quality
    expected: float
    interval: tuple[float, float | None]
    level: float
    basis: Text
    provenance: Provenance | None = None


class RankedStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """``gain_fraction`` of the step (0..1), positive saves, and the same in ns; ``interval`` holds it at
    ``interval_level``; ``provenance`` is the weakest tier among the figures used.

    ``per`` "sample": the strategy puts more samples into a step, so gain, ns and interval are of the time of one sample (in units of
    the step before); the effect on latency says what becomes of the step. ``answers`` are the causes found in this session that the
    strategy is for; empty where no finding asks for it.
    """

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
    effects: tuple[Effect, ...] = ()
    per: Per = "step"
    answers: tuple[CauseId, ...] = ()

    def effect(self, quality: Quality) -> Effect | None:
        """The effect on one quality; None where nothing is known."""
        return next((effect for effect in self.effects if effect.quality == quality), None)


class Excluded(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy a hard constraint removed."""

    id: StrategyId
    reason: Text


class Percentile(msgspec.Struct, frozen=True, kw_only=True):
    """Where this session stands among similar past cases: ``below`` (0..1) is the share of the ``n`` cases whose ``metric`` is smaller than
    ``value`` (ties count half). ``group`` names the cases compared with; ``simulated`` of them come from the simulator."""

    metric: str
    value: float
    unit: str
    below: float
    n: int
    group: Text
    simulated: int = 0


class Recommendation(msgspec.Struct, frozen=True, kw_only=True):
    """Best first. ``feasible`` is False when the constraints cannot be met; ``closest`` then says by how much."""

    strategies: tuple[RankedStrategy, ...]
    excluded: tuple[Excluded, ...]
    feasible: bool
    closest: Text = Text()
    notes: tuple[Text, ...] = ()
    front: tuple[StrategyId, ...] = ()
    """Strategies that no other one beats in everything asked for; more than one where the targets conflict."""
    percentiles: tuple[Percentile, ...] = ()
