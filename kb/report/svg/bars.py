"""Breakdown and before/after: bars on a time axis."""

from __future__ import annotations

from collections import Counter

from kb.report.figures import BeforeAfter, Breakdown, Segment
from kb.report.numbers import duration, percent, signed_percent
from kb.report.palette import palette
from kb.report.svg.canvas import Canvas

WIDTH = 960
_NAME = 130
_BAR, _PITCH = 34, 50
_ROW = 24
_FADE = 0.22


def breakdown(chart: Breakdown, title: str) -> str:
    """Stacked bars above a legend; with one bar the legend carries its figures."""
    shades = _shades(chart)
    legend = list(dict.fromkeys(segment.name for bar in chart.bars for segment in bar.segments))
    alone = len(chart.bars) == 1
    left = 0 if alone else _NAME
    legend_rows = len(legend) if alone else (len(legend) + 3) // 4
    canvas = Canvas(WIDTH, len(chart.bars) * _PITCH + legend_rows * _ROW + 14)
    longest = max((bar.total_ns for bar in chart.bars), default=1) or 1
    scale = (WIDTH - left - (0 if alone else 86)) / longest
    for place, bar in enumerate(chart.bars):
        x, y = float(left), place * _PITCH + 4.0
        if not alone:
            canvas.text(0, y + 22, bar.name, size=13, bold=True, room=_NAME - 8)
        for segment in bar.segments:
            width = segment.value_ns * scale
            share = percent(segment.value_ns / bar.total_ns)
            fill, opacity = palette()[segment.role], shades[segment.name]
            canvas.rect(x, y, width, _BAR, fill, opacity=opacity, title=f"{segment.name}: {duration(segment.value_ns)} = {share}")
            if opacity > 0.6:
                canvas.text(x + 8, y + 22, share, size=12, room=width - 12, fill="#ffffff", bold=True)
            x += width
        if not alone:
            canvas.text(x + 8, y + 22, duration(bar.total_ns), size=12, faint=True)
    _legend(canvas, chart, legend, shades, alone=alone)
    return canvas.finished(title)


def _shades(chart: Breakdown) -> dict[str, float]:
    """Opacity by segment name: parts of one role get lighter one after the other."""
    seen: Counter[str] = Counter()
    shades: dict[str, float] = {}
    for segment in (segment for bar in chart.bars for segment in bar.segments):
        if segment.name not in shades:
            shades[segment.name] = max(1 - _FADE * seen[segment.role], 0.3)
            seen[segment.role] += 1
    return shades


def _legend(canvas: Canvas, chart: Breakdown, names: list[str], shades: dict[str, float], *, alone: bool) -> None:
    samples: dict[str, Segment] = {segment.name: segment for bar in chart.bars for segment in bar.segments}
    top = len(chart.bars) * _PITCH + 8
    for place, name in enumerate(names):
        x, y = (0, top + place * _ROW) if alone else (place % 4 * 240, top + place // 4 * _ROW)
        canvas.rect(x, y + 3, 12, 12, palette()[samples[name].role], opacity=shades[name], radius=2)
        canvas.text(x + 20, y + 14, name, size=13, room=210)
        if alone:
            value, total = samples[name].value_ns, chart.bars[0].total_ns
            canvas.text(330, y + 14, duration(value), size=13, anchor="end")
            canvas.text(410, y + 14, percent(value / total), size=13, anchor="end", bold=True)
            canvas.rect(430, y + 5, 520 * value / total, 8, palette()[samples[name].role], opacity=shades[name], radius=2)


def before_after(chart: BeforeAfter, title: str) -> str:
    """Two bars a row; the whisker is the interval of the second."""
    colours = palette()
    canvas = Canvas(WIDTH, len(chart.pairs) * 50 + 34)
    longest = max((max(pair.before_ns, pair.after_ns, *(pair.interval_ns or (0,))) for pair in chart.pairs), default=1) or 1
    scale = (WIDTH - _NAME - 190) / longest
    canvas.rect(_NAME, 4, 12, 12, colours["accent"], radius=2)
    canvas.text(_NAME + 18, 15, chart.before, size=12)
    canvas.rect(_NAME + 130, 4, 12, 12, colours["cube"], radius=2)
    canvas.text(_NAME + 148, 15, chart.after, size=12)
    for place, pair in enumerate(chart.pairs):
        y = place * 50 + 34.0
        canvas.text(0, y + 19, pair.name, size=13, bold=place == 0, room=_NAME - 8)
        canvas.rect(_NAME, y, pair.before_ns * scale, 14, colours["accent"], radius=2, title=f"{chart.before}: {duration(pair.before_ns)}")
        canvas.rect(_NAME, y + 16, pair.after_ns * scale, 14, colours["cube"], radius=2, title=f"{chart.after}: {duration(pair.after_ns)}")
        end = max(pair.before_ns, pair.after_ns)
        if pair.interval_ns is not None:
            low, high = (_NAME + value * scale for value in pair.interval_ns)
            end = max(end, pair.interval_ns[1])
            canvas.line(low, y + 23, high, y + 23, opacity=0.9, width=1.5)
            for edge in (low, high):
                canvas.line(edge, y + 19, edge, y + 27, opacity=0.9, width=1.5)
        change = f" ({signed_percent(pair.after_ns / pair.before_ns - 1)})" if pair.before_ns else ""
        canvas.text(_NAME + end * scale + 8, y + 19, f"{duration(pair.before_ns)} → {duration(pair.after_ns)}{change}", size=11, faint=True)
    return canvas.finished(title)
