"""Heat map: a table whose cells are tinted by how much they deserve a look."""

from __future__ import annotations

from kb.report.figures import HeatMap
from kb.report.palette import palette
from kb.report.svg.bars import WIDTH
from kb.report.svg.canvas import Canvas

_NAME, _HEADER, _ROW = 190, 34, 28
_STRONGEST = 0.8


def heat_map(chart: HeatMap, title: str) -> str:
    """Rows by columns, the text of every cell in it."""
    canvas = Canvas(WIDTH, _HEADER + len(chart.rows) * _ROW)
    cell = (WIDTH - _NAME) / max(len(chart.columns), 1)
    for place, column in enumerate(chart.columns):
        canvas.text(_NAME + (place + 0.5) * cell, 20, column, size=11, anchor="middle", faint=True, room=cell - 4)
    for row, name in enumerate(chart.rows):
        y = _HEADER + row * _ROW
        canvas.text(0, y + 18, name, size=12, room=_NAME - 10)
        for place, (heat, text) in enumerate(zip(chart.heat[row], chart.texts[row], strict=True)):
            x = _NAME + place * cell
            said = f"{name} · {chart.columns[place]}: {text}"
            if heat is None:
                canvas.rect(x + 1, y + 1, cell - 2, _ROW - 2, "currentColor", opacity=0.04, title=said, radius=3)
            else:
                canvas.rect(x + 1, y + 1, cell - 2, _ROW - 2, palette()["bad"], opacity=0.03 + _STRONGEST * heat**1.5, title=said, radius=3)
            canvas.text(x + cell / 2, y + 18, text, size=11, anchor="middle", faint=heat is None)
    return canvas.finished(title)
