"""Values of a session in the words of an Ascend text export."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from kb.session.session import Array, Session, Table

NONE: Final = "N/A"
_NEIGHBOURS: Final = 4
"""Floats on each side that are tried."""


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


def written_as(values: Array, back: Callable[[Array], Array], first: Array) -> Array:
    """For each value the float near ``first`` that ``back`` turns into it, where one of its neighbours does; else ``first``."""
    best, open_still = first.copy(), (back(first) != values) & ~np.isnan(values)
    for way in (np.inf, -np.inf):
        step = first
        for _ in range(_NEIGHBOURS):
            if not open_still.any():
                return best
            step = np.nextafter(step, way)
            hit = open_still & (back(step) == values)
            best = np.where(hit, step, best)
            open_still &= ~hit
    return best


def percent_of(ratios: Array) -> Array:
    """Percent that divides back to the same ratios."""
    return written_as(ratios, lambda written: written / 100, ratios * 100)
