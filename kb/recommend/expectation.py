"""Expected gain of one strategy against one finding: weighted outcomes, an interval, and a confidence."""

from __future__ import annotations

from kb.domain.catalogue import Strategy
from kb.domain.finding import Finding
from kb.domain.provenance import weakest
from kb.domain.recommendation import RankedStrategy
from kb.domain.text import Text
from kb.recommend.support import Support, bound_fraction
from kb.recommend.weights import Weights


def expectation(finding: Finding, strategy: Strategy, support: tuple[Support, ...], step_ns: int, weights: Weights) -> RankedStrategy:
    """The strategy with its expected gain. ``step_ns`` is the length of the step the finding belongs to, ns."""
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
