"""Cells of a CSV file by column, read in chunks so that memory follows the columns, not the text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from kb.errors import MalformedInputError
from kb.files import open_regular
from kb.session.session import Array

LONGEST_LINE: Final = 4 << 20
"""Bytes of one physical line, and of one record of several lines; more is not a profiler's CSV."""
LONGEST_FIELD: Final = 1 << 20
"""Characters of one quoted cell: shapes of a fused optimiser step reach tens of thousands."""
CHUNK: Final = 2 << 20
"""Bytes read at once: some thousand rows, so that array arithmetic outweighs its calls."""
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_BOM: Final = b"\xef\xbb\xbf"
_COMMA: Final = ord(",")
_BREAK: Final = ord("\n")
_RETURN: Final = ord("\r")
_QUOTE: Final = ord('"')


@dataclass(frozen=True, slots=True)
class Spans:
    """Cells as places in ``data``: column ``i`` of row ``r`` is ``data[starts[r, i]:ends[r, i]]``, quotes still around it.
    ``text`` is the same where every character is one byte, so that the places hold there too."""

    data: bytes
    starts: Array
    ends: Array
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows of the header's width, as ``spans`` or, where quoting is unusual, as text ``columns``; the 1-based
    ``lines`` each row starts on, and how many rows had another width."""

    lines: Array
    ragged: int
    spans: Spans | None = None
    columns: Sequence[Sequence[str]] = ()

    def cells(self, column: int) -> list[str]:
        """The text of one column, quotes removed."""
        if self.spans is None:
            return list(self.columns[column])
        bounds = zip(self.spans.starts[:, column].tolist(), self.spans.ends[:, column].tolist(), strict=True)
        return [unquoted(self.spans.data[start:end]) for start, end in bounds]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole records, valid UTF-8; ``first`` is the line they start on, ``unclosed`` says that the file ends inside a quote."""

    data: bytes
    first: int
    unclosed: bool = False


def unquoted(cell: bytes) -> str:
    """A cell as the csv module would give it."""
    text = cell.decode()
    return text[1:-1].replace('""', '"') if len(text) >= 2 and text[0] == text[-1] == '"' else text


@contextmanager
def opened(path: Path, label: str) -> Iterator[BinaryIO]:
    """The file for reading. Raises MalformedInputError when the system refuses (a folder, no permission, ..)."""
    try:
        with open_regular(path) as handle:
            yield handle
    except OSError as error:
        raise MalformedInputError(f"{label}:1: cannot be read: {error.strerror}", do="check the file and its permissions") from error


def read_bounded(path: Path, label: str, limit: int) -> bytes:
    """The whole of a small file. Raises MalformedInputError when it is larger than ``limit`` bytes or unreadable."""
    with opened(path, label) as handle:
        data = handle.read(limit + 1)
    if len(data) > limit:
        raise MalformedInputError(f"{label}:1: larger than {limit} bytes", do="this is not the file the profiler writes; export again")
    return data


def ends_inside_a_line(handle: BinaryIO) -> bool:
    """Whether the last line lacks its line break, as in a file that was cut. Rewinds ``handle``."""
    size = handle.seek(0, 2)
    handle.seek(max(size - 1, 0))
    last = handle.read(1)
    handle.seek(0)
    return last not in (b"", b"\n")


def read_header(handle: BinaryIO, label: str) -> tuple[tuple[str, ...], int]:
    """The cells of the first line that holds anything, and the number of the line after it.

    Raises MalformedInputError for an empty file or one that is not UTF-8 text.
    """
    number = 0
    while raw := handle.readline(LONGEST_LINE):
        number += 1
        text = _decoded(_without_mark(raw, label) if number == 1 else raw, number, label)
        if text.strip():
            return _header_cells(text, f"{label}:{number}"), number + 1
    raise MalformedInputError(f"{label}:1: empty file", do="export again; the export did not finish")


def _header_cells(line: str, where: str) -> tuple[str, ...]:
    with _field_limit():
        try:
            return tuple(cell.strip() for cell in next(csv.reader([line])))
        except csv.Error as error:
            raise MalformedInputError(f"{where}: {error}", do="export again; the file was cut or edited") from error


def chunks(handle: BinaryIO, label: str, first: int) -> Iterator[Chunk]:
    """The rest of the file, whole records at a time. Raises MalformedInputError naming the line."""
    while data := handle.read(CHUNK):
        if not data.endswith(b"\n"):
            data += _line(handle, label, first + _count(data, _BREAK))
        while _count(data, _QUOTE) % 2 and (more := _line(handle, label, first + _count(data, _BREAK))):
            data += more
            if len(data) > CHUNK + 2 * LONGEST_LINE:
                raise MalformedInputError(f"{label}:{first}: a quote after this line is never closed", do="export again")
        _decoded(data, first, label)
        yield Chunk(data, first, bool(_count(data, _QUOTE) % 2))
        first += _count(data, _BREAK)


def _count(data: bytes, code: int) -> int:
    # bytes.count looks for one occurrence after the other, which is slow where there are many.
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == code))


def block(chunk: Chunk, width: int, label: str) -> Block:
    """The rows of a chunk that have ``width`` cells. Blank lines are skipped, not counted. Raises MalformedInputError."""
    found = None if chunk.unclosed else _spans(chunk.data if chunk.data.endswith(b"\n") else chunk.data + b"\n", chunk.first, width)
    if found is None:
        return _quoted_block(chunk, width, label)
    spans = found.spans
    if spans is not None and len(found.lines) and int((spans.ends - spans.starts).max()) > LONGEST_FIELD:
        row = int((spans.ends - spans.starts).max(axis=1).argmax())
        raise MalformedInputError(f"{label}:{found.lines[row]}: a cell of more than {LONGEST_FIELD} bytes", do="export again")
    return found


def _spans(data: bytes, first: int, width: int) -> Block | None:
    """Rows found by array arithmetic; None where a quote stands inside a cell, which only the csv module reads."""
    codes = np.frombuffer(data, np.uint8)
    marks = np.flatnonzero((codes == _COMMA) | (codes == _BREAK) | (codes == _QUOTE))
    kinds = codes[marks]
    quotes = kinds == _QUOTE
    breaks = marks[kinds == _BREAK]
    if quotes.any():
        inside = (np.cumsum(quotes, dtype=np.int32) & 1) == 1
        if not _quotes_enclose_cells(codes, marks[quotes]):
            return None
        keep = ~inside & ~quotes
        marks, kinds = marks[keep], kinds[keep]
    ends_line = kinds == _BREAK
    rows = len(marks) // width
    if len(marks) == rows * width and int(ends_line.sum()) == rows and bool(ends_line[width - 1 :: width].all()):
        ends, ragged = marks.reshape(rows, width), 0
    else:
        ends, ragged = _whole_rows(data, marks, ends_line, width)
    starts = np.empty_like(ends)
    starts[:, 1:] = ends[:, :-1] + 1
    starts[:, 0] = _line_starts(marks, ends_line, ends[:, -1])
    lines = first + np.searchsorted(breaks, starts[:, 0])
    text = data.decode() if data.isascii() else None
    last = ends[:, -1].copy()
    last -= (codes[np.maximum(last - 1, 0)] == _RETURN) & (last > starts[:, -1])
    ends = np.column_stack([ends[:, :-1], last])
    if width == 1:
        filled = ends[:, 0] > starts[:, 0]
        return Block(lines[filled].astype(np.int32), ragged, Spans(data, starts[filled], ends[filled], text))
    return Block(lines.astype(np.int32), ragged, Spans(data, starts, ends, text))


def _line_starts(marks: Array, ends_line: Array, row_ends: Array) -> Array:
    """Where the line begins that ends at each of ``row_ends``."""
    line_ends = marks[ends_line]
    place = np.searchsorted(line_ends, row_ends)
    return np.where(place > 0, line_ends[np.maximum(place - 1, 0)] + 1, 0)


def _whole_rows(data: bytes, marks: Array, ends_line: Array, width: int) -> tuple[Array, int]:
    """Cell ends of the lines that have ``width`` cells, and how many other lines hold anything."""
    closing = np.flatnonzero(ends_line)
    opening = np.concatenate([[-1], closing[:-1]]) + 1
    cells = closing - opening + 1
    whole = cells == width
    line_ends = marks[closing]
    line_starts = np.concatenate([[0], line_ends[:-1] + 1]) if len(line_ends) else line_ends
    ragged = sum(1 for index in np.flatnonzero(~whole).tolist() if data[line_starts[index] : line_ends[index]].strip())
    return marks[opening[whole][:, None] + np.arange(width)], ragged


def _quotes_enclose_cells(codes: Array, quotes: Array) -> bool:
    """Whether every opening quote begins a cell and every closing one ends it, doubled quotes aside."""
    opening, closing = quotes[::2], quotes[1::2]
    before = codes[np.maximum(opening - 1, 0)]
    after = codes[np.minimum(closing + 1, len(codes) - 1)]
    begins = (opening == 0) | (before == _COMMA) | (before == _BREAK) | (before == _QUOTE)
    ends = (after == _COMMA) | (after == _BREAK) | (after == _QUOTE) | (after == _RETURN)
    return bool(begins.all() and ends.all())


def _quoted_block(chunk: Chunk, width: int, label: str) -> Block:
    rows: list[list[str]] = []
    lines: list[int] = []
    ragged = 0
    reader = csv.reader(io.StringIO(chunk.data.decode(), newline=""))
    start = chunk.first
    with _field_limit():
        try:
            for row in reader:
                if len(row) == width:
                    rows.append(row)
                    lines.append(start)
                elif row:
                    ragged += 1
                last, start = start, chunk.first + reader.line_num
        except csv.Error as error:
            raise MalformedInputError(f"{label}:{start}: {error}", do="export again; the file was cut or edited") from error
    if chunk.unclosed:
        ragged += _drop_unclosed(rows, lines, last, start, label)
    return Block(np.array(lines, np.int32), ragged, None, list(zip(*rows, strict=True)) or [()] * width)


def _drop_unclosed(rows: list[list[str]], lines: list[int], last: int, end: int, label: str) -> int:
    # A file cut inside a quoted cell loses its last row; a stray quote further up would swallow rows, which is worse.
    if end - last > 1:
        raise MalformedInputError(f"{label}:{last}: a quote is never closed", do="export again; the file was cut or edited")
    if not lines or lines[-1] != last:
        return 0
    rows.pop()
    lines.pop()
    return 1


def _line(handle: BinaryIO, label: str, number: int) -> bytes:
    raw = handle.readline(LONGEST_LINE)
    if len(raw) == LONGEST_LINE:
        raise MalformedInputError(f"{label}:{number}: line of more than {LONGEST_LINE} bytes", do="export again")
    return raw


def _decoded(data: bytes, first: int, label: str) -> str:
    nul = data.find(b"\0")
    if nul >= 0:
        line = first + data.count(b"\n", 0, nul)
        raise MalformedInputError(f"{label}:{line}: NUL byte", allowed="UTF-8 text", do="export again; the file is damaged")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = first + data.count(b"\n", 0, error.start)
        raise MalformedInputError(f"{label}:{line}: not UTF-8: {error.reason}", do="save the file as UTF-8 or export again") from error


def _without_mark(raw: bytes, label: str) -> bytes:
    if raw.startswith(_UTF16):
        raise MalformedInputError(f"{label}:1: the file is UTF-16", allowed="UTF-8", do="save it as UTF-8 or export again")
    return raw.removeprefix(_BOM)


@contextmanager
def _field_limit() -> Iterator[None]:
    # csv keeps this limit for the whole process: set only while we read, put back after.
    before = csv.field_size_limit(LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)
