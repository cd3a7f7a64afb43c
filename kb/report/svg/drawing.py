"""Every chart as an SVG element."""

from __future__ import annotations

from kb.report.figures import BeforeAfter, Breakdown, Chart, Curves, FlameGraph, HeatMap, Reliability, Roofline, Timeline, Tree
from kb.report.svg.bars import before_after, breakdown
from kb.report.svg.flame import flame
from kb.report.svg.lines import curves, reliability, roofline
from kb.report.svg.matrix import heat_map
from kb.report.svg.timeline import timeline
from kb.report.svg.tree import tree


def draw(chart: Chart, title: str) -> str:
    """The picture of ``chart``, named ``title`` for readers that do not see it; a static drawing without scripts."""
    match chart:
        case Breakdown():
            return breakdown(chart, title)
        case FlameGraph():
            return flame(chart, title)
        case Timeline():
            return timeline(chart, title)
        case HeatMap():
            return heat_map(chart, title)
        case Curves():
            return curves(chart, title)
        case Tree():
            return tree(chart, title)
        case Roofline():
            return roofline(chart, title)
        case BeforeAfter():
            return before_after(chart, title)
        case Reliability():
            return reliability(chart, title)
