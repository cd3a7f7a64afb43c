"""Plain-text renderer for terminals; aligns tables by display width, so that Chinese columns line up."""

from __future__ import annotations

import unicodedata

from kb.report.document import Block, Bullets, CodeBlock, Document, Heading, Note, Paragraph, Prose, TableBlock
from kb.report.labels import labels
from kb.report.wording import in_words

_MARK = {"simulated": "[simulated / 仿真]", "caution": "[!]", "capture": "[i]"}


class PlainRenderer:
    """``Renderer`` for Document; no control sequences, so pipes stay clean."""

    extension = "txt"
    binary = False

    def render(self, document: Document) -> str:
        """Text with a final newline."""
        words = labels(document.lang)
        return "\n".join(_printable(_block(plain)) for block in document.blocks for plain in in_words(block, words)) + "\n"


def _block(block: Block) -> str:
    match block:
        case Heading(level, text):
            line = "=" if level == 1 else "-"
            return f"\n{text}\n{line * width(text)}"
        case Paragraph(text):
            return text
        case Bullets(items):
            return "\n".join(f"  - {item}" for item in items)
        case TableBlock():
            return _table(block)
        case CodeBlock(text):
            return "\n".join(f"    {line}" for line in text.splitlines())
        case Note(kind, text):
            return f"{_MARK[kind]} {text}"
        case Prose(markdown):
            return markdown.strip()
        case _:
            raise TypeError(f"{type(block).__name__} was not put in words")


def _table(block: TableBlock) -> str:
    rows = [block.header, *block.rows]
    widths = [max(width(row[column]) for row in rows) for column in range(len(block.header))]
    lines = ["  ".join(_cell(cell, widths[index], right=index in block.right) for index, cell in enumerate(row)).rstrip() for row in rows]
    return "\n".join(f"  {line}" for line in lines)


def _cell(text: str, size: int, *, right: bool) -> str:
    padding = " " * (size - width(text))
    return padding + text if right else text + padding


def width(text: str) -> int:
    """Columns a terminal uses for ``text``: two for wide and full-width characters, none for combining ones."""
    return sum(0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _printable(text: str) -> str:
    """Control characters from data would drive the terminal; they are shown as their code."""
    return "".join(
        character if character in "\n\t" or not unicodedata.category(character).startswith("C") else f"\\x{ord(character):02x}"
        for character in text
    )
