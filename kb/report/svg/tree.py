"""Trees from left to right: root causes, and paths of a drill-down."""

from __future__ import annotations

from dataclasses import dataclass

from kb.report.figures import Node, Tree
from kb.report.palette import palette
from kb.report.svg.bars import WIDTH
from kb.report.svg.canvas import Canvas

_BOX, _PITCH, _HEADER, _GUTTER = 44, 54, 26, 26


@dataclass(slots=True)
class _Cursor:
    """The next free row."""

    row: float = 0.0


def tree(chart: Tree, title: str) -> str:
    """Boxes by level; a parent stands beside the middle of its children."""
    depth = max((_depth(root) for root in chart.roots), default=1)
    canvas = Canvas(WIDTH, _HEADER + max(sum(_leaves(root) for root in chart.roots), 1) * _PITCH)
    column = (WIDTH + _GUTTER) / max(depth, min(len(chart.levels), 4))
    for place, level in enumerate(chart.levels[:depth]):
        canvas.text(place * column, 14, level, size=11, faint=True, room=column - _GUTTER)
    cursor = _Cursor()
    for root in chart.roots:
        _draw(canvas, root, 0, column, cursor)
    return canvas.finished(title)


def _depth(node: Node) -> int:
    return 1 + max((_depth(child) for child in node.children), default=0)


def _leaves(node: Node) -> int:
    return sum(_leaves(child) for child in node.children) or 1


def _draw(canvas: Canvas, node: Node, level: int, column: float, cursor: _Cursor) -> float:
    """Draw the branch and return the y of its root's middle."""
    x, width = level * column, column - _GUTTER
    middles = [_draw(canvas, child, level + 1, column, cursor) for child in node.children]
    if middles:
        middle = (middles[0] + middles[-1]) / 2
    else:
        middle = _HEADER + cursor.row * _PITCH + _BOX / 2
        cursor.row += 1
    for target in middles:
        begin, end = x + width, x + column
        bend = (begin + end) / 2
        canvas.path(f"M{begin:.1f} {middle:.1f}C{bend:.1f} {middle:.1f} {bend:.1f} {target:.1f} {end:.1f} {target:.1f}",
                    stroke=palette()["accent"], opacity=0.5)  # fmt: skip
    _box(canvas, node, x, middle - _BOX / 2, width)
    return middle


def _box(canvas: Canvas, node: Node, x: float, y: float, width: float) -> None:
    colour = palette()[node.role]
    canvas.rect(x, y, width, _BOX, colour, opacity=0.1, title=f"{node.name}: {node.detail}", radius=5)
    canvas.rect(x, y, 3, _BOX, colour)
    canvas.text(x + 11, y + 18, node.name, size=12, bold=True, room=width - 16)
    canvas.text(x + 11, y + 34, node.detail, size=11, faint=True, room=width - 16)
    if node.share is not None:
        canvas.rect(x + 3, y + _BOX - 3, (width - 3) * min(max(node.share, 0.0), 1.0), 3, colour)
