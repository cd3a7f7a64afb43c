"""Flame graph, root on top."""

from __future__ import annotations

from kb.report.figures import FlameGraph, Frame
from kb.report.numbers import duration, percent
from kb.report.palette import palette
from kb.report.svg.bars import WIDTH
from kb.report.svg.canvas import Canvas

_ROW = 27
_THINNEST = 0.4
"""Width in user units below which a frame is not drawn."""
_SHADES = (1.0, 0.92, 0.74, 0.56)


def flame(chart: FlameGraph, title: str) -> str:
    """Frames by depth, children from the left in the order given."""
    canvas = Canvas(WIDTH, (depth(chart.root)) * _ROW)
    scale = WIDTH / chart.root.value_ns if chart.root.value_ns > 0 else 0.0
    _draw(canvas, chart.root, 0.0, 0, scale, chart.root.value_ns or 1)
    return canvas.finished(title)


def depth(frame: Frame) -> int:
    """Number of rows."""
    return 1 + max((depth(child) for child in frame.children), default=0)


def _draw(canvas: Canvas, frame: Frame, x: float, level: int, scale: float, total: int) -> None:
    width = frame.value_ns * scale
    if width < _THINNEST:
        return
    tasks = f" · {frame.count:,}x" if frame.count else ""
    said = f"{frame.name}: {duration(frame.value_ns)} = {percent(frame.value_ns / total)}{tasks}"
    shade = _SHADES[min(level, len(_SHADES) - 1)]
    canvas.rect(
        x + 0.3, level * _ROW, width - 0.6, _ROW - 2, palette()[frame.role], opacity=shade, title=said, radius=2 if width > 6 else 0
    )
    label = frame.name if level else f"{frame.name} · {duration(frame.value_ns)}"
    canvas.text(
        x + 6, level * _ROW + 17, label, size=12, room=width - 10, bold=level < 2, fill="#ffffff" if shade > 0.6 else "currentColor"
    )
    for child in frame.children:
        _draw(canvas, child, x, level + 1, scale, total)
        x += child.value_ns * scale
