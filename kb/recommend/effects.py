"""What a ranked strategy does besides saving time: throughput, memory, energy, precision, each as an interval with its basis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from kb.domain.case import Outcome
from kb.domain.catalogue import Catalogue, Layer, PrecisionRisk, Strategy, StrategyId
from kb.domain.provenance import weakest
from kb.domain.quantity import dimension
from kb.domain.recommendation import Effect, RankedStrategy
from kb.domain.text import Text
from kb.recommend.support import PastCase, reported_gain

_WAITING: Final[frozenset[Layer]] = frozenset(
    ("input", "host", "storage", "communication", "parallel", "cluster", "pipeline", "serving", "compile")
)
"""Layers whose causes make the device wait: removing them saves idle power only."""
_NO_GAIN: Final = 0.999
_FEW: Final = 3


class EffectPriors(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See ``effects.json``: every number with its reason."""

    level: float
    prior_share: float
    idle_energy_share: tuple[float, float, float]
    precision_loss: Mapping[PrecisionRisk, tuple[float, float]]
    batches: Mapping[StrategyId, float]
    memory: Mapping[StrategyId, tuple[float, float]]
    reasons: Mapping[str, str]


def load_priors() -> EffectPriors:
    """The shipped numbers."""
    return msgspec.json.decode(Path(__file__).with_name("effects.json").read_bytes(), type=EffectPriors)


def with_effects(
    item: RankedStrategy, past: Sequence[PastCase], catalogue: Catalogue, priors: EffectPriors, *, found: bool = True
) -> RankedStrategy:
    """``item`` with all its effects; ``past`` are the similar cases, whose outcomes on memory are used where there are any.

    ``found``: whether the diagnosis holds the cause that the item answers; without, no memory is promised that no case reports.
    """
    cause = catalogue.causes.get(item.cause)
    waiting = cause is not None and cause.layer in _WAITING
    strategy = catalogue.strategy(item.id)
    return replace(
        item,
        effects=(
            _latency(item, priors), _throughput(item), _memory(item.id, past, priors, found=found), _energy(item, priors, waiting=waiting),
            _precision(strategy, priors),
        ),
    )  # fmt: skip


def _latency(item: RankedStrategy, priors: EffectPriors) -> Effect:
    """Of a step: as the gain, but for a change that puts more samples into it."""
    times = priors.batches.get(item.id)
    if times is None and item.per == "sample":
        basis = Text(zh="每步的样本更多：单步不会变短", en="more samples a step: the step gets no shorter")
        ends = min(0.0, item.interval[0]), min(0.0, item.interval[1])
        return Effect(quality="latency", expected=min(0.0, item.gain_fraction), interval=ends, level=item.interval_level, basis=basis,
                      provenance=item.provenance)  # fmt: skip
    if times is not None:
        saved = [1.0 - times * (1.0 - gain) for gain in (item.gain_fraction, *item.interval)]
        basis = Text(
            zh=f"批大小变为 {times:g} 倍：每个样本更快，但一步更长", en=f"at {times:g} times the batch: a sample is faster, a step longer"
        )
        return Effect(quality="latency", expected=saved[0], interval=(saved[1], saved[2]), level=item.interval_level, basis=basis,
                      provenance=item.provenance)  # fmt: skip
    return Effect(quality="latency", expected=item.gain_fraction, interval=item.interval, level=item.interval_level,
                  basis=item.rationale, provenance=item.provenance)  # fmt: skip


def _throughput(item: RankedStrategy) -> Effect:
    return Effect(
        quality="throughput",
        expected=_faster(item.gain_fraction),
        interval=(_faster(item.interval[0]), _faster(item.interval[1])),
        level=item.interval_level,
        basis=Text(zh="由时延换算，批大小不变", en="from the time of a step at the same batch"),
        provenance=item.provenance,
    )


def _faster(saved: float) -> float:
    """Work per time gained when a step saves this fraction."""
    return 1.0 / (1.0 - min(saved, _NO_GAIN)) - 1.0


def _memory(strategy: StrategyId, past: Sequence[PastCase], priors: EffectPriors, *, found: bool) -> Effect:
    seen = [(gain, outcome, item) for item in past if item.record.kind != "card" for case in item.record.cases for outcome in case.outcomes
            if outcome.strategy == strategy and (gain := _memory_saved(outcome)) is not None]  # fmt: skip
    low, high = priors.memory.get(strategy, (0.0, 0.0))
    if not seen:
        basis = Text(zh="没有案例报告显存；按该改动的性质估计", en="no case reports memory; judged from what the change does")
        return Effect(
            quality="memory",
            expected=_cautious(low, high, priors) if found else min(0.0, _cautious(low, high, priors)),
            interval=(low, high),
            level=priors.level,
            basis=basis,
        )
    gains = [gain for gain, _, _ in seen]
    few = len(gains) < _FEW
    return Effect(
        quality="memory",
        expected=sum(gains) / len(gains),
        interval=(min(*gains, low) if few else min(gains), max(*gains, high) if few else max(gains)),
        level=priors.level,
        basis=Text(zh=f"依据 {len(gains)} 个报告了显存的案例", en=f"from {len(gains)} outcome{'s' * (len(gains) > 1)} that report memory"),
        provenance=weakest(*(weakest(outcome.provenance, item.record.provenance) for _, outcome, item in seen)),
    )


def _cautious(low: float, high: float, priors: EffectPriors) -> float:
    """A part of what may be freed, half of what may be taken, nothing where it can go either way."""
    if low >= 0:
        return priors.prior_share * high
    return low / 2 if high <= 0 else 0.0


def _memory_saved(outcome: Outcome) -> float | None:
    unit = outcome.before.unit if outcome.before is not None else ""
    return reported_gain(outcome) if unit and dimension(unit)[0] == "bytes" and outcome.metric.startswith("memory") else None


def _energy(item: RankedStrategy, priors: EffectPriors, *, waiting: bool) -> Effect:
    low, typical, high = priors.idle_energy_share if waiting else (1.0, 1.0, 1.0)
    least = item.interval[0]
    basis = (
        Text(
            zh="由时延换算：省下的是等待时间，只省空闲功耗", en="from the time of a step: what goes is waiting, which costs idle power only"
        )
        if waiting
        else Text(zh="由时延换算，功耗不变", en="from the time of a step at the same power")
    )
    return Effect(
        quality="energy",
        expected=item.gain_fraction * typical,
        interval=(least * (low if least > 0 else high), item.interval[1] * high),
        level=item.interval_level,
        basis=basis,
        provenance=item.provenance,
    )


def _precision(strategy: Strategy, priors: EffectPriors) -> Effect:
    bound = priors.precision_loss.get(strategy.precision_risk)
    basis = Text(zh=f"目录中的精度风险：{strategy.precision_risk}", en=f"precision risk in the catalogue: {strategy.precision_risk}")
    if bound is None:
        return Effect(quality="precision", expected=0.0, interval=(0.0, None), level=priors.level, basis=basis)
    return Effect(quality="precision", expected=sum(bound) / 2, interval=bound, level=priors.level, basis=basis)
