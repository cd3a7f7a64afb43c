"""An author's Markdown as rich blocks: runs of text with their marks, nothing else survives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

_TOP = 3
"""Level of an author's first heading: the page owns levels 1 and 2."""
_SAFE = ("http://", "https://", "mailto:")

Run = dict[str, Any]


def rich_blocks(markdown: str) -> list[dict[str, Any]]:
    """Blocks of CommonMark and tables: headings, paragraphs, flat lists, tables and code, in order. Raw HTML stays text."""
    tokens = MarkdownIt("commonmark", {"html": False}).enable("table").parse(markdown)
    blocks: list[dict[str, Any]] = []
    place = 0
    while place < len(tokens):
        place = _read(tokens, place, blocks)
    return blocks


def _read(tokens: Sequence[Token], place: int, blocks: list[dict[str, Any]]) -> int:
    """Read one block that begins at ``place``; returns where the next begins."""
    token = tokens[place]
    if token.type == "heading_open":
        blocks.append({"type": "RichHeading", "level": int(token.tag[1:]) + _TOP - 1, "runs": _runs(tokens[place + 1])})
    elif token.type == "paragraph_open":
        blocks.append({"type": "RichParagraph", "runs": _runs(tokens[place + 1])})
    elif token.type in ("fence", "code_block"):
        blocks.append({"type": "CodeBlock", "text": token.content.rstrip("\n")})
    elif token.type in ("bullet_list_open", "ordered_list_open"):
        end = _closing(tokens, place)
        items = [_runs(inner) for inner in tokens[place:end] if inner.type == "inline"]
        blocks.append({"type": "RichBullets", "items": items})
        return end + 1
    elif token.type == "table_open":
        end = _closing(tokens, place)
        blocks.append(_table(tokens[place:end]))
        return end + 1
    return place + 1


def _closing(tokens: Sequence[Token], place: int) -> int:
    closing = tokens[place].type.replace("_open", "_close")
    return next(at for at in range(place + 1, len(tokens)) if tokens[at].type == closing and tokens[at].level == tokens[place].level)


def _table(tokens: Sequence[Token]) -> dict[str, Any]:
    rows: list[list[list[Run]]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(_runs(token))
    header = ["".join(run["text"] for run in cell) for cell in rows[0]]
    return {"type": "RichTable", "header": header, "rows": rows[1:], "right": [], "widths": [1] * len(header)}


def _runs(inline: Token) -> list[Run]:
    return list(_marked(inline.children or []))


def _marked(children: Sequence[Token]) -> Iterator[Run]:
    strong = emphasis = 0
    address = ""
    for child in children:
        if child.type in ("strong_open", "strong_close"):
            strong += child.nesting
        elif child.type in ("em_open", "em_close"):
            emphasis += child.nesting
        elif child.type == "link_open":
            target = str(child.attrs.get("href", ""))
            address = target if target.startswith(_SAFE) else ""
        elif child.type == "link_close":
            address = ""
        elif child.type == "image":
            yield _run(f"[{child.content}: {child.attrs.get('src', '')}]", strong, emphasis, "", code=False)
        elif child.type in ("softbreak", "hardbreak"):
            yield _run(" ", 0, 0, "", code=False)
        elif child.content:
            yield _run(child.content, strong, emphasis, address, code=child.type == "code_inline")


def _run(text: str, strong: int, emphasis: int, address: str, *, code: bool) -> Run:
    return {"text": text, "strong": strong > 0, "emphasis": emphasis > 0, "address": address, "code": code}
