"""PDF: pages for print, with bookmarks, page numbers and the record as an attached file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from importlib.util import find_spec
from typing import Any, Final

import msgspec

from kb import __version__
from kb.errors import KbError, install
from kb.report.archive import ATTACHMENT
from kb.report.bounds import bounded
from kb.report.document import Block, Document, Figure, FindingBlock, Fold, Heading, Prose, TableBlock
from kb.report.figures import Reliability
from kb.report.labels import labels
from kb.report.palette import palette
from kb.report.pdf.fonts import FALLBACKS, FAMILY, font_folder
from kb.report.pdf.prose import rich_blocks
from kb.report.svg.drawing import draw

_LONG_WORD: Final = re.compile(r"[^\s\u200b]{13,}")
_SEAM: Final = re.compile(r"(?<=[_/.,;:@=-])(?=\w)")
_BREAK: Final = "\u200b"
_ROWS: Final = 400
"""Rows of one table on paper; the attached record has them all."""


class PdfRenderer:
    """``Renderer`` for Document."""

    extension = "pdf"
    binary = True

    def render(self, document: Document) -> bytes:
        """The file. Raises KbError naming the extra when typst or the font is not installed."""
        fonts = font_folder()
        if fonts is None or not pdf_possible():
            raise pdf_absent()
        import typst

        files = {
            "main.typ": resources.files("kb.report.pdf").joinpath("report.typ").read_bytes(),
            "document.json": msgspec.json.encode(_data(bounded(document))),
            ATTACHMENT: document.record or b"{}",
        }
        # The stub of typst does not know the mapping of names to bytes that its function takes.
        made: bytes = typst.compile(files, font_paths=[str(fonts)], ignore_system_fonts=True)  # type: ignore[call-overload]
        return made


def pdf_possible() -> bool:
    """Whether the extra is installed."""
    return find_spec("typst") is not None and font_folder() is not None


def pdf_absent() -> KbError:
    """What is missing, and how to get it."""
    return KbError(
        "PDF needs the extra `pdf`", allowed="HTML, Markdown and JSON work without it",
        do=f"{install('pdf')}; or write report.html and print it",
    )  # fmt: skip


def _data(document: Document) -> dict[str, Any]:
    words = labels(document.lang)
    return {
        "title": document.title or words("report"),
        "lang": document.lang,
        "fonts": [FAMILY, *FALLBACKS],
        "palette": palette(),
        "footer": f"diagnosis-recipes {__version__}",
        "attached": bool(document.record),
        "attachment": words("footer").format(version=__version__),
        "blocks": [made for block in document.blocks for made in _blocks(block)],
    }


def _blocks(block: Block) -> Iterator[Any]:
    match block:
        case Figure():
            yield _picture(block)
        case TableBlock():
            yield _table(block)
        case FindingBlock():
            yield {**_plain(block), "evidence": _table(block.evidence)}
        case Prose(markdown):
            yield from rich_blocks(markdown)
        case Fold(title, blocks):
            yield _plain(Heading(3, title))
            for inner in blocks:
                yield from _blocks(inner)
        case _:
            yield _plain(block)


def _plain(block: Block) -> Any:
    return msgspec.to_builtins(block)


def _picture(block: Figure) -> dict[str, Any]:
    return {
        "type": "Figure",
        "title": block.title,
        "caption": block.caption,
        "alternative": block.alternative or block.title,
        "svg": draw(block.chart, block.title),
        "width": 0.5 if isinstance(block.chart, Reliability) else 1.0,
    }


def _table(block: TableBlock) -> dict[str, Any]:
    """A table with relative column widths (0 = as wide as its numbers); long words may break at their seams."""
    rows = [[_breakable(cell) for cell in row] for row in block.rows[:_ROWS]]
    widths = []
    for place, head in enumerate(block.header):
        longest = max([len(head), *(len(row[place]) for row in block.rows[:_ROWS])])
        widths.append(0 if place in block.right or longest <= 12 else max(min(longest, 44), 20))
    if not any(widths):
        widths[0] = 1
    return {"type": "TableBlock", "header": list(block.header), "rows": rows, "right": list(block.right), "widths": widths}


def _breakable(text: str) -> str:
    return _LONG_WORD.sub(lambda word: _SEAM.sub(_BREAK, word[0]), text)
