"""The Tuning Impact Score from benefits, and benefits from the outcomes of a record. The formula stands in ``kb.domain.impact``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from kb.domain.case import Outcome
from kb.domain.catalogue import EFFORTS, Catalogue, Effort
from kb.domain.impact import IMPACT_PARTS, Impact, ImpactPart
from kb.domain.provenance import Provenance, weakest
from kb.domain.record import Record
from kb.recommend.support import reported_gain, weakest_tier


class ImpactWeights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See ``impact.json``: every number with its reason."""

    weights: Mapping[ImpactPart, float]
    ease: Mapping[Effort, float]
    floor: float
    parts: Mapping[ImpactPart, tuple[str, ...]]
    reasons: Mapping[str, str]


def load_impact_weights() -> ImpactWeights:
    """The shipped numbers."""
    return msgspec.json.decode(Path(__file__).with_name("impact.json").read_bytes(), type=ImpactWeights)


def impact(benefits: Mapping[ImpactPart, float], effort: Effort, provenance: Provenance, weights: ImpactWeights, *,
           from_sessions: bool = False) -> Impact | None:  # fmt: skip
    """The score of known ``benefits``; None without latency and throughput, as nothing else says what a change was worth to the run."""
    known = {part: max(-1.0, min(1.0, benefits[part])) for part in IMPACT_PARTS if part in benefits}
    if not ({"latency", "throughput"} & known.keys()):
        return None
    total = sum(weights.weights[part] for part in known)
    used = {part: weights.weights[part] / total for part in known}
    mean = sum(used[part] * value for part, value in known.items())
    ease = weights.ease[effort]
    return Impact(
        score=100.0 * max(0.0, mean) * (weights.floor + (1.0 - weights.floor) * ease),
        benefits=known,
        weights=used,
        ease=ease,
        provenance=provenance,
        from_sessions=from_sessions,
    )


def reported_impact(record: Record, catalogue: Catalogue, weights: ImpactWeights) -> Impact | None:
    """The score of the figures that the record's outcomes report of the whole run; None where there are none.

    Of several figures of one part the most cautious counts. Outcomes that a source only suggests do not count.
    """
    seen = [(part, gain, outcome) for case in record.cases for outcome in case.outcomes
            if (part := _part(outcome, weights)) is not None and (gain := reported_gain(outcome)) is not None]  # fmt: skip
    if not seen:
        return None
    benefits = {part: min(gain for own, gain, _ in seen if own == part) for part, _, _ in seen}
    tier = weakest(*(weakest_tier(outcome, record) for _, _, outcome in seen))
    return impact(benefits, hardest(record, catalogue), tier, weights)


def hardest(record: Record, catalogue: Catalogue) -> Effort:
    """The largest kind of change among the record's strategies; of unknown ones, and without any, a change of model code."""
    tried = (catalogue.strategies.get(outcome.strategy) for case in record.cases for outcome in case.outcomes)
    efforts: list[Effort] = [entry.effort if entry is not None else "model_code" for entry in tried]
    return max(efforts, key=EFFORTS.index, default="model_code")


def _part(outcome: Outcome, weights: ImpactWeights) -> ImpactPart | None:
    if outcome.share is not None:
        return None
    return next((part for part, metrics in weights.parts.items() if outcome.metric in metrics), None)
