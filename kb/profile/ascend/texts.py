"""A column of text cells to string codes: most cells by their places, each odd one once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import numpy as np

from kb.profile.ascend.rows import Spans, unquoted
from kb.profile.digits import WORD, words
from kb.session.builder import Strings
from kb.session.session import Array

Taking = Literal["read", "bare", "inside"]
_SHORT: Final = 64
_QUOTE: Final = ord('"')
_BLANK: Final = ord(" ")
_DELETE: Final = 127
_PAIR: Final = 3
"""Quotes on each side of a quoted value in a quoted cell."""
_MISSING_LENGTH: Final = 3
_MISSING_FIRST: Final = ord("N")


def text_codes(spans: Spans, read: Callable[[str], str | None], strings: Strings, taking: Taking) -> Array:
    """Codes (int32) of one column, whose ``starts`` and ``ends`` have one dimension.

    ``read`` makes our text of a cell. Where ``taking`` says that it only takes away blanks ("bare") or also a pair of quotes
    ("inside") and knows missing cells, most cells need not pass through it.
    """
    count = len(spans.starts)
    if count and is_constant(spans.data, spans.starts, spans.ends):
        return np.full(count, strings.code(read(unquoted(spans.data[spans.starts[0] : spans.ends[0]]))), "<i4")
    if taking == "read" or spans.text is None:
        return _one_by_one(spans, np.arange(count), read, strings)
    starts, ends, easy = _inner(np.frombuffer(spans.data, np.uint8), spans.starts, spans.ends, quoted=taking == "inside")
    found = np.empty(count, "<i4")
    places = np.flatnonzero(easy)
    text = spans.text
    values = [text[start:end] for start, end in zip(starts[places].tolist(), ends[places].tolist(), strict=True)]
    if '"' in "".join(values):
        return _one_by_one(spans, np.arange(count), read, strings)
    found[places] = strings.codes(values)
    others = np.flatnonzero(~easy)
    if len(others):
        found[others] = _one_by_one(spans, others, read, strings)
    return found


def _inner(codes: Array, starts: Array, ends: Array, *, quoted: bool) -> tuple[Array, Array, Array]:
    """Where the text of each cell stands, and whether it can be taken as it stands there."""
    wrapped = (ends - starts > 2 * _PAIR) & quoted
    for place in range(_PAIR if quoted else 0):
        wrapped &= (codes[np.minimum(starts + place, len(codes) - 1)] == _QUOTE) & (codes[np.maximum(ends - 1 - place, 0)] == _QUOTE)
    starts, ends = starts + _PAIR * wrapped, ends - _PAIR * wrapped
    lengths = ends - starts
    first, last = codes[np.minimum(starts, len(codes) - 1)], codes[np.maximum(ends - 1, 0)]
    bare = (first > _BLANK) & (first != _QUOTE) & (first < _DELETE) & (last > _BLANK) & (last < _DELETE)
    missing = (lengths <= _MISSING_LENGTH) & (first == _MISSING_FIRST)
    return starts, ends, (lengths > 0) & (wrapped | bare) & ~missing


def _one_by_one(spans: Spans, places: Array, read: Callable[[str], str | None], strings: Strings) -> Array:
    bounds = zip(spans.starts[places].tolist(), spans.ends[places].tolist(), strict=True)
    values = [spans.data[start:end] for start, end in bounds]
    codes = {cell: strings.code(read(unquoted(cell))) for cell in dict.fromkeys(values)}
    return np.fromiter(map(codes.__getitem__, values), dtype="<i4", count=len(values))


def is_constant(data: bytes, starts: Array, ends: Array) -> bool:
    """Whether every cell of a column is the same short text, as states, formats and absent values are."""
    length = int(ends[0] - starts[0])
    if length > _SHORT or data[starts[0] : ends[0]] != data[starts[-1] : ends[-1]] or np.any(ends - starts != length):
        return False
    codes = np.frombuffer(data, np.uint8)
    if length < WORD:
        found = codes[starts[:, None] + np.arange(length)]
        return bool((found == found[0]).all())
    every = words(codes)
    for place in (*range(0, length - WORD, WORD), length - WORD):
        word = every[starts + place]
        if np.any(word != word[0]):
            return False
    return True
