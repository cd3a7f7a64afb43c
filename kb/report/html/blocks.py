"""Blocks as HTML elements. Every text passes ``said``: escaped, and isolated from its surroundings' writing direction."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import msgspec

from kb.report.archive import script_safe
from kb.report.document import (
    Block,
    Bullets,
    CodeBlock,
    Figure,
    FindingBlock,
    Fold,
    Heading,
    Headline,
    Legend,
    Note,
    Paragraph,
    Prose,
    TableBlock,
    Tile,
)
from kb.report.figures import Curves, FlameGraph, Roofline, Timeline
from kb.report.html.prose import prose_html
from kb.report.labels import Labels
from kb.report.palette import palette
from kb.report.svg.canvas import clean
from kb.report.svg.drawing import draw
from kb.report.wording import chart_in_words

INTERACTIVE = (Timeline, FlameGraph, Curves, Roofline)


def said(text: str) -> str:
    """``text`` for an element's content or a quoted attribute."""
    return clean(text)


def block_html(block: Block, words: Labels) -> str:
    """The element of ``block``."""
    match block:
        case Headline():
            return _headline(block)
        case FindingBlock():
            return _finding(block)
        case Figure():
            return _figure(block, words)
        case Legend():
            return _legend(block)
        case Fold(title, blocks):
            inner = "".join(block_html(item, words) for item in blocks)
            return f'<details class="fold"><summary dir="auto">{said(title)}</summary>{inner}</details>'
        case _:
            return _simple(block)


def _simple(block: Heading | Paragraph | Bullets | TableBlock | CodeBlock | Note | Prose) -> str:
    match block:
        case Heading(level, text):
            return f'<h{level} dir="auto">{said(text)}</h{level}>'
        case Paragraph(text):
            return f'<p dir="auto">{said(text)}</p>'
        case Bullets(items):
            return "<ul>" + "".join(f'<li dir="auto">{said(item)}</li>' for item in items) + "</ul>"
        case TableBlock():
            return table_html(block)
        case CodeBlock(text):
            return f'<pre tabindex="0"><code>{said(text)}</code></pre>'
        case Note(kind, text):
            return f'<div class="note {kind}" role="note"><p dir="auto">{said(text)}</p></div>'
        case Prose(markdown):
            return f'<div class="prose" dir="auto">{prose_html(markdown)}</div>'


def table_html(block: TableBlock) -> str:
    """A table that scrolls sideways on a narrow page; cells of ``right`` columns hold numbers."""

    def row(cells: tuple[str, ...], cell: Callable[[int, str], str]) -> str:
        return "<tr>" + "".join(cell(place, text) for place, text in enumerate(cells)) + "</tr>"

    def head(place: int, text: str) -> str:
        return f'<th scope="col"{_side(place, block)}>{said(text)}</th>'

    def body(place: int, text: str) -> str:
        return f'<td dir="auto"{_side(place, block)}>{said(text)}</td>'

    rows = "".join(row(cells, body) for cells in block.rows)
    return f'<div class="scroll" tabindex="0"><table><thead>{row(block.header, head)}</thead><tbody>{rows}</tbody></table></div>'


def _side(place: int, block: TableBlock) -> str:
    return ' class="n"' if place in block.right else ""


def _headline(block: Headline) -> str:
    return (
        f'<section class="headline {block.tone}"><p class="kicker">{said(block.kicker)}</p>'
        f'<p class="verdict" dir="auto">{said(block.text)}</p>'
        f'<p class="lead" dir="auto">{said(block.lead)}</p>{_tiles(block.tiles)}</section>'
    )


def _tiles(tiles: tuple[Tile, ...]) -> str:
    if not tiles:
        return ""
    shown = (
        f'<div><dt dir="auto">{said(tile.label)}</dt><dd dir="auto">{said(tile.value)}'
        + (f"<small>{said(tile.note)}</small>" if tile.note else "")
        + "</dd></div>"
        for tile in tiles
    )
    return f'<dl class="tiles">{"".join(shown)}</dl>'


def _finding(block: FindingBlock) -> str:
    remedies = "".join(
        f'<li dir="auto"><strong>{said(item.name)}</strong> <code>{said(item.code)}</code>'
        + (f"<span>{said(item.expected)}</span>" if item.expected else "")
        + (f'<span class="tier">{said(item.tier)}</span>' if item.tier else "")
        + "</li>"
        for item in block.remedies
    )
    remarks = "".join(f'<p class="remark" dir="auto">{said(remark)}</p>' for remark in block.remarks)
    share = min(max(block.share, 0.0), 1.0)
    return (
        f'<article class="finding {said(block.priority.lower())}"><header><span class="badge">{said(block.priority)}</span>'
        f'<h3 dir="auto">{said(block.title)}</h3><code>{said(block.code)}</code></header>'
        f'<div class="meter" aria-hidden="true"><i style="width:{share:.1%}"></i></div>'
        f'<p class="place" dir="auto">{said(block.place)}</p><p class="message" dir="auto">{said(block.message)}</p>{_tiles(block.tiles)}'
        + (f'<h4>{said(block.remedies_title)}</h4><ul class="remedies">{remedies}</ul>' if remedies else "")
        + remarks
        + f"<details{' open' if block.open else ''}><summary>{said(block.evidence_title)}</summary>"
        + f"{table_html(block.evidence)}</details></article>"
    )


def _figure(block: Figure, words: Labels) -> str:
    picture = draw(block.chart, block.title)
    table = "".join(block_html(item, words) for item in chart_in_words(block.chart, words))
    name = escape(block.name, quote=True)
    data = ""
    if isinstance(block.chart, INTERACTIVE):
        encoded = script_safe(msgspec.json.encode(block.chart)).decode()
        data = f'<div class="live" hidden></div><script type="application/json" class="chart">{encoded}</script>'
    caption = f'<p class="caption" dir="auto">{said(block.caption)}</p>' if block.caption else ""
    return (
        f'<figure id="figure-{name}" class="{type(block.chart).__name__.lower()}">'
        f'<figcaption><h3 dir="auto">{said(block.title)}</h3>{caption}'
        f'</figcaption><div class="still scroll" tabindex="0">{picture}</div>{data}'
        f'<details class="data"><summary>{said(words("figure.table"))}</summary>{table}</details></figure>'
    )


def _legend(block: Legend) -> str:
    entries = (f'<li><i style="background:{palette()[role]}"></i>{said(name)}</li>' for role, name in block.entries)
    return f'<ul class="legend">{"".join(entries)}</ul>'
