"""Whether a change stays: what it gains for the target, and what it does to the limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kb.domain.recommendation import Constraints, Target
from kb.domain.text import Text
from kb.tune.figures import Figures

LEAST_NOISE: Final = 0.002
"""Relative band below which two step times of the simulator are the same, whatever the pair says."""
STEADY: Final = 0.001
"""Relative band of figures the simulator computes without noise (memory, energy)."""

MEAN_NOISE: Final = 0.02
"""Widest band between two simulated runs of one seed: they draw the same drift step by step, and the spread of kernels averages
out. Captures of few steps look noisier by themselves, and so do steps that wait for data every other time."""


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """One constraint against one run. ``excess`` is how far the figure is beyond the limit, as a fraction of it; not above 0
    when it holds. ``text`` says both numbers."""

    name: str
    excess: float
    text: Text

    @property
    def holds(self) -> bool:
        """Whether the run meets it."""
        return self.excess <= 0.0


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """``gain`` is the saved fraction of the target's cost (time a step, time a sample, bytes, joules), negative for a loss;
    ``reasons`` say why the change goes or stays."""

    keep: bool
    gain: float
    reasons: tuple[Text, ...]


def limits_of(constraints: Constraints, figures: Figures) -> tuple[Limit, ...]:
    """Every limit that was set, against ``figures``."""
    found = []
    if constraints.max_latency_ns is not None:
        found.append(_limit("latency", figures.latency_ns / 1e6, constraints.max_latency_ns / 1e6, "ms", ("单步", "step time")))
    if constraints.max_memory_b is not None:
        found.append(_limit("memory", figures.memory_b / 1e9, constraints.max_memory_b / 1e9, "GB", ("显存", "memory")))
    if constraints.min_throughput is not None:
        found.append(_least("throughput", figures.throughput, constraints.min_throughput, "/s", ("吞吐", "throughput")))
    if constraints.max_precision_loss is not None:
        loss = figures.precision_loss * 100.0, constraints.max_precision_loss * 100.0
        found.append(_limit("precision", *loss, "%", ("精度损失（仿真）", "precision loss (emulated)")))
    return tuple(found)


def cost(target: Target, figures: Figures) -> float:
    """What the target wants small."""
    return _COSTS[target](figures)


_COSTS: Final[Mapping[Target, Callable[[Figures], float]]] = {
    "latency": lambda figures: float(figures.latency_ns),
    "throughput": lambda figures: 1e9 / max(figures.throughput, 1e-9),
    "memory": lambda figures: float(figures.memory_b),
    "energy": lambda figures: figures.energy_j if figures.energy_j is not None else float(figures.latency_ns),
}


def excess(constraints: Constraints, figures: Figures) -> float:
    """How far all limits together are missed, as a sum of fractions; 0 when every one holds."""
    return sum(max(0.0, limit.excess) for limit in limits_of(constraints, figures))


def judge(before: Figures, after: Figures, constraints: Constraints, noise: float) -> Judgement:
    """A change stays when it breaks no limit, makes no missed one worse, and brings either the limits nearer or the target
    forward by more than ``noise`` (a fraction of the step time)."""
    band = noise if constraints.target in ("latency", "throughput") else STEADY
    gain = 1.0 - cost(constraints.target, after) / max(cost(constraints.target, before), 1e-9)
    broken = _broken(limits_of(constraints, before), limits_of(constraints, after), noise)
    if broken:
        return Judgement(keep=False, gain=gain, reasons=broken)
    nearer = excess(constraints, before) - excess(constraints, after)
    figures = f"{100 * gain:+.1f} %", f"±{100 * band:.1f} %"
    if nearer > max(STEADY, noise if nearer < 1.0 else STEADY):
        return Judgement(
            keep=True, gain=gain, reasons=(Text(f"离约束更近；目标变化 {figures[0]}", f"nearer to the limits; target {figures[0]}"),)
        )
    if gain > band:
        return Judgement(keep=True, gain=gain, reasons=(Text(f"目标改善 {figures[0]}", f"the target improves by {figures[0]}"),))
    verdict = ("退化", "regresses") if gain < -band else ("在噪声内", "stays within the noise")
    reason = Text(f"目标{verdict[0]}：{figures[0]}，噪声 {figures[1]}", f"the target {verdict[1]}: {figures[0]}, noise {figures[1]}")
    return Judgement(keep=False, gain=gain, reasons=(reason,))


def _broken(before: tuple[Limit, ...], after: tuple[Limit, ...], noise: float) -> tuple[Text, ...]:
    """Limits that held and no longer do, and missed ones that are missed by more than before."""
    return tuple(
        Text(f"{new.text.zh}（之前：{old.text.zh}）", f"{new.text.en} (before: {old.text.en})")
        for old, new in zip(before, after, strict=True)
        if not new.holds and new.excess > max(0.0, old.excess) + (noise if not old.holds else 0.0)
    )


def _limit(name: str, value: float, most: float, unit: str, names: tuple[str, str]) -> Limit:
    return Limit(
        name=name, excess=value / most - 1.0 if most else math.copysign(math.inf, value), text=_said(value, most, unit, names, "≤")
    )


def _least(name: str, value: float, least: float, unit: str, names: tuple[str, str]) -> Limit:
    return Limit(name=name, excess=1.0 - value / least, text=_said(value, least, unit, names, "≥"))


def _said(value: float, limit: float, unit: str, names: tuple[str, str], sign: str) -> Text:
    figures = f"{value:,.4g} {unit}", f"{sign} {limit:,.4g} {unit}"
    return Text(f"{names[0]} {figures[0]}，要求 {figures[1]}", f"{names[1]} {figures[0]}, limit {figures[1]}")
