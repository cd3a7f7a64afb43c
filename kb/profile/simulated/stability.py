"""How steady the steps of a capture were, and whether the clock explains it: what a hot edge box shows."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from kb.domain.text import Text
from kb.session.session import Session

Floats = npt.NDArray[np.float64]
LEAST_STEPS: Final = 8
STRONG: Final = 0.7
"""A correlation beyond this is called strong."""
UNSTEADY: Final = 0.05
"""Spread of latency (p95 over p5, less 1) that is worth a word."""


class Stability(msgspec.Struct, frozen=True, kw_only=True):
    """Latency of steps in ms, clock in MHz, power in W, temperature in °C; correlations over steps, NaN where nothing varied."""

    steps: int
    latency_p5_ms: float
    latency_p50_ms: float
    latency_p95_ms: float
    clock_low_mhz: float
    clock_high_mhz: float
    power_low_w: float
    power_high_w: float
    temperature_max_c: float
    clock_latency_r: float
    power_latency_r: float

    @property
    def spread(self) -> float:
        """p95 over p5, less 1."""
        return self.latency_p95_ms / self.latency_p5_ms - 1.0 if self.latency_p5_ms else 0.0

    @property
    def throttled(self) -> bool:
        """Whether latency varies and the clock explains it."""
        return self.spread > UNSTEADY and self.clock_latency_r < -STRONG


def stability_of(session: Session) -> Stability | None:
    """None where steps or samples of clock, power and temperature are missing, or steps are few. Warm-up is left out."""
    steps, counters = session.table("steps"), session.table("counters")
    if steps is None or counters is None or len(steps) < LEAST_STEPS or "start_ns" not in steps or "end_ns" not in steps:
        return None
    real = steps.where(steps["warmup"] == 0)
    series = [_sampled(session, real["start_ns"], name) for name in ("AI Core Freq [MHz]", "Power [W]", "Temperature [C]")]
    if any(values is None for values in series):
        return None
    clock, power, celsius = (np.asarray(values, dtype=np.float64) for values in series)
    latency = (real["end_ns"] - real["start_ns"]) / 1e6
    low, middle, high = np.quantile(latency, (0.05, 0.5, 0.95)).tolist()
    return Stability(
        steps=len(latency),
        latency_p5_ms=low,
        latency_p50_ms=middle,
        latency_p95_ms=high,
        clock_low_mhz=float(clock.min()),
        clock_high_mhz=float(clock.max()),
        power_low_w=float(power.min()),
        power_high_w=float(power.max()),
        temperature_max_c=float(celsius.max()),
        clock_latency_r=_correlation(clock, latency),
        power_latency_r=_correlation(power, latency),
    )


def _sampled(session: Session, times: npt.NDArray[np.int64], name: str) -> Floats | None:
    """The last sample of a counter at or before each time."""
    counters, code = session.tables["counters"], session.code(name)
    rows = np.flatnonzero(counters["name"] == code)
    if code < 0 or not len(rows):
        return None
    place = np.searchsorted(counters["start_ns"][rows], times, side="right") - 1
    values: Floats = counters["value"][rows][np.maximum(place, 0)]
    return values


def _correlation(a: Floats, b: Floats) -> float:
    if a.std() < 1e-9 or b.std() < 1e-9:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def told(found: Stability) -> Text:
    """One sentence about it."""
    zh = f"单步延迟 {found.latency_p5_ms:.1f}–{found.latency_p95_ms:.1f} ms（p5–p95），最高 {found.temperature_max_c:.0f} °C"
    en = f"step latency {found.latency_p5_ms:.1f} to {found.latency_p95_ms:.1f} ms (p5 to p95), up to {found.temperature_max_c:.0f} °C"
    if not found.throttled:
        return Text(f"{zh}；时钟稳定在 {found.clock_high_mhz:.0f} MHz", f"{en}; the clock stays at {found.clock_high_mhz:.0f} MHz")
    return Text(
        f"{zh}；温度触发降频：{found.clock_high_mhz:.0f} → {found.clock_low_mhz:.0f} MHz，与延迟的相关系数 {found.clock_latency_r:.2f}"
        f"（功耗与延迟 {found.power_latency_r:.2f}）：改善散热或设 clock_cap",
        f"{en}; heat throttles the clock, {found.clock_high_mhz:.0f} to {found.clock_low_mhz:.0f} MHz, correlation with latency "
        f"{found.clock_latency_r:.2f} (power with latency {found.power_latency_r:.2f}): cool it better, or set clock_cap",
    )
