"""Ticks, scales and grids."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kb.report.svg.canvas import Canvas


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values to user units between ``near`` and ``far``; logarithmic when ``log``."""

    low: float
    high: float
    near: float
    far: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The place of ``value``."""
        if self.log:
            share = (math.log10(max(value, self.low)) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        else:
            share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0
        return self.near + share * (self.far - self.near)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round values between ``low`` and ``high``: steps of 1, 2 or 5 times a power of ten."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    step = 10 ** math.floor(math.log10(span / about))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= about)
    first = math.ceil(low / step - 1e-9)
    return [place * step for place in range(first, math.floor(high / step + 1e-9) + 1)]


def decades(low: float, high: float) -> list[float]:
    """Powers of ten between ``low`` and ``high``."""
    return [10.0**power for power in range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)]


def short(value: float) -> str:
    """A tick's label."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:g}"


def grid(canvas: Canvas, x: Scale, y: Scale, x_title: str, y_title: str) -> None:
    """Grid lines, tick labels and titles; ``y.near`` is the bottom."""
    for value in decades(y.low, y.high) if y.log else ticks(y.low, y.high):
        canvas.line(x.near, y(value), x.far, y(value))
        canvas.text(x.near - 6, y(value) + 4, short(value), size=11, anchor="end", faint=True)
    for value in decades(x.low, x.high) if x.log else ticks(x.low, x.high, 8):
        canvas.line(x(value), y.near, x(value), y.near + 4, opacity=0.4)
        canvas.text(x(value), y.near + 17, short(value), size=11, anchor="middle", faint=True)
    canvas.text(x.far, y.near + 33, x_title, size=11, anchor="end", faint=True)
    canvas.text(x.near, y.far - 8, y_title, size=11, faint=True)
