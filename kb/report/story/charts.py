"""Facts of sessions as figures in the reader's language."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from kb.domain.accounting import PARTS, Part
from kb.domain.diagnosis import Diagnosis, SessionDiagnosis
from kb.domain.drilldown import DrillDown, DrillNode
from kb.report.document import Block, Figure, Heading, Legend, Note, TableBlock
from kb.report.figures import Bar, Breakdown, Curves, FlameGraph, Frame, HeatMap, Node, Role, Segment, Timeline, Tree
from kb.report.labels import Labels
from kb.report.numbers import amount, duration, percent
from kb.report.pictures.facts import SessionFacts
from kb.report.pictures.operators import METRICS, OperatorFact
from kb.report.story.names import session_name

PART_ROLES: dict[Part, Role] = {"compute": "cube", "comm_exposed": "communication", "copy_exposed": "copy", "idle_bubble": "bubble"}
_DRAWN = 4
"""Sessions whose timeline and flame graph are drawn; the others appear in the breakdown and their findings."""
_HEAT_ROWS = 12
_NAME = 64


def drawn(facts: tuple[SessionFacts, ...]) -> tuple[SessionFacts, ...]:
    """The sessions whose pictures are shown, in their order."""
    return tuple(item for item in facts if item.timeline is not None or item.curves)[:_DRAWN]


def breakdown_figure(diagnosis: Diagnosis, words: Labels) -> Figure:
    """One bar a session."""
    bars = tuple(_bar(session, words) for session in diagnosis.sessions if session.accounting.step_ns)
    chart = Breakdown(bars)
    return Figure("breakdown", words("figure.breakdown"), chart, words("figure.breakdown.caption"))


def _bar(session: SessionDiagnosis, words: Labels) -> Bar:
    books = session.accounting
    segments = tuple(
        Segment(words(f"part.{part}"), PART_ROLES.get(part, "idle"), books.parts[part]) for part in PARTS if books.parts.get(part, 0) > 0
    )
    return Bar(session_name(session, words), books.step_ns, segments)


def picture_blocks(facts: tuple[SessionFacts, ...], words: Labels) -> Iterator[Block]:
    """Timeline, flame graph, roofline and memory of each drawn session."""
    shown = drawn(facts)
    yield Heading(2, words("report.pictures"))
    if not shown:
        yield Note("capture", words("no_pictures"))
        return
    roles = {role for item in shown if item.flame for role in _roles(item.flame)}
    if roles:
        yield Legend(tuple((role, words(f"role.{role}")) for role in _ORDER if role in roles or role == "bubble"))
    for place, item in enumerate(shown):
        yield from _session(place, item, words, several=len(shown) > 1)
    if len(facts) > len(shown):
        left = len(facts) - len(shown)
        yield Note("capture", words.either(f"另有 {left} 份采集未画出", f"{left} more sessions are not drawn"))


_ORDER: tuple[Role, ...] = ("cube", "vector", "mix", "ai_cpu", "communication", "copy", "other", "idle", "bubble")


def _roles(frame: Frame) -> Iterator[Role]:
    for child in frame.children:
        yield child.role


def _session(place: int, item: SessionFacts, words: Labels, *, several: bool) -> Iterator[Block]:
    if several:
        yield Heading(3, item.name if item.rank is None else f"{words('rank')} {item.rank} · {item.name}")
    if item.timeline is not None:
        yield _timeline(place, item.timeline, words)
        yield bubble_table(item.timeline, words)
    if item.flame is not None:
        root = localised(item.flame, words)
        yield Figure(f"flame-{place}", words("figure.flame"), FlameGraph(root), words("figure.flame.caption"))
    if item.roofline is not None:
        caption = f"{words('figure.roofline.caption')} {item.roofline.source}"
        yield Figure(f"roofline-{place}", words("figure.roofline"), item.roofline, caption)
    for number, curves in enumerate(item.curves):
        yield _curves(f"curves-{place}-{number}", curves, words)


def _timeline(place: int, chart: Timeline, words: Labels) -> Figure:
    causes = tuple(replace(bubble, cause=words(f"bubble.{bubble.cause}")) for bubble in chart.bubbles)
    lanes = tuple(replace(lane, name=f"{words.either('流', 'stream')} {lane.name}") for lane in chart.lanes)
    drawn_as = "figure.resampled" if chart.merged_below_ns else "figure.tasks"
    said = words(drawn_as).format(tasks=f"{chart.tasks:,}", limit=duration(chart.merged_below_ns))
    return Figure(f"timeline-{place}", words("figure.timeline"), replace(chart, bubbles=causes, lanes=lanes),
                  f"{words('figure.timeline.caption')} {said}")  # fmt: skip


def bubble_table(chart: Timeline, words: Labels) -> TableBlock:
    """The longest gaps with what stood around them."""
    longest = sorted(chart.bubbles, key=lambda bubble: -bubble.duration_ns)[:5]
    header = (words("role.bubble"), "@", words("before"), words("after"), words("why"))
    rows = tuple(
        (duration(item.duration_ns), duration(item.start_ns), _short(item.before), _short(item.after), words(f"bubble.{item.cause}"))
        for item in longest
    )
    return TableBlock(header, rows, right=(0, 1))


def _short(name: str) -> str:
    """A kernel's name as a table shows it: those of C++ kernels fill a page."""
    return name if len(name) <= _NAME else f"{name[:_NAME]}…"


def localised(root: Frame, words: Labels) -> Frame:
    """A flame graph whose engines are named in the reader's language."""
    return replace(root, name=words("step"), children=tuple(replace(child, name=words(f"role.{child.name}")) for child in root.children))


def _curves(name: str, curves: Curves, words: Labels) -> Figure:
    title = words("figure.memory") if re.search(r"B\Z", curves.y_title) else f"{words('figure.curves')} ({curves.y_title})"
    return Figure(name, title, curves)


def version_figures(before: SessionFacts, after: SessionFacts, words: Labels) -> Iterator[Figure]:
    """The resource curves of two versions over each other: the largest series of each, for every unit both captured."""
    later = {chart.y_title: chart for chart in after.curves}
    for place, chart in enumerate(before.curves):
        other = later.get(chart.y_title)
        if other is not None and chart.series and other.series:
            first = replace(chart.series[0], name=f"{words('before')} · {chart.series[0].name}", role="accent")
            second = replace(other.series[0], name=f"{words('after')} · {other.series[0].name}", role="cube")
            yield Figure(
                f"versions-{place}", f"{words('figure.versions')} ({chart.y_title})", replace(chart, series=(first, second), filled=False)
            )


def heat_figure(item: SessionFacts, words: Labels) -> Figure:
    """Operator types by time, waits and hardware counters."""
    rows = item.operators[:_HEAT_ROWS]
    metrics = [metric for metric in METRICS if any(metric in row.metrics for row in rows)]
    columns = (words("share"), words("metric.mean"), words("metric.wait"), *(words(f"metric.{metric}") for metric in metrics))
    cells = [_cells(row, rows, metrics) for row in rows]
    chart = HeatMap(tuple(row.name for row in rows), columns, tuple(tuple(heat for heat, _ in row) for row in cells),
                    tuple(tuple(text for _, text in row) for row in cells))  # fmt: skip
    return Figure("heat", words("figure.heat"), chart, words("figure.heat.caption"))


def _cells(row: OperatorFact, rows: tuple[OperatorFact, ...], metrics: list[str]) -> list[tuple[float | None, str]]:
    total, most = sum(item.total_ns for item in rows), max(item.total_ns for item in rows)
    longest = max(item.total_ns / item.count for item in rows)
    mean = row.total_ns / row.count
    cells: list[tuple[float | None, str]] = [(row.total_ns / most, percent(row.total_ns / total)), (mean / longest, duration(mean))]
    if row.wait_ns is None:
        cells.append((None, "–"))
    else:
        waiting = row.wait_ns / (row.wait_ns + row.total_ns)
        cells.append((waiting, percent(waiting)))
    for metric in metrics:
        value = row.metrics.get(metric)
        cells.append((None, "–") if value is None else (_badness(metric, value), percent(value)))
    return cells


def _badness(metric: str, value: float) -> float:
    """Loads that fill the pipe are the concern; every other ratio is one that should be high."""
    return min(max(value if "mte2" in metric else 1.0 - value, 0.0), 1.0)


def operator_table(item: SessionFacts, words: Labels) -> TableBlock:
    """Operator types by device time."""
    total = sum(row.total_ns for row in item.operators) or 1
    header = ["#", words("operator"), words("engine"), words("count"), words("total"), words("metric.mean"), words("share")]
    moved = any(row.hbm_bytes for row in item.operators)
    rows = []
    for place, row in enumerate(item.operators[:_HEAT_ROWS], start=1):
        cells = [
            str(place),
            _short(row.name),
            words(f"role.{row.role}"),
            f"{row.count:,}",
            duration(row.total_ns),
            duration(row.total_ns / row.count),
        ]
        cells += [percent(row.total_ns / total), *([amount(row.hbm_bytes or 0.0)] if moved else [])]
        rows.append(tuple(cells))
    header += [words("hbm")] if moved else []
    return TableBlock(tuple(header), tuple(rows), right=(0, 3, 4, 5, 6, 7))


def path_figure(drilldown: DrillDown, words: Labels) -> Figure:
    """The path map of a drill-down."""
    levels = tuple(dict.fromkeys(_levels(drilldown.root)))
    return Figure("path", f"{words('figure.path')}: {drilldown.target}", Tree(levels, (_path(drilldown.root),)))


def _levels(node: DrillNode) -> Iterator[str]:
    yield node.level
    for child in node.children:
        yield from _levels(child)


def _path(node: DrillNode) -> Node:
    figures = [duration(node.time_ns), *(f"{name} {value}" for name, value in list(node.metrics.items())[:2])]
    return Node(node.name, " · ".join(figures), "cube", node.share, tuple(_path(child) for child in node.children))
