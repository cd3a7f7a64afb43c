"""One cell of a profiler file to a value: exactly, strictly, and never through a float where time is meant.

Every parser takes the cell as the CSV holds it and raises ValueError saying what is wrong with it. Source of the
forms: torch_npu and msprof exports of CANN 7.0 to 8.3 (trailing tab after timestamps, doubly quoted shapes, N/A).
"""

from __future__ import annotations

import math
from typing import Final

from kb.errors import MalformedInputError
from kb.profile.decimals import DIGITS_AT_MOST, scaled

MISSING: Final = frozenset({"", "N/A", "NA"})
LATEST_NS: Final = 2**62
"""Timestamps stay below this, so that a start plus a duration fits int64."""
LONGEST_NS: Final = 10**15
"""Durations stay below this (11.5 days), so that thousands of them can be summed in int64."""


class RuinedTimestampError(MalformedInputError):
    """A spreadsheet rounded the timestamps away (``1.69512E+15``): the order of events is lost."""


class RuinedCell(ValueError):  # noqa: N818  # becomes a RuinedTimestampError once file and row are known
    """A timestamp in exponent form."""


def microseconds(cell: str) -> int:
    """Microseconds to ns. Raises ValueError."""
    whole, _, fraction = cell.partition(".")
    digits = whole + fraction[:3].ljust(3, "0")
    if not fraction[3:].strip("0") and len(digits) < 20 and digits.isdigit() and digits.isascii() and whole:
        return int(digits)  # the usual cell: nothing to round
    return scaled(cell, 3)


def timestamp(cell: str) -> int:
    """A point in time in ns, 0 or later. Raises RuinedCell for exponent form, else ValueError."""
    text = cell.strip()
    if text in MISSING:
        raise ValueError("no timestamp")
    if "e" in text or "E" in text:
        raise RuinedCell("a spreadsheet rounded this timestamp")
    value = microseconds(text)
    if not 0 <= value < LATEST_NS:
        raise ValueError("not a time in this capture's clock")
    return value


def optional_timestamp(cell: str) -> int:
    """A point in time in ns; -1 where there is none."""
    return -1 if cell.strip() in MISSING else timestamp(cell)


def duration(cell: str) -> int:
    """A length of time in ns; negative values pass, the reader of the file judges them. Raises ValueError."""
    value = microseconds(cell.strip())
    if not -LONGEST_NS < value < LONGEST_NS:
        raise ValueError("too long for a duration")
    return value


def optional_duration(cell: str) -> int:
    """A length of time in ns; -1 where there is none."""
    return -1 if cell.strip() in MISSING else duration(cell)


def duration_ms(cell: str) -> int:
    """A length of time in milliseconds to ns. Raises ValueError."""
    value = scaled(cell.strip(), 6)
    if not -LONGEST_NS < value < LONGEST_NS:
        raise ValueError("too long for a duration")
    return value


def optional_duration_ms(cell: str) -> int:
    """A length of time in milliseconds to ns; -1 where there is none."""
    return -1 if cell.strip() in MISSING else duration_ms(cell)


def real(cell: str) -> float:
    """A plain finite number; NaN where there is none. Raises ValueError."""
    text = cell.strip()
    if text in MISSING:
        return math.nan
    value = float(text)
    if not math.isfinite(value) or "_" in text or not text.isascii():
        raise ValueError("not a finite number")
    return value


def real_us(cell: str) -> float:
    """Microseconds to ns as a float metric; NaN where there is none."""
    text = cell.strip()
    return math.nan if text in MISSING else float(duration(text))


def percent(cell: str) -> float:
    """Percent to a ratio; NaN where there is none."""
    return real(cell) / 100


def kibibytes(cell: str) -> float:
    """The exporter's KB (1,024 bytes) to bytes. Raises ValueError for a missing size."""
    size = real(cell) * 1024
    if math.isnan(size):
        raise ValueError("no size")
    return size


def whole_number(cell: str, limit: int) -> int:
    """An integer of at most ``limit``; -1 where there is none. Raises ValueError."""
    text = cell.strip()
    if text in MISSING:
        return -1
    if not (text.isascii() and text.isdigit() and len(text) < DIGITS_AT_MOST):
        raise ValueError("not a whole number")
    value = int(text)
    if value > limit:
        raise ValueError(f"larger than {limit}")
    return value


def plain(cell: str) -> str | None:
    """Text without surrounding blanks; None where there is none."""
    text = cell.strip()
    return None if text in MISSING else text


def quoted(cell: str) -> str | None:
    """Text inside the second pair of quotes the exporter writes around shapes; an empty inside is None."""
    text = cell.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    return None if text in MISSING else text


def layout_format(cell: str) -> str | None:
    """Formats split by ``;`` in the new spelling: ND instead of FORMAT_ND."""
    text = quoted(cell)
    return text.replace("FORMAT_", "") if text else None
