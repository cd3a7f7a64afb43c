"""Numbers of many events at once, from the text they were written in: no float ever holds a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from kb.profile.decimals import plain_decimals, scaled, scaled_to
from kb.session.session import Array

LATEST_NS: Final = 2**62
"""Times stay below this, so that a start plus a duration fits int64."""
NONE: Final = np.int64(-(2**63))
"""What a cell without a readable number becomes."""
_COMMA: Final = ord(",")
_QUOTE: Final = ord('"')


def integers(raws: Sequence[msgspec.Raw], power: int) -> Array:
    """Each number times ``10 ** power``, rounded half away from zero, as int64; NONE where there is none or it is too large.

    Numbers may be written as JSON text (``"1736408883704643.212"``).
    """
    text = b",".join(raws) + b","
    codes = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(codes == _COMMA)
    if len(ends) != len(raws):
        return np.array([_one(bytes(raw), power) for raw in raws], np.int64)
    starts = np.concatenate([[0], ends[:-1] + 1])
    quoted = (codes[starts] == _QUOTE) & (ends - starts >= 2)
    digits, decimals, plain = plain_decimals(codes, starts + quoted, ends - quoted)
    values, sound = scaled_to(digits, decimals, power, LATEST_NS)
    for index in np.flatnonzero(~(plain & sound)).tolist():
        values[index] = _one(text[starts[index] : ends[index]], power)
    return values


def _one(text: bytes, power: int) -> int:
    try:
        value = scaled(text.decode().strip().strip('"').strip(), power)
    except ValueError:
        return int(NONE)
    return value if abs(value) < LATEST_NS else int(NONE)
