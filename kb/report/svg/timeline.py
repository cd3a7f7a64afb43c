"""Streams as lanes. Spans thinner than a pixel are joined, so that the drawing does not grow with the capture."""

from __future__ import annotations

from collections import defaultdict

from kb.report.figures import Lane, Timeline
from kb.report.numbers import duration
from kb.report.palette import palette
from kb.report.svg.axes import ticks
from kb.report.svg.bars import WIDTH
from kb.report.svg.canvas import Canvas

_LEFT, _TOP = 120, 8
_LANE, _PITCH = 26, 36
_NAMED = 2.5
"""Width from which a span is a mark of its own with a name on hover."""
_BUBBLES = 18


def timeline(chart: Timeline, title: str) -> str:
    """Lanes, the longest gaps below them, and a time axis in ms."""
    height = _TOP + (len(chart.lanes) + 1) * _PITCH + 24
    canvas = Canvas(WIDTH, height)
    scale = (WIDTH - _LEFT - 2) / (chart.window_ns or 1)
    bottom = _TOP + (len(chart.lanes) + 1) * _PITCH
    for value in ticks(0, chart.window_ns / 1e6, 8):
        x = _LEFT + value * 1e6 * scale
        canvas.line(x, _TOP, x, bottom)
        canvas.text(x, bottom + 15, f"{value:g} ms", size=11, anchor="middle" if value else "start", faint=True)
    for place, lane in enumerate(chart.lanes):
        y = _TOP + place * _PITCH + 4.0
        canvas.text(0, y + 17, lane.name, size=12, room=_LEFT - 8)
        canvas.rect(_LEFT, y, WIDTH - _LEFT - 2, _LANE, "currentColor", opacity=0.05)
        _spans(canvas, chart, lane, y, scale)
    _gaps(canvas, chart, _TOP + len(chart.lanes) * _PITCH + 4.0, scale)
    return canvas.finished(title)


def _spans(canvas: Canvas, chart: Timeline, lane: Lane, y: float, scale: float) -> None:
    thin: dict[int, list[tuple[float, float]]] = defaultdict(list)
    colours = palette()
    for start, length, name, role in zip(lane.starts, lane.durations, lane.names, lane.roles, strict=True):
        x, width = _LEFT + start * scale, length * scale
        if width >= _NAMED:
            canvas.rect(x, y, width, _LANE, colours[chart.roles[role]], title=f"{chart.names[name]}: {duration(length)}")
        else:
            runs = thin[role]
            if runs and x - runs[-1][1] < 0.5:
                runs[-1] = (runs[-1][0], max(runs[-1][1], x + width))
            else:
                runs.append((x, x + width))
    for role, runs in thin.items():
        data = "".join(f"M{begin:.1f} {y:g}h{max(end - begin, 0.4):.1f}v{_LANE}h{-max(end - begin, 0.4):.1f}z" for begin, end in runs)
        canvas.path(data, fill=colours[chart.roles[role]])


def _gaps(canvas: Canvas, chart: Timeline, y: float, scale: float) -> None:
    for bubble in sorted(chart.bubbles, key=lambda item: -item.duration_ns)[:_BUBBLES]:
        said = f"{duration(bubble.duration_ns)}, {bubble.before} → {bubble.after}: {bubble.cause}"
        width = max(bubble.duration_ns * scale, 2.0)
        canvas.rect(_LEFT + bubble.start_ns * scale, y, width, _LANE * 0.6, palette()["bubble"], title=said, radius=1)
