"""Strategies weighed against everything asked for: order by the target, limits on memory and throughput, and the Pareto front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from kb.domain.catalogue import EFFORTS, Catalogue
from kb.domain.recommendation import Constraints, Excluded, Quality, RankedStrategy, Recommendation
from kb.domain.text import Text
from kb.recommend.bounds import Bounds, most_saved
from kb.recommend.effects import EffectPriors, with_effects
from kb.recommend.support import PastCase


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The run as captured: ``latency_ns`` of the longest representative step, ``memory_b`` held at most on one device, ``samples`` of one
    step. None = the capture does not say."""

    latency_ns: float
    memory_b: float | None = None
    samples: float | None = None

    @property
    def throughput(self) -> float | None:
        """Samples a second."""
        return self.samples / (self.latency_ns / 1e9) if self.samples and self.latency_ns else None


def weighed(ranked: Recommendation, past: Sequence[PastCase], catalogue: Catalogue, constraints: Constraints, baseline: Baseline,
            priors: EffectPriors, found: Bounds) -> Recommendation:  # fmt: skip
    """``ranked`` with the effects of each strategy, in the order of the target, without those that would break a limit on latency or
    memory, and with what of the limits cannot be met. ``found`` are the causes that the diagnosis holds, with what
    removing each can save at most: savings of time are added up a cause, never an alternative twice."""
    told = [with_effects(item, past, catalogue, priors, found=item.cause in found) for item in ranked.strategies]
    breaking = {item.id: reason for item in told if (reason := _breaks(item, constraints, baseline)) is not None}
    kept = _ordered([item for item in told if item.id not in breaking], constraints)
    missed = _missed(kept, constraints, baseline, found, catalogue, latency_told=not ranked.feasible)
    none_left = bool(told) and not kept
    return replace(
        ranked,
        strategies=tuple(kept),
        excluded=(*ranked.excluded, *(Excluded(id=name, reason=reason) for name, reason in breaking.items())),
        feasible=ranked.feasible and not missed and not none_left,
        closest=_joined([*([ranked.closest] if ranked.closest.en else []), *missed, *([_NONE_LEFT] if none_left else [])]),
        notes=(*ranked.notes, *_unjudged(constraints, baseline)),
        front=front(kept, asked_qualities(constraints)),
    )


_LEAST_LEFT: Final = 0.001
"""Of a step; keeps a throughput finite."""
_NONE_LEFT: Final = Text(zh="约束排除了所有策略", en="the constraints exclude every strategy")


def _ordered(items: list[RankedStrategy], constraints: Constraints) -> list[RankedStrategy]:
    """By the target; for throughput the ranking's own order stands, as it weighs tiers too, and for latency too but for what makes a
    step longer, which comes last. Sorting is stable."""
    if constraints.target == "throughput":
        return items
    if constraints.target == "latency":
        return sorted(items, key=lambda item: item.per == "sample" or _expected(item, "latency") < 0)
    return sorted(items, key=lambda item: -_expected(item, constraints.target))


def _expected(item: RankedStrategy, quality: Quality) -> float:
    effect = item.effect(quality)
    return effect.expected if effect is not None else 0.0


def _breaks(item: RankedStrategy, constraints: Constraints, baseline: Baseline) -> Text | None:
    return _too_large(item, constraints, baseline) or _too_slow(item, constraints, baseline)


def _too_slow(item: RankedStrategy, constraints: Constraints, baseline: Baseline) -> Text | None:
    """A change that makes a step longer than the limit; one that only saves too little is no reason to leave it out."""
    limit, after = constraints.max_latency_ns, baseline.latency_ns * (1.0 - _expected(item, "latency"))
    if limit is None or _expected(item, "latency") >= 0 or after <= limit:
        return None
    figures = f"{after / 1e6:.1f} ms", f"{limit / 1e6:.1f} ms"
    return Text(
        zh=f"单步会变为约 {figures[0]}，超过上限 {figures[1]}", en=f"a step would take about {figures[0]}, above the limit of {figures[1]}"
    )


def _missed(items: Sequence[RankedStrategy], constraints: Constraints, baseline: Baseline, found: Bounds, catalogue: Catalogue, *,
            latency_told: bool) -> list[Text]:  # fmt: skip
    """What cannot be met even at every bound; latency only where the ranking has not said so already."""
    latency = None if latency_told else _latency_missed(items, constraints, baseline, found, catalogue)
    throughput = _throughput_missed(items, constraints, baseline, found, catalogue)
    texts = latency, _memory_missed(items, constraints, baseline), throughput
    return [text for text in texts if text is not None]


def _latency_missed(
    items: Sequence[RankedStrategy], constraints: Constraints, baseline: Baseline, found: Bounds, catalogue: Catalogue
) -> Text | None:
    limit = constraints.max_latency_ns
    if limit is None:
        return None
    saved = [(item, effect.interval[1] or 0.0) for item in items if (effect := item.effect("latency")) is not None]
    least = baseline.latency_ns * (1.0 - most_saved(saved, found, catalogue))
    if least <= limit:
        return None
    figures = f"{least / 1e6:.1f} ms", f"{limit / 1e6:.1f} ms"
    return Text(
        zh=f"即使所有策略都达到上限，单步仍约 {figures[0]}，高于限制 {figures[1]}",
        en=f"even with every strategy at its bound a step takes about {figures[0]}, above the limit of {figures[1]}",
    )


def _too_large(item: RankedStrategy, constraints: Constraints, baseline: Baseline) -> Text | None:
    limit, held, effect = constraints.max_memory_b, baseline.memory_b, item.effect("memory")
    if limit is None or held is None or effect is None or effect.expected >= 0:
        return None
    after = held * (1.0 - effect.expected)
    if after <= limit:
        return None
    return Text(
        zh=f"预计占用显存 {after / 1e9:.2f} GB，超过上限 {limit / 1e9:.2f} GB",
        en=f"would hold about {after / 1e9:.2f} GB of device memory, above the limit of {limit / 1e9:.2f} GB",
    )


def _memory_missed(items: Sequence[RankedStrategy], constraints: Constraints, baseline: Baseline) -> Text | None:
    limit, held = constraints.max_memory_b, baseline.memory_b
    if limit is None or held is None:
        return None
    least = _left(held, [effect.interval[1] or 0.0 for item in items if (effect := item.effect("memory")) is not None])
    if least <= limit:
        return None
    return Text(
        zh=f"即使所有策略都达到上限，显存仍约 {least / 1e9:.2f} GB（现为 {held / 1e9:.2f} GB），高于限制 {limit / 1e9:.2f} GB",
        en=f"even with every strategy at its bound about {least / 1e9:.2f} GB of device memory are held (now {held / 1e9:.2f} GB), "
        f"above the limit of {limit / 1e9:.2f} GB",
    )


def _throughput_missed(
    items: Sequence[RankedStrategy], constraints: Constraints, baseline: Baseline, found: Bounds, catalogue: Catalogue
) -> Text | None:
    limit, now = constraints.min_throughput, baseline.throughput
    if limit is None or now is None:
        return None
    most = now / max(_LEAST_LEFT, 1.0 - most_saved([(item, item.interval[1]) for item in items], found, catalogue))
    if most >= limit:
        return None
    return Text(
        zh=f"即使所有策略都达到上限，吞吐约 {most:.1f}/s（现为 {now:.1f}/s），低于要求 {limit:.1f}/s；增大批是另一条路",
        en=f"even with every strategy at its bound throughput is about {most:.1f}/s (now {now:.1f}/s), below the {limit:.1f}/s asked for; "
        "a larger batch is another way",
    )


def _left(value: float, saved: Sequence[float]) -> float:
    """What is left after savings that each take a fraction of what the earlier ones left."""
    for fraction in saved:
        value *= 1.0 - min(max(fraction, 0.0), 0.999)
    return value


def _unjudged(constraints: Constraints, baseline: Baseline) -> tuple[Text, ...]:
    """Limits that this capture cannot be held against, and how to get what is missing."""
    notes = []
    if constraints.max_memory_b is not None and baseline.memory_b is None:
        notes.append(
            Text(
                zh="采集中没有显存数据，显存上限无法核对；请打开 profile_memory 再采集",
                en="the capture holds no device memory, so --max-memory cannot be checked: capture with profile_memory on",
            )
        )
    if constraints.min_throughput is not None and baseline.throughput is None:
        notes.append(
            Text(
                zh="采集没有说明一步有多少样本，吞吐下限无法核对；请用 --samples 给出",
                en="the capture does not say how many samples a step holds, so --min-throughput cannot be checked: give --samples",
            )
        )
    return tuple(notes)


def asked_qualities(constraints: Constraints) -> tuple[Quality, ...]:
    """The qualities that the target and the limits speak of. Throughput follows latency at a fixed batch and is no quality of its own."""
    asked: list[Quality] = ["latency" if constraints.target == "throughput" else constraints.target]
    if constraints.max_latency_ns is not None or constraints.min_throughput is not None:
        asked.append("latency")
    if constraints.max_memory_b is not None:
        asked.append("memory")
    if constraints.max_precision_loss is not None:
        asked.append("precision")
    return tuple(dict.fromkeys(asked))


def front(items: Sequence[RankedStrategy], qualities: Sequence[Quality]) -> tuple[str, ...]:
    """Ids that no other item beats: at least as good in every quality and in effort, better in one. Empty for fewer than two qualities."""
    if len(qualities) < 2:
        return ()
    points = {item.id: _point(item, qualities) for item in items}
    return tuple(name for name, point in points.items() if not any(_beats(other, point) for other in points.values()))


def _point(item: RankedStrategy, qualities: Sequence[Quality]) -> tuple[float, ...]:
    """Larger is better."""
    values = [-_worst_loss(item) if quality == "precision" else _expected(item, quality) for quality in qualities]
    return (*values, -float(EFFORTS.index(item.effort)))


def _worst_loss(item: RankedStrategy) -> float:
    effect = item.effect("precision")
    bound = effect.interval[1] if effect is not None else None
    return float("inf") if bound is None else bound


def _beats(other: tuple[float, ...], point: tuple[float, ...]) -> bool:
    return other != point and all(theirs >= mine for theirs, mine in zip(other, point, strict=True))


def _joined(texts: Sequence[Text]) -> Text:
    return Text(zh="；".join(text.zh for text in texts), en="; ".join(text.en for text in texts))
