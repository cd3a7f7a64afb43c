"""From findings and past cases to ranked strategies. Pure: it never sees a simulator or a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kb.domain.catalogue import Catalogue, Strategy
from kb.domain.diagnosis import Diagnosis
from kb.domain.finding import Finding
from kb.domain.provenance import rank_of
from kb.domain.recommendation import Constraints, Excluded, RankedStrategy, Recommendation
from kb.domain.soc import SocFamily
from kb.domain.text import Text
from kb.recommend.bounds import Bounds, addressed, bounds_of, most_saved, together, unexplained
from kb.recommend.expectation import Limit, expectation, unprompted
from kb.recommend.filters import exclusion
from kb.recommend.learnt import NOTHING, Learnt
from kb.recommend.support import PastCase, supports
from kb.recommend.weights import Weights

_UNPROMPTED: Final = Text(
    zh="没有发现；下列策略只因相似运行中有收益而列出", en="no finding: what follows is listed only because it gained in similar runs"
)


def recommend(diagnosis: Diagnosis, past: tuple[PastCase, ...], catalogue: Catalogue, constraints: Constraints, weights: Weights, *,
              family: SocFamily, phase: str | None, model_type: str | None = None,
              learnt: Learnt = NOTHING) -> Recommendation:  # fmt: skip
    """Strategies for every finding, best first.

    ``past`` is what search found for this diagnosis, ``family`` the session's SoC family and ``phase`` and ``model_type`` its model's.
    ``learnt`` is what grown runs say about this session; strategies that gained in similar runs are then offered although no finding asks
    for them, bounded by what no finding explains. No gain exceeds the bounds of the findings it answers.
    ``feasible`` is False when the latency limit stays out of reach even if every gain came true, or when every
    strategy was excluded.
    """
    ranked, excluded = _candidates(diagnosis, past, catalogue, constraints, weights, family, phase, model_type, learnt)
    best = _best_per_strategy(ranked)
    # A stable sort: equal expectations keep the catalogue's order, most direct answer first.
    # Of gains that one bound cuts alike, the one that was learnt to be larger comes first.
    by_gain = sorted(best, key=lambda item: (-_worth(item, constraints, weights), -_uncut(item, learnt)))
    ordered = _tiers_first(by_gain, weights.equal_fit)
    closest = _shortfall(diagnosis, ordered, constraints, catalogue)
    doubts = _expected_shortfall(diagnosis, ordered, constraints, catalogue, closest)
    notes = (*_silence(diagnosis, ordered), *_basis(ordered, learnt), *doubts, *_origin(diagnosis))
    blocked = bool(excluded) and not ordered
    return Recommendation(
        strategies=tuple(ordered),
        excluded=tuple({item.id: item for item in excluded}.values()),
        feasible=closest is None and not blocked,
        closest=closest or (Text(zh="约束排除了所有策略", en="the constraints exclude every strategy") if blocked else Text()),
        notes=notes,
    )


def _worth(item: RankedStrategy, constraints: Constraints, weights: Weights) -> float:
    """What an expectation is worth for the target, by its tier. More samples in a step make no step shorter."""
    if constraints.target == "latency" and item.per == "sample":
        return 0.0
    return item.gain_fraction * weights.tier_weight[item.provenance]


def _uncut(item: RankedStrategy, learnt: Learnt) -> float:
    estimate = learnt.estimates.get(item.id)
    return estimate.gain if estimate is not None else item.gain_fraction


def _candidates(diagnosis: Diagnosis, past: tuple[PastCase, ...], catalogue: Catalogue, constraints: Constraints, weights: Weights,
                family: SocFamily, phase: str | None, model_type: str | None,
                learnt: Learnt) -> tuple[list[RankedStrategy], list[Excluded]]:  # fmt: skip
    bounds = bounds_of(diagnosis)
    ranked: list[RankedStrategy] = []
    excluded: list[Excluded] = []

    def allowed(strategy: Strategy) -> bool:
        removed = exclusion(strategy, constraints, family, phase, model_type)
        if removed is None and strategy.id in learnt.unfit:
            removed = Excluded(id=strategy.id, reason=learnt.unfit[strategy.id])
        if removed is not None:
            excluded.append(removed)
        return removed is None

    for finding in diagnosis.all_findings():
        for identifier in _answers(finding, past):
            strategy = catalogue.strategy(identifier)
            if allowed(strategy):
                support = supports(finding, strategy.id, past, family, weights, model_type)
                limit = _limit(strategy, diagnosis, bounds, finding)
                estimate = learnt.estimates.get(strategy.id)
                ranked.append(expectation(finding, strategy, support, _step_ns(finding), weights, estimate, limit))
    answered = {item.id for item in ranked} | {item.id for item in excluded}
    for identifier, estimate in learnt.estimates.items():
        known = catalogue.strategies.get(identifier)
        promising = estimate.gain > learnt.least_gain and estimate.probability >= weights.unprompted_odds
        if known is not None and identifier not in answered and promising and allowed(known):
            ranked.append(unprompted(known, _longest_step(diagnosis), weights, estimate, _limit(known, diagnosis, bounds)))
    return ranked, excluded


def _limit(strategy: Strategy, diagnosis: Diagnosis, bounds: Bounds, finding: Finding | None = None) -> Limit:
    """The bounds of all findings that the strategy answers, the one at hand among them; what none explains where it answers none."""
    own = (finding.cause,) if finding is not None else ()
    causes = tuple(dict.fromkeys((*own, *addressed(strategy, diagnosis))))
    return Limit(bound=together(causes, bounds), causes=causes) if causes else Limit(bound=unexplained(bounds))


def _basis(ordered: Sequence[RankedStrategy], learnt: Learnt) -> tuple[Text, ...]:
    """What the gains rest on, where grown runs were asked."""
    return (learnt.note,) if ordered and learnt.note.en else ()


def _answers(finding: Finding, past: tuple[PastCase, ...]) -> tuple[str, ...]:
    """The catalogue's strategies of the cause and those that past cases tried against it."""
    tried = [outcome.strategy for item in past for case in item.record.cases if case.cause == finding.cause for outcome in case.outcomes]
    return tuple(dict.fromkeys([*finding.strategies, *tried]))


def _step_ns(finding: Finding) -> int:
    return round(finding.exposed_ns / finding.share) if finding.share else 0


def _best_per_strategy(ranked: Sequence[RankedStrategy]) -> list[RankedStrategy]:
    """One row a strategy: ranks see the same change once, so its gains are not added up."""
    best: dict[str, RankedStrategy] = {}
    for item in ranked:
        if item.id not in best or item.gain_fraction > best[item.id].gain_fraction:
            best[item.id] = item
    return list(best.values())


def _tiers_first(ordered: list[RankedStrategy], equal_fit: float) -> list[RankedStrategy]:
    """Among equally fitting supports a weaker tier never stands above a stronger one."""
    placed: list[RankedStrategy] = []
    for item in ordered:
        at = len(placed)
        while at and _outranks(item, placed[at - 1], equal_fit):
            at -= 1
        placed.insert(at, item)
    return placed


def _outranks(item: RankedStrategy, above: RankedStrategy, equal_fit: float) -> bool:
    if not item.cases or not above.cases:
        return bool(item.cases) and not above.cases
    stronger = rank_of(item.provenance) > rank_of(above.provenance)
    return stronger and item.gain_fraction > 0 and abs(_fit(item) - _fit(above)) <= equal_fit


def _fit(item: RankedStrategy) -> float:
    return max(case.similarity for case in item.cases)


def _shortfall(diagnosis: Diagnosis, ordered: Sequence[RankedStrategy], constraints: Constraints, catalogue: Catalogue) -> Text | None:
    """How far the latency limit stays away even if every strategy reached the upper end of its interval; None when it can be met."""
    limit = constraints.max_latency_ns
    remaining = _remaining(diagnosis, [(item, item.interval[1]) for item in ordered], catalogue)
    if limit is None or remaining <= limit:
        return None
    figures = f"{remaining / 1e6:.1f} ms", f"{limit / 1e6:.1f} ms"
    return Text(zh=f"即使所有策略都达到上限，单步仍约 {figures[0]}，高于限制 {figures[1]}",
                en=f"even with every strategy at its bound a step takes about {figures[0]}, above the limit of {figures[1]}")  # fmt: skip


def _longest_step(diagnosis: Diagnosis) -> int:
    return max((session.accounting.step_ns for session in diagnosis.sessions), default=0)


def _remaining(diagnosis: Diagnosis, gains: Sequence[tuple[RankedStrategy, float]], catalogue: Catalogue) -> float:
    """The step after all gains of a step, ns; what puts more samples into it makes it no shorter."""
    own = [(item, gain) for item, gain in gains if item.per == "step"]
    return _longest_step(diagnosis) * (1.0 - most_saved(own, bounds_of(diagnosis), catalogue))


def _expected_shortfall(
    diagnosis: Diagnosis, ordered: Sequence[RankedStrategy], constraints: Constraints, catalogue: Catalogue, closest: Text | None
) -> tuple[Text, ...]:
    """A limit that only the upper ends of the intervals meet is said to be uncertain."""
    limit = constraints.max_latency_ns
    expected = _remaining(diagnosis, [(item, item.gain_fraction) for item in ordered], catalogue)
    if limit is None or closest is not None or expected <= limit:
        return ()
    figures = f"{expected / 1e6:.1f} ms", f"{limit / 1e6:.1f} ms"
    return (
        Text(
            zh=f"按预期收益合计，单步约 {figures[0]}，仍高于限制 {figures[1]}；只有达到区间上限才能满足",
            en=f"the expected gains together give about {figures[0]} a step, above the limit of {figures[1]}; only the upper ends meet it",
        ),
    )


def _silence(diagnosis: Diagnosis, ordered: Sequence[RankedStrategy]) -> tuple[Text, ...]:
    """No finding is an all-clear only when everything was judged."""
    if diagnosis.all_findings():
        return ()
    if ordered:
        return (_UNPROMPTED,)
    skipped = {note.cause for session in diagnosis.sessions for note in session.not_judged} | {
        note.cause for note in diagnosis.cluster.not_judged
    }
    if not skipped:
        return (Text(zh="没有值得处理的问题", en="nothing worth fixing was found"),)
    named = ", ".join(sorted(skipped))
    return (
        Text(
            zh=f"没有发现，但有 {len(skipped)} 项未能判断：{named}；kb health 说明如何补采",
            en=f"no finding, but {len(skipped)} checks could not be judged: {named}; kb health says what to capture",
        ),
    )


def _origin(diagnosis: Diagnosis) -> tuple[Text, ...]:
    if all(session.origin == "measured" for session in diagnosis.sessions):
        return ()
    return (Text(zh="本次采集来自仿真后端，数字不是实测", en="this session is simulated: its figures are not measured"),)
