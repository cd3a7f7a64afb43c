"""A report as data: a list of blocks that any renderer can draw."""

from __future__ import annotations

from typing import Literal

import msgspec

from kb.domain.text import Lang
from kb.report.figures import Chart, Role


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


class Tile(msgspec.Struct, frozen=True):
    """One figure with its name; ``note`` puts it in proportion."""

    label: str
    value: str
    note: str = ""


Tone = Literal["good", "warn", "bad", "unknown"]


class Headline(msgspec.Struct, frozen=True, tag=True):
    """The verdict: one sentence, what follows from it, and the few figures that carry it."""

    kicker: str
    text: str
    lead: str
    tone: Tone
    tiles: tuple[Tile, ...]


class Remedy(msgspec.Struct, frozen=True):
    """An answer to a finding; ``tier`` is the provenance of its expected gain, empty when none is known."""

    name: str
    code: str
    expected: str = ""
    tier: str = ""


class FindingBlock(msgspec.Struct, frozen=True, tag=True):
    """One finding with its proof. ``place`` says whose it is (rank, cluster), ``share`` is its share of the step;
    ``open`` whether a page shows its evidence unasked."""

    priority: str
    title: str
    code: str
    place: str
    message: str
    share: float
    tiles: tuple[Tile, ...]
    evidence_title: str
    evidence: TableBlock
    remedies_title: str
    remedies: tuple[Remedy, ...]
    remarks: tuple[str, ...] = ()
    open: bool = True


class Figure(msgspec.Struct, frozen=True, tag=True):
    """A picture. ``name`` is unique in the document; ``caption`` says what to see, ``alternative`` is its content in words."""

    name: str
    title: str
    chart: Chart
    caption: str = ""
    alternative: str = ""


class Legend(msgspec.Struct, frozen=True, tag=True):
    """The colours of the pictures that follow."""

    entries: tuple[tuple[Role, str], ...]


class Fold(msgspec.Struct, frozen=True, tag=True):
    """Detail behind a title; open on paper."""

    title: str
    blocks: tuple[Block, ...]


Block = Heading | Paragraph | Bullets | TableBlock | CodeBlock | Note | Prose | Headline | FindingBlock | Figure | Legend | Fold


class Document(msgspec.Struct, frozen=True):
    """Blocks in reading order. ``title`` names the file's content; ``record`` is the JSON of the archive a file may carry."""

    blocks: tuple[Block, ...]
    lang: Lang = "en"
    title: str = ""
    record: bytes = b""
