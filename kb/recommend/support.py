"""Which past outcomes speak for a strategy against a finding, and how strongly."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from kb.domain.case import Case, Hit, Outcome, Result
from kb.domain.catalogue import StrategyId
from kb.domain.finding import Finding
from kb.domain.provenance import Provenance
from kb.domain.recommendation import CaseSupport
from kb.domain.record import Record
from kb.domain.soc import SocFamily
from kb.recommend.weights import Weights


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody tried a version. ``gain_fraction`` of the step as they typed it, None where they did not say."""

    result: Result
    gain_fraction: float | None = None


class PastCase(msgspec.Struct, frozen=True, kw_only=True):
    """A record that search found, with its place in the answer and what users of it reported."""

    hit: Hit
    record: Record
    uses: tuple[Use, ...] = ()


class Support(msgspec.Struct, frozen=True, kw_only=True):
    """One usable outcome. ``step_gain`` is its gain rescaled to this finding's step (signed fraction);
    ``weight`` (0..1) is similarity x tier x SoC certainty."""

    case: CaseSupport
    step_gain: float | None
    weight: float
    worked: bool


def supports(
    finding: Finding, strategy: StrategyId, past: tuple[PastCase, ...], family: SocFamily, weights: Weights, model_type: str | None = None
) -> tuple[Support, ...]:
    """Outcomes of ``strategy`` against the finding's cause, closest first. Cases of another known SoC family are left out, those of
    another type of model than ``model_type`` count less. A record speaks once, however often it tells of the strategy."""
    found: list[Support] = []
    reported: dict[str, list[Support]] = {}
    for item in past:
        if item.record.kind == "card":
            continue  # a card repeats its recipe
        for case in item.record.cases:
            if case.cause != finding.cause or not _same_family(case, family):
                continue
            own = [outcome for outcome in case.outcomes if outcome.strategy == strategy]
            alike = _alike(case, model_type, weights)
            found += [_discounted(_support(finding, case, outcome, item, family, weights), alike) for outcome in own]
            if any(outcome.reported_to_work for outcome in own):
                uses = [_discounted(_used(finding, case, use, item, family, weights), alike) for use in item.uses]
                reported.setdefault(item.record.slug, uses)
    used = [use for uses in reported.values() for use in uses]
    return tuple(sorted([*_once_a_record(found), *used], key=lambda support: -support.weight))


def _alike(case: Case, model_type: str | None, weights: Weights) -> float:
    own = case.context.model_type
    return weights.other_model_discount if model_type and own and own != model_type else 1.0


def _discounted(support: Support, factor: float) -> Support:
    return replace(support, weight=support.weight * factor)


def _once_a_record(found: list[Support]) -> Iterator[Support]:
    """One support a record: its mean gain, with the weight of its closest outcome; it worked where all of them did."""
    own: dict[str, list[Support]] = {}
    for support in found:
        own.setdefault(support.case.ref, []).append(support)
    for parts in own.values():
        gains = [part.step_gain for part in parts if part.step_gain is not None]
        closest = max(parts, key=lambda part: (part.step_gain is not None, part.weight))
        mean = sum(gains) / len(gains) if gains else None
        yield replace(closest, step_gain=mean, worked=all(part.worked for part in parts if part.step_gain is not None or not gains))


def _same_family(case: Case, family: SocFamily) -> bool:
    return "unknown" in (case.context.soc_family, family) or case.context.soc_family == family


def _support(finding: Finding, case: Case, outcome: Outcome, item: PastCase, family: SocFamily, weights: Weights) -> Support:
    similarity = max(0.0, item.hit.similarity or 0.0)
    certainty = weights.family_unknown_discount if "unknown" in (case.context.soc_family, family) else 1.0
    tier = weakest_tier(outcome, item.record)
    gain = reported_gain(outcome)
    return Support(
        case=CaseSupport(ref=f"{item.hit.slug}@{item.hit.version}", similarity=similarity, gain_fraction=gain, provenance=tier),
        step_gain=_rescaled(gain, outcome, finding),
        weight=similarity * certainty * weights.tier_weight[tier],
        worked=outcome.reported_to_work and outcome.result == "improved",
    )


def _used(finding: Finding, case: Case, use: Use, item: PastCase, family: SocFamily, weights: Weights) -> Support:
    """A use as a support: a claim, since its gain was typed."""
    similarity = max(0.0, item.hit.similarity or 0.0)
    certainty = weights.family_unknown_discount if "unknown" in (case.context.soc_family, family) else 1.0
    gain = use.gain_fraction if use.result != "unknown" else None
    return Support(
        case=CaseSupport(ref=f"{item.hit.slug}@{item.hit.version}", similarity=similarity, gain_fraction=gain, provenance="claimed"),
        step_gain=None if gain is None else min(gain, bound_fraction(finding)),
        weight=similarity * certainty * weights.tier_weight["claimed"] * weights.use_worth,
        worked=use.result == "improved",
    )


def reported_gain(outcome: Outcome) -> float | None:
    """The gain of an outcome that was reported; None where a source only suggests the strategy or compares two settings."""
    return outcome.gain_fraction if outcome.reported_to_work and outcome.result != "unknown" else None


def weakest_tier(outcome: Outcome, record: Record) -> Provenance:
    """An outcome is never stronger than the record that carries it."""
    order: tuple[Provenance, ...] = ("claimed", "simulated", "measured", "reproduced")
    return min(outcome.provenance, record.provenance, key=order.index)


def _rescaled(gain: float | None, outcome: Outcome, finding: Finding) -> float | None:
    """Amdahl: a gain of a part counts with this step's share of the part; a gain of a whole step is capped by the bound."""
    if gain is None:
        return None
    bound = bound_fraction(finding)
    scaled = gain * finding.share if outcome.share is not None else gain
    return min(scaled, bound)


def bound_fraction(finding: Finding) -> float:
    """The finding's gain bound as a fraction of its step."""
    return finding.share * finding.gain_bound_ns / finding.exposed_ns if finding.exposed_ns else 0.0
