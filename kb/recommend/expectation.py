"""Expected gain of one strategy against one finding: outcomes of past cases and of grown runs, an interval, and a confidence."""

from __future__ import annotations

from typing import Final

from kb.domain.catalogue import Strategy
from kb.domain.finding import Finding
from kb.domain.provenance import Provenance, rank_of, weakest
from kb.domain.recommendation import CaseSupport, RankedStrategy
from kb.domain.text import Text
from kb.recommend.experience import Estimate
from kb.recommend.support import Support, bound_fraction
from kb.recommend.weights import Weights

GROWN: Final[Provenance] = "simulated"
"""Tier of what grown runs say."""


def expectation(finding: Finding, strategy: Strategy, support: tuple[Support, ...], step_ns: int, weights: Weights,
                estimate: Estimate | None = None) -> RankedStrategy:  # fmt: skip
    """The strategy with its expected gain. ``step_ns`` is the length of the step the finding belongs to, ns.

    ``estimate`` is what grown runs say; then only cases of a tier as strong count into the figures, claims are listed and no more.
    Without it, cases are scaled to the finding and never exceed its bound; without cases, a prior part of the bound is expected.
    """
    if estimate is not None:
        return _learnt(strategy, finding.cause, support, step_ns, weights, estimate)
    usable = [item for item in support if item.step_gain is not None and item.weight > 0]
    bound = bound_fraction(finding)
    gain, interval = _from_cases(usable, bound) if usable else (weights.prior_share_of_bound * bound, (0.0, bound))
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
        rationale=_rationale(usable, bound),
    )


def unprompted(strategy: Strategy, step_ns: int, weights: Weights, estimate: Estimate) -> RankedStrategy:
    """A strategy that no finding asks for, on the word of grown runs alone. Its cause is the first it is meant for."""
    return _learnt(strategy, strategy.addresses[0], (), step_ns, weights, estimate)


def _learnt(
    strategy: Strategy, cause: str, support: tuple[Support, ...], step_ns: int, weights: Weights, estimate: Estimate
) -> RankedStrategy:
    strong = [
        item for item in support if item.step_gain is not None and item.weight > 0 and rank_of(item.case.provenance) >= rank_of(GROWN)
    ]
    gain, (low, high), confidence = _combined(strong, estimate, weights)
    gain = max(0.0, gain)
    grown = tuple(
        CaseSupport(ref=run, similarity=round(alike, 4), gain_fraction=own, provenance=GROWN) for run, alike, own in estimate.similar
    )
    return RankedStrategy(
        id=strategy.id,
        cause=cause,
        gain_fraction=gain,
        gain_ns=round(gain * step_ns),
        interval=(min(low, gain), max(high, gain)),
        interval_level=weights.interval_level,
        confidence=confidence,
        cases=(*(item.case for item in support), *grown),
        provenance=weakest(GROWN, *(item.case.provenance for item in strong)),
        effort=strategy.effort,
        simulatable=strategy.simulatable,
        rationale=_learnt_rationale(estimate, len(strong), adds_work=strategy.id in weights.adds_work),
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


def _from_cases(usable: list[Support], bound: float) -> tuple[float, tuple[float, float]]:
    """Weighted mean of the rescaled gains; the interval spans the outcomes and always reaches down to no gain
    while fewer than three cases speak, since one success says little about the next model."""
    total = sum(item.weight for item in usable)
    gains = [(item.step_gain or 0.0, item.weight) for item in usable]
    mean = sum(gain * weight for gain, weight in gains) / total
    low = min(gain for gain, _ in gains)
    high = max(gain for gain, _ in gains)
    few = len(usable) < _FEW
    return max(0.0, min(mean, bound)), (min(0.0, low) if few else low, bound if few else min(high, bound))


_FEW = 3


def _trust(support: tuple[Support, ...], weights: Weights) -> float:
    """Share of successes, saturating with the weight of evidence (0..1)."""
    total = sum(item.weight for item in support)
    worked = sum(item.weight for item in support if item.worked)
    return (worked / total) * total / (total + weights.case_saturation) + weights.prior_confidence * weights.case_saturation / (
        total + weights.case_saturation
    )


def _rationale(usable: list[Support], bound: float) -> Text:
    ceiling = f"{100 * bound:.1f} %"
    if not usable:
        return Text(
            zh=f"案例库中没有可用的收益记录；只知道上限为单步的 {ceiling}，估计值按先验取其一部分",
            en=f"no case with a usable gain; only the bound is known ({ceiling} of the step), the estimate is a prior part of it",
        )
    count = len(usable)
    return Text(
        zh=f"依据 {count} 个案例，按本次暴露占比换算，上限为单步的 {ceiling}",
        en=f"from {count} case{'s' * (count > 1)}, rescaled to the share exposed here; bound {ceiling} of the step",
    )


def _learnt_rationale(estimate: Estimate, strong: int, *, adds_work: bool) -> Text:
    count = max(1, round(estimate.outcomes))
    cases_zh = f"，并结合 {strong} 个同级或更强的案例" if strong else ""
    cases_en = f", with {strong} case{'s' * (strong > 1)} as strong or stronger" if strong else ""
    longer_zh = "；单步本身不会变短，只是每个样本用时更少" if adds_work else ""
    longer_en = "; the step itself gets no shorter, each sample takes less of it" if adds_work else ""
    return Text(
        zh=f"相似的仿真运行中约 {count} 个试验结果，按本次暴露占比换算{cases_zh}（每样本设备时间）{longer_zh}",
        en=f"from about {count} tried outcomes in similar simulated runs, adapted to what is exposed here{cases_en} "
        f"(device time a sample){longer_en}",
    )
