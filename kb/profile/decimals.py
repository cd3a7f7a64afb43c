"""Columns of decimal text to integers at array speed, exactly.

A plain cell is at most 19 digits with at most one dot, an optional blank or tab behind it. Those are converted together;
all others are left to the caller, who parses them one by one.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from kb.profile.digits import MOST_DIGITS, WORD, dots_before, short_numbers, values_of_runs, words
from kb.session.session import Array

DIGITS_AT_MOST: Final = 60
"""Of one number; more is not a profiler's."""
_NUMBER: Final = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?", re.ASCII)
_DOT: Final = ord(".")
_NINE: Final = ord("9")
_BLANKS: Final = (ord("\t"), ord(" "), ord("\r"))
_POWERS: Final = 10 ** np.arange(MOST_DIGITS, dtype=np.int64)


def plain_decimals(codes: Array, starts: Array, ends: Array) -> tuple[Array, Array, Array]:
    """``(digits, decimals, plain)`` of the cells ``codes[starts[i]:ends[i]]``.

    ``codes`` is uint8. A plain cell's value is ``digits / 10 ** decimals``. Where ``plain`` is False the other two are 0.
    """
    every = words(codes)
    if not len(every) or not len(starts):
        return np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64), np.zeros(len(starts), bool)
    ends = _without_blanks(codes, starts, ends)
    lengths = ends - starts
    if lengths.max() <= WORD:
        digits, decimals, plain = short_numbers(every, ends, lengths)
        dotted = decimals >= 0
        plain &= lengths > dotted
        return np.where(plain, digits, 0), np.where(plain & dotted, decimals, 0), plain
    decimals = _decimals(every, ends, lengths)
    dotted = decimals >= 0
    if not dotted.any():
        digits, plain = values_of_runs(every, ends, lengths)
        count, decimals = lengths, np.zeros(len(starts), np.int64)
    else:
        decimals = np.where(dotted, decimals, 0)
        whole, plain = values_of_runs(every, ends - decimals - dotted, lengths - decimals - dotted)
        fraction, sound = values_of_runs(every, ends, decimals)
        count = lengths - dotted
        plain &= sound
        digits = whole * _POWERS[np.minimum(decimals, MOST_DIGITS - 1)] + fraction
    plain &= (count > 0) & (count <= MOST_DIGITS)
    longest = np.flatnonzero(plain & (count == MOST_DIGITS))
    first = codes[starts[longest]]
    plain[longest] = (first < _NINE) & (first != _DOT)
    return np.where(plain, digits, 0), np.where(plain, decimals, 0), plain


def _decimals(every: Array, ends: Array, lengths: Array) -> Array:
    """Characters after the dot of each cell; -1 where none is found among its last ``MOST_DIGITS`` + 1."""
    found = dots_before(every, ends, lengths)
    for skipped in (WORD, 2 * WORD):
        open_still = np.flatnonzero((found < 0) & (lengths > skipped))
        if not len(open_still):
            break
        more = dots_before(every, ends[open_still] - skipped, lengths[open_still] - skipped)
        found[open_still] = np.where(more >= 0, more + skipped, -1)
    return found


def scaled_to(digits: Array, decimals: Array, power: int, limit: int) -> tuple[Array, Array]:
    """``digits / 10 ** decimals * 10 ** power`` as int64, half rounded up, and where it is below ``limit`` and exact so far."""
    shift = power - decimals
    up, down = _POWERS[np.clip(shift, 0, MOST_DIGITS - 1)], _POWERS[np.clip(-shift, 0, MOST_DIGITS - 1)]
    sound = (np.abs(shift) < MOST_DIGITS) & (digits < limit // up)
    safe = np.where(sound, digits, 0)
    return np.where(shift >= 0, safe * np.where(sound, up, 1), safe // down + (safe % down >= (down + 1) // 2)), sound


def scaled(text: str, power: int) -> int:
    """The decimal number times ``10 ** power`` as an integer, half rounded away from zero.

    Works on the digits, so ``"231290.09999999995"`` with power 3 is 231290100. Raises ValueError.
    """
    match = _NUMBER.fullmatch(text)
    whole, fraction = (match[2], match[3] or "") if match else ("", "")
    if match is None or not whole + fraction:
        raise ValueError("not a number")
    if len(whole) + len(fraction) > DIGITS_AT_MOST:
        raise ValueError(f"more than {DIGITS_AT_MOST} digits")
    shift = int(match[4] or 0) + power - len(fraction)
    if shift > DIGITS_AT_MOST:
        raise ValueError("too large")
    size = _shifted(int(whole + fraction), shift)
    return -size if match[1] == "-" else size


def _shifted(value: int, shift: int) -> int:
    if shift >= 0:
        return int(value * 10**shift)
    unit = int(10**-shift)
    return (2 * value + unit) // (2 * unit)


def _without_blanks(codes: Array, starts: Array, ends: Array) -> Array:
    # Exporters put at most one tab behind a number, Windows one carriage return: two rounds see both.
    for _ in range(2):
        last = codes[np.maximum(ends - 1, 0)]
        blank = ((last == _BLANKS[0]) | (last == _BLANKS[1]) | (last == _BLANKS[2])) & (ends > starts)
        if not blank.any():
            break
        ends = ends - blank
    return ends
