"""Values of a session in the words of an Ascend text export."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from typing import Final

from kb.session.session import Session, Table

NONE: Final = "N/A"


def microseconds(ns: int) -> str:
    """ns as the exporter writes µs: three decimals; N/A for a missing one."""
    return NONE if ns < 0 else f"{ns // 1000}.{ns % 1000:03d}"


def stamp(ns: int) -> str:
    """A timestamp, with the tab that keeps spreadsheets from rounding it."""
    return microseconds(ns) + "\t"


def real(value: float) -> str:
    """The shortest text that reads back as the same float; N/A for a missing one."""
    return NONE if math.isnan(value) else repr(value)


def whole(value: int) -> str:
    """An id or count; N/A for a missing one."""
    return NONE if value < 0 else str(value)


def texts(session: Session, table: Table, column: str) -> list[str]:
    """A text column; N/A where missing or not captured."""
    if column not in table:
        return [NONE] * len(table)
    return [session.strings[code] if code >= 0 else NONE for code in table[column].tolist()]


def times(table: Table, column: str) -> list[str]:
    """Durations in µs; N/A where missing or not captured."""
    return [microseconds(value) for value in table[column].tolist()] if column in table else [NONE] * len(table)


def numbers(table: Table, column: str) -> list[str]:
    """Ids and counts; N/A where missing or not captured."""
    return [whole(value) for value in table[column].tolist()] if column in table else [NONE] * len(table)


def reals(table: Table, column: str, scale: float = 1.0) -> list[str]:
    """Floats divided by ``scale``; N/A where missing or not captured."""
    return [real(value / scale if scale != 1 else value) for value in table[column].tolist()] if column in table else [NONE] * len(table)


def quoted(cells: Iterable[str]) -> list[str]:
    """Shapes in the second pair of quotes the exporter writes."""
    return [cell if cell == NONE else f'"{cell}"' for cell in cells]


def csv_bytes(header: Sequence[str], columns: Sequence[Sequence[str]]) -> bytes:
    """A CSV of columns."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(zip(*columns, strict=True))
    return buffer.getvalue().encode()
