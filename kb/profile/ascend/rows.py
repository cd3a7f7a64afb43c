"""Cells of a CSV file by column, read in chunks so that memory follows the columns, not the text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from kb.errors import MalformedInputError

LONGEST_LINE: Final = 4 << 20
"""Bytes of one physical line, and of one record of several lines; more is not a profiler's CSV."""
LONGEST_FIELD: Final = 1 << 20
"""Characters of one quoted cell: shapes of a fused optimiser step reach tens of thousands."""
CHUNK: Final = 1 << 17
"""Bytes read at once: small enough that the cells of a chunk stay in the processor's cache (1.5 x faster than 1 MiB)."""
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_BOM: Final = b"\xef\xbb\xbf"
_SEPARATORS: Final = (",", "\n")
_HIDDEN_COMMA: Final = "\x1f"


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows of the header's width: their cells ``columns`` by column, the 1-based line each row starts on,
    and how many rows had another width."""

    columns: Sequence[Sequence[str]]
    lines: Sequence[int]
    ragged: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole records as text; ``first`` is the line they start on, ``unclosed`` says that the file ends inside a quote."""

    text: str
    first: int
    unclosed: bool = False


@contextmanager
def opened(path: Path, label: str) -> Iterator[BinaryIO]:
    """The file for reading. Raises MalformedInputError when the system refuses (a folder, no permission, ..)."""
    try:
        with path.open("rb") as handle:
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
            data += _line(handle, label, first + data.count(b"\n"))
        while data.count(b'"') % 2 and (more := _line(handle, label, first + data.count(b"\n"))):
            data += more
            if len(data) > CHUNK + 2 * LONGEST_LINE:
                raise MalformedInputError(f"{label}:{first}: a quote after this line is never closed", do="export again")
        yield Chunk(_decoded(data, first, label), first, bool(data.count(b'"') % 2))
        first += data.count(b"\n")


def block(chunk: Chunk, width: int, label: str) -> Block:
    """The rows of a chunk that have ``width`` cells. Blank lines are skipped, not counted."""
    text = chunk.text.replace("\r\n", "\n")
    quotes = '"' in text
    masked = _masked(text) if quotes else text
    if masked is None or chunk.unclosed:
        return _quoted_block(chunk, width, label)
    plain = _plain_block(masked if masked.endswith("\n") else masked + "\n", chunk.first, width)
    return Block([_unmasked(cells) for cells in plain.columns], plain.lines, plain.ragged) if quotes else plain


def _plain_block(text: str, first: int, width: int) -> Block:
    # Where a comma is always a separator, one split of everything is far cheaper than a row at a time.
    if _is_regular(text, width):
        flat = text.replace("\n", ",").split(",")
        return Block([flat[index:-1:width] for index in range(width)], range(first, first + len(flat) // width), 0)
    lines = text.split("\n")
    whole = [index for index, line in enumerate(lines) if line.count(",") == width - 1]
    ragged = sum(1 for line in lines if line.strip()) - len(whole)
    flat = ",".join(lines[index] for index in whole).split(",") if whole else []
    return Block([flat[index::width] for index in range(width)], [first + index for index in whole], ragged)


def _is_regular(text: str, width: int) -> bool:
    codes = np.frombuffer(text.encode(), dtype=np.uint8)
    marks = codes[(codes == ord(",")) | (codes == ord("\n"))]
    breaks = marks[width - 1 :: width] == ord("\n")
    return len(marks) % width == 0 and bool(np.all(breaks)) and int((marks == ord("\n")).sum()) == len(breaks)


def _masked(text: str) -> str | None:
    """``text`` with the commas inside triple-quoted cells hidden, as the csv module would unquote them; None for any
    other use of quotes."""
    segments = text.split('"""')
    inside, outside = segments[1::2], segments[::2]
    hidden = "\n".join(inside)
    separated = all(map(str.endswith, outside[:-1], repeat(_SEPARATORS))) and all(map(str.startswith, outside[1:], repeat(_SEPARATORS)))
    if len(segments) % 2 == 0 or hidden.count("\n") != len(inside) - 1 or not separated:
        return None
    if text.count('"') != 3 * (len(segments) - 1) or _HIDDEN_COMMA in text:
        return None
    segments[1::2] = hidden.replace(",", _HIDDEN_COMMA).split("\n")
    return '"'.join(segments)


def _unmasked(cells: Sequence[str]) -> Sequence[str]:
    joined = "\n".join(cells)
    return joined.replace(_HIDDEN_COMMA, ",").split("\n") if _HIDDEN_COMMA in joined else cells


def _quoted_block(chunk: Chunk, width: int, label: str) -> Block:
    rows: list[list[str]] = []
    lines: list[int] = []
    ragged = 0
    reader = csv.reader(io.StringIO(chunk.text, newline=""))
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
    return Block(list(zip(*rows, strict=True)) or [()] * width, lines, ragged)


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
