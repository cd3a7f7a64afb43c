"""Markdown renderer."""

from __future__ import annotations

from kb.report.document import Block, Bullets, CodeBlock, Document, Heading, Note, Paragraph, Prose, TableBlock
from kb.report.labels import labels
from kb.report.wording import in_words

_MARK = {"simulated": "⚙", "caution": "⚠", "capture": "ℹ"}


class MarkdownRenderer:
    """``Renderer`` for Document; text comes out with a final newline."""

    extension = "md"
    binary = False

    def render(self, document: Document) -> str:
        """CommonMark with pipe tables."""
        words = labels(document.lang)
        return "\n\n".join(_block(plain) for block in document.blocks for plain in in_words(block, words)) + "\n"


def _block(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {_inline(text)}"
        case Paragraph(text):
            return _inline(text)
        case Bullets(items):
            return "\n".join(f"- {_inline(item)}" for item in items)
        case TableBlock():
            return _table(block)
        case CodeBlock(text, language):
            fence = "`" * max(3, _longest_run(text) + 1)
            return f"{fence}{language}\n{text}\n{fence}"
        case Note(kind, text):
            return f"> {_MARK[kind]} {_inline(text)}"
        case Prose(markdown):
            return markdown.strip()
        case _:
            raise TypeError(f"{type(block).__name__} was not put in words")


def _table(block: TableBlock) -> str:
    marks = ["---:" if index in block.right else "---" for index in range(len(block.header))]
    lines = [_row(block.header), _row(tuple(marks)), *(_row(tuple(_inline(cell) for cell in row)) for row in block.rows)]
    return "\n".join(lines)


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _inline(text: str) -> str:
    """Text from data must not become markup: angle brackets and line breaks lose their meaning."""
    return " ".join(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").split())


def _longest_run(text: str) -> int:
    longest = current = 0
    for character in text:
        current = current + 1 if character == "`" else 0
        longest = max(longest, current)
    return longest
