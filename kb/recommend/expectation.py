"""Expected gain of one strategy against one finding: outcomes of past cases and of grown runs, an interval, and a confidence."""

from __future__ import annotations

from typing import Final

import msgspec

from kb.domain.catalogue import CauseId, Strategy
from kb.domain.finding import Finding
from kb.domain.provenance import Provenance, rank_of, weakest
from kb.domain.recommendation import CaseSupport, RankedStrategy
from kb.domain.text import Text
from kb.recommend.experience import Estimate
from kb.recommend.support import Support, bound_fraction
from kb.recommend.weights import Weights

GROWN: Final[Provenance] = "simulated"
"""Tier of what grown runs say."""


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """What a strategy can save of the step at most (0..1), and the causes found whose bounds add up to it; without any, it is the part
    of the step that no finding explains."""

    bound: float
    causes: tuple[CauseId, ...] = ()


def expectation(finding: Finding, strategy: Strategy, support: tuple[Support, ...], step_ns: int, weights: Weights,
                estimate: Estimate | None = None, limit: Limit | None = None) -> RankedStrategy:  # fmt: skip
    """The strategy with its expected gain. ``step_ns`` is the length of the step the finding belongs to, ns.

    ``estimate`` is what grown runs say; then only cases of a tier as strong count into the figures, claims are listed and no more.
    It never exceeds ``limit``, by default the finding's own bound. Without it, cases are scaled to the finding, never exceed its bound,
    and pull the expectation from the prior part of the bound as far as their number and weight carry.
    """
    bound = bound_fraction(finding)
    limit = limit or Limit(bound=bound, causes=(finding.cause,))
    if estimate is not None:
        return _learnt(strategy, finding.cause, support, step_ns, weights, estimate, limit)
    usable = [item for item in support if item.step_gain is not None and item.weight > 0]
    prior = weights.prior_share_of_bound * bound
    gain, interval = _from_cases(usable, bound, prior, weights) if usable else (prior, (0.0, bound))
    return RankedStrategy(
        id=strategy.id,
        cause=finding.cause,
        gain_fraction=gain,
        gain_ns=round(gain * step_ns),
        interval=interval,
        interval_level=weights.interval_level,
        confidence=finding.confidence * (_trust(support, weights) if usable else weights.prior_confidence),
        cases=tuple(item.case for item in support),
        provenance=weakest(*(item.case.provenance for item in usable)),
        effort=strategy.effort,
        simulatable=strategy.simulatable,
        rationale=_rationale(usable, bound, per_sample=strategy.id in weights.adds_work),
        per="sample" if strategy.id in weights.adds_work else "step",
        answers=(finding.cause,),
    )


def unprompted(strategy: Strategy, step_ns: int, weights: Weights, estimate: Estimate, limit: Limit) -> RankedStrategy:
    """A strategy that no finding lists, on the word of grown runs alone. Its cause is the first found that it is for, else the first it
    is meant for."""
    cause = (*limit.causes, *strategy.addresses)[0]
    return _learnt(strategy, cause, (), step_ns, weights, estimate, limit)


def _learnt(
    strategy: Strategy, cause: str, support: tuple[Support, ...], step_ns: int, weights: Weights, estimate: Estimate, limit: Limit
) -> RankedStrategy:
    strong = [
        item for item in support if item.step_gain is not None and item.weight > 0 and rank_of(item.case.provenance) >= rank_of(GROWN)
    ]
    gain, (low, high), confidence = _combined(strong, estimate, weights)
    cut = max(0.0, gain - limit.bound)
    low -= cut  # what the bound takes from the expectation it takes from the doubt below as well, or none would be left
    gain = min(max(0.0, gain), limit.bound)
    grown = tuple(
        CaseSupport(ref=run, similarity=round(alike, 4), gain_fraction=own, provenance=GROWN) for run, alike, own in estimate.similar
    )
    return RankedStrategy(
        id=strategy.id,
        cause=cause,
        gain_fraction=gain,
        gain_ns=round(gain * step_ns),
        interval=(min(low, gain), max(min(high, limit.bound), gain)),
        interval_level=weights.interval_level,
        confidence=confidence,
        cases=(*(item.case for item in support), *grown),
        provenance=weakest(GROWN, *(item.case.provenance for item in strong)),
        effort=strategy.effort,
        simulatable=strategy.simulatable,
        rationale=_learnt_rationale(estimate, len(strong), limit, adds_work=strategy.id in weights.adds_work),
        per="sample" if strategy.id in weights.adds_work else "step",
        answers=limit.causes,
    )


def _combined(strong: list[Support], estimate: Estimate, weights: Weights) -> tuple[float, tuple[float, float], float]:
    """(gain, interval, confidence): cases as strong as the estimate pull it, by their weight."""
    total = sum(item.weight for item in strong) * weights.case_worth
    whole = total + weights.estimate_worth
    if not strong:
        return estimate.gain, estimate.interval, estimate.probability
    mean = sum((item.step_gain or 0.0) * item.weight for item in strong) / sum(item.weight for item in strong)
    gain = (estimate.gain * weights.estimate_worth + mean * total) / whole
    worked = sum(item.weight for item in strong if item.worked) / sum(item.weight for item in strong)
    shift = gain - estimate.gain
    spread = (min(estimate.interval[0] + shift, mean), max(estimate.interval[1] + shift, mean))
    return gain, spread, (estimate.probability * weights.estimate_worth + worked * total) / whole


def _from_cases(usable: list[Support], bound: float, prior: float, weights: Weights) -> tuple[float, tuple[float, float]]:
    """Weighted mean of the rescaled gains, drawn towards ``prior`` as long as little evidence speaks; the interval spans the outcomes,
    and from no gain to the bound while fewer than three records speak, since few successes say little about the next model."""
    total = sum(item.weight for item in usable)
    gains = [(item.step_gain or 0.0, item.weight) for item in usable]
    mean = sum(gain * weight for gain, weight in gains) / total
    drawn = (total * mean + weights.prior_weight * prior) / (total + weights.prior_weight)
    gain = max(0.0, min(drawn, bound))
    low = min(own for own, _ in gains)
    high = max(own for own, _ in gains)
    few = _records(usable) < _FEW
    return gain, (min(0.0 if few else min(gain, prior), low), bound if few else max(gain, min(high, bound)))


def _records(usable: list[Support]) -> int:
    return len({item.case.ref for item in usable})


_FEW = 3


def _trust(support: tuple[Support, ...], weights: Weights) -> float:
    """Share of successes, saturating with the weight of evidence (0..1)."""
    total = sum(item.weight for item in support)
    worked = sum(item.weight for item in support if item.worked)
    return (worked / total) * total / (total + weights.case_saturation) + weights.prior_confidence * weights.case_saturation / (
        total + weights.case_saturation
    )


def _rationale(usable: list[Support], bound: float, *, per_sample: bool) -> Text:
    told = _of_cases(usable, f"{100 * bound:.1f} %")
    return Text(zh=f"{told.zh}{_PER_SAMPLE.zh}", en=f"{told.en}{_PER_SAMPLE.en}") if per_sample else told


_PER_SAMPLE: Final = Text(
    zh="；按每个样本计：单步本身不会变短，只是每个样本用时更少",
    en="; per sample: the step itself gets no shorter, each sample takes less of it",
)


def _of_cases(usable: list[Support], ceiling: str) -> Text:
    if not usable:
        return Text(
            zh=f"案例库中没有可用的收益记录；只知道上限为单步的 {ceiling}，估计值按先验取其一部分",
            en=f"no case with a usable gain; only the bound is known ({ceiling} of the step), the estimate is a prior part of it",
        )
    count = _records(usable)
    return Text(
        zh=f"依据 {count} 个记录，按本次暴露占比换算，证据越少越接近先验；上限为单步的 {ceiling}",
        en=f"from {count} record{'s' * (count > 1)}, rescaled to the share exposed here and drawn to the prior part the thinner they are; "
        f"bound {ceiling} of the step",
    )


def _learnt_rationale(estimate: Estimate, strong: int, limit: Limit, *, adds_work: bool) -> Text:
    count = max(1, round(estimate.outcomes))
    cases_zh = f"，并结合 {strong} 个同级或更强的案例" if strong else ""
    cases_en = f", with {strong} case{'s' * (strong > 1)} as strong or stronger" if strong else ""
    longer = _PER_SAMPLE if adds_work else Text()
    ceiling = _ceiling(limit)
    return Text(
        zh=f"相似的仿真运行中约 {count} 个试验结果，按本次暴露占比换算{cases_zh}（每样本设备时间）{longer.zh}；{ceiling.zh}",
        en=f"from about {count} tried outcomes in similar simulated runs, adapted to what is exposed here{cases_en} "
        f"(device time a sample){longer.en}; {ceiling.en}",
    )


def _ceiling(limit: Limit) -> Text:
    share = f"{100 * limit.bound:.1f} %"
    if not limit.causes:
        return Text(
            zh=f"没有发现指向它；上限为各发现都未解释的部分：单步的 {share}",
            en=f"no finding asks for it; bound: what no finding explains, {share} of the step",
        )
    named = ", ".join(limit.causes)
    return Text(zh=f"上限为单步的 {share}（{named}）", en=f"bound {share} of the step ({named})")
