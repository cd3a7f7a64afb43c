"""Curves, roofline and reliability: charts with two axes."""

from __future__ import annotations

from kb.report.figures import Curves, Reliability, Roofline
from kb.report.numbers import percent
from kb.report.palette import palette
from kb.report.svg.axes import Scale, grid
from kb.report.svg.bars import WIDTH
from kb.report.svg.canvas import Canvas

_LEFT, _TOP, _BOTTOM = 64, 30, 44
_LABELS = 6


def curves(chart: Curves, title: str) -> str:
    """Lines, the first series also filled when the chart asks for it."""
    height = 280
    canvas = Canvas(WIDTH, height)
    xs = [value for line in chart.series for value in line.x]
    ys = [value for line in chart.series for value in line.y]
    if not xs:
        return canvas.finished(title)
    x = Scale(min(xs), max(xs), _LEFT, WIDTH - 10)
    y = Scale(min(0.0, *ys), (max(ys) * 1.05) or 1.0, height - _BOTTOM, _TOP)
    grid(canvas, x, y, chart.x_title, chart.y_title)
    place = _LEFT + 70.0
    for line in chart.series:
        colour = palette()[line.role]
        points = [f"{x(px):.1f} {y(py):.1f}" for px, py in zip(line.x, line.y, strict=True)]
        if chart.filled and points:
            canvas.path(f"M{x(line.x[0]):.1f} {y.near:.1f}L{'L'.join(points)}L{x(line.x[-1]):.1f} {y.near:.1f}z", fill=colour, opacity=0.1)
        canvas.path(f"M{'L'.join(points)}", stroke=colour)
        canvas.rect(place, 6, 12, 12, colour, radius=2)
        canvas.text(place + 18, 16, line.name, size=12, room=140)
        place += 170
    return canvas.finished(title)


def roofline(chart: Roofline, title: str) -> str:
    """Log-log: the chip's ceilings and one dot for each operator and shape."""
    height = 340
    canvas = Canvas(WIDTH, height)
    ridge = chart.peak_flops / chart.bandwidth
    intensities = [dot.intensity for dot in chart.dots]
    x = Scale(min(1.0, *intensities) / 1.5, max(ridge * 10, *intensities) * 1.5, _LEFT, WIDTH - 20, log=True)
    slowest = min(dot.flops for dot in chart.dots) / 1e12
    y = Scale(min(slowest, 1.0) / 1.5, chart.peak_flops / 1e12 * 2, height - _BOTTOM, _TOP, log=True)
    grid(canvas, x, y, "FLOP/B", "TFLOP/s")
    edge = max(y.low * 1e12 / chart.bandwidth, x.low)
    start = f"M{x(edge):.1f} {y(edge * chart.bandwidth / 1e12):.1f}"
    canvas.path(f"{start}L{x(ridge):.1f} {y(chart.peak_flops / 1e12):.1f}H{x.far:.1f}", stroke=palette()["accent"], width=2)
    canvas.text(x.far, y(chart.peak_flops / 1e12) - 7, f"{chart.peak_flops / 1e12:.0f} TFLOP/s", size=11, anchor="end", faint=True)
    canvas.text(x(ridge / 12), y(chart.peak_flops / 12e12) - 10, f"{chart.bandwidth / 1e12:.2f} TB/s", size=11, anchor="end", faint=True)
    for place, dot in enumerate(chart.dots):
        said = f"{dot.name}: {dot.intensity:.3g} FLOP/B, {dot.flops / 1e12:.1f} TFLOP/s, {percent(dot.weight)}"
        radius = 4 + 26 * dot.weight**0.5
        canvas.circle(x(dot.intensity), y(dot.flops / 1e12), radius, palette()[dot.role], opacity=0.5, title=said)
        if place < _LABELS and dot.weight > 0.03:
            canvas.text(x(dot.intensity), y(dot.flops / 1e12) + 4, str(place + 1), size=11, anchor="middle", bold=True)
    return canvas.finished(title)


def reliability(chart: Reliability, title: str) -> str:
    """Predicted against observed, with the diagonal of perfect calibration."""
    side = 340
    canvas = Canvas(side + 60, side)
    x, y = Scale(0, 1, _LEFT, side), Scale(0, 1, side - _BOTTOM, _TOP)
    grid(canvas, x, y, "predicted", f"observed, ECE {percent(chart.error)}")
    canvas.line(x(0), y(0), x(1), y(1), opacity=0.5, dash="4 4")
    largest = max((item.count for item in chart.bins), default=1)
    for item in chart.bins:
        said = f"{percent(item.predicted)} → {percent(item.observed)}, n = {item.count}"
        canvas.circle(x(item.predicted), y(item.observed), 4 + 10 * (item.count / largest) ** 0.5, palette()["cube"], title=said)
    return canvas.finished(title)
