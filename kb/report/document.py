"""A report as data: a list of blocks that any renderer can draw."""

from __future__ import annotations

from typing import Literal

import msgspec


class Heading(msgspec.Struct, frozen=True, tag=True):
    """A title; ``level`` 1 to 4."""

    level: int
    text: str


class Paragraph(msgspec.Struct, frozen=True, tag=True):
    """Running text."""

    text: str


class Bullets(msgspec.Struct, frozen=True, tag=True):
    """A list of short statements."""

    items: tuple[str, ...]


class TableBlock(msgspec.Struct, frozen=True, tag=True):
    """Rows of cells; ``right`` names the columns (0-based) that hold numbers."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...] = ()


class CodeBlock(msgspec.Struct, frozen=True, tag=True):
    """Commands or configuration, verbatim."""

    text: str
    language: str = ""


class Note(msgspec.Struct, frozen=True, tag=True):
    """Something the reader must not miss: a simulated run, a missing capture, a weak comparison."""

    kind: Literal["simulated", "caution", "capture"]
    text: str


class Prose(msgspec.Struct, frozen=True, tag=True):
    """Markdown written by an author (a record's body); already checked to be free of raw HTML."""

    markdown: str


Block = Heading | Paragraph | Bullets | TableBlock | CodeBlock | Note | Prose


class Document(msgspec.Struct, frozen=True):
    """Blocks in reading order."""

    blocks: tuple[Block, ...]
