"""Pictures and cards in words: what text formats show, and what a reader without eyes on the picture gets."""

from __future__ import annotations

from collections.abc import Iterator

from kb.report.document import Block, Bullets, Figure, FindingBlock, Fold, Heading, Headline, Legend, Paragraph, TableBlock
from kb.report.figures import (
    BeforeAfter,
    Breakdown,
    Chart,
    Curves,
    FlameGraph,
    Frame,
    HeatMap,
    Node,
    Reliability,
    Roofline,
    Timeline,
    Tree,
)
from kb.report.labels import Labels
from kb.report.numbers import duration, percent

_BAR = 24
_FRAMES = 12
_DOTS = 10


def in_words(block: Block, words: Labels) -> tuple[Block, ...]:
    """``block`` as blocks a text format can show; a plain block is returned as it is."""
    match block:
        case Headline():
            return tuple(_headline(block))
        case FindingBlock():
            return tuple(_finding(block))
        case Figure():
            note = (Paragraph(block.caption),) if block.caption else ()
            return (Heading(3, block.title), *note, *chart_in_words(block.chart, words))
        case Fold(title, blocks):
            return (Heading(3, title), *(plain for inner in blocks for plain in in_words(inner, words)))
        case Legend():
            return ()
    return (block,)


def _headline(block: Headline) -> Iterator[Block]:
    yield Heading(2, f"{block.kicker}: {block.text}")
    yield Paragraph(block.lead)
    yield Bullets(tuple(f"{tile.label}: {tile.value}" + (f" ({tile.note})" if tile.note else "") for tile in block.tiles))


def _finding(block: FindingBlock) -> Iterator[Block]:
    yield Heading(3, f"{block.priority} · {block.title} ({block.code})")
    yield Paragraph(block.message)
    tiles = [f"{tile.label}: {tile.value}" + (f" ({tile.note})" if tile.note else "") for tile in block.tiles]
    remedies = [" · ".join(filter(None, (item.name, item.code, item.expected, item.tier))) for item in block.remedies]
    yield Bullets((block.place, *tiles))
    if remedies:
        yield Paragraph(f"{block.remedies_title}:")
        yield Bullets(tuple(remedies))
    if block.remarks:
        yield Paragraph(" ".join(block.remarks))
    yield block.evidence


def chart_in_words(chart: Chart, words: Labels) -> tuple[Block, ...]:
    """The figures of a chart as tables or nested statements."""
    match chart:
        case Breakdown():
            return tuple(_breakdown(chart, words))
        case FlameGraph(root):
            return (_flame(root, words),)
        case Timeline():
            return (_timeline(chart, words),)
        case HeatMap(rows, columns, _, texts):
            return (
                TableBlock(
                    ("", *columns), tuple((row, *cells) for row, cells in zip(rows, texts, strict=True)), _after_first(len(columns))
                ),
            )
        case Curves():
            return (_curves(chart, words),)
        case Tree(_, roots):
            return (Bullets(tuple(line for root in roots for line in _branch(root, 0))),)
        case Roofline():
            return (_roofline(chart, words),)
        case BeforeAfter():
            pairs = tuple((pair.name, duration(pair.before_ns), duration(pair.after_ns)) for pair in chart.pairs)
            return (TableBlock(("", chart.before, chart.after), pairs, right=(1, 2)),)
        case Reliability():
            return (_reliability(chart, words),)


def _after_first(count: int) -> tuple[int, ...]:
    return tuple(range(1, count + 1))


def _breakdown(chart: Breakdown, words: Labels) -> Iterator[Block]:
    for bar in chart.bars:
        rows = []
        for segment in bar.segments:
            share = segment.value_ns / bar.total_ns if bar.total_ns else 0.0
            rows.append((segment.name, duration(segment.value_ns), percent(share), "█" * max(1, round(_BAR * share))))
        total = sum(segment.value_ns for segment in bar.segments)
        rows.append(("=", duration(total), percent(total / bar.total_ns if bar.total_ns else 0.0), ""))
        yield TableBlock((bar.name, words("time"), words("share"), ""), tuple(rows), right=(1, 2))


def _flame(root: Frame, words: Labels) -> TableBlock:
    flat = sorted(_leaves(root, ""), key=lambda item: -item[1].value_ns)[:_FRAMES]
    rows = tuple(
        (name, duration(frame.value_ns), percent(frame.value_ns / (root.value_ns or 1)), f"{frame.count:,}") for name, frame in flat
    )
    return TableBlock((words("frame"), words("total"), words("share"), words("count")), rows, right=(1, 2, 3))


def _leaves(frame: Frame, path: str) -> Iterator[tuple[str, Frame]]:
    for child in frame.children:
        name = f"{path} → {child.name}" if path else child.name
        if child.children:
            yield from _leaves(child, name)
        else:
            yield name, child


def _timeline(chart: Timeline, words: Labels) -> TableBlock:
    rows = tuple(
        (lane.name, f"{sum(lane.counts):,}", duration(sum(lane.durations)), percent(sum(lane.durations) / (chart.window_ns or 1)))
        for lane in chart.lanes
    )
    return TableBlock((words("stream"), words("tasks"), words("busy"), words("share")), rows, right=(1, 2, 3))


def _curves(chart: Curves, words: Labels) -> TableBlock:
    rows = tuple((line.name, f"{min(line.y):,.4g}", f"{max(line.y):,.6g}") for line in chart.series if line.y)
    return TableBlock((f"{words('series')} [{chart.y_title}]", words("lowest"), words("highest")), rows, right=(1, 2))


def _branch(node: Node, depth: int) -> Iterator[str]:
    mark = "→ " * depth
    yield f"{mark}{node.name}" + (f": {node.detail}" if node.detail else "")
    for child in node.children:
        yield from _branch(child, depth + 1)


def _roofline(chart: Roofline, words: Labels) -> TableBlock:
    rows = []
    for dot in chart.dots[:_DOTS]:
        ceiling = min(chart.peak_flops, dot.intensity * chart.bandwidth)
        rows.append((dot.name, f"{dot.intensity:.4g}", f"{dot.flops / 1e12:.1f}", percent(dot.flops / ceiling), percent(dot.weight)))
    header = (words("operator"), words("intensity"), words("reached"), words("ceiling"), words("share"))
    return TableBlock(header, tuple(rows), right=(1, 2, 3, 4))


def _reliability(chart: Reliability, words: Labels) -> TableBlock:
    rows = tuple((percent(item.predicted), percent(item.observed), str(item.count)) for item in chart.bins)
    return TableBlock((words("predicted"), words("came_true"), words("count")), (*rows, ("ECE", percent(chart.error), "")), right=(0, 1, 2))
