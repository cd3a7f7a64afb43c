"""Columns of decimal text to integers at array speed, exactly.

A plain cell is at most 19 digits with at most one dot, an optional blank or tab behind it. Those are converted together;
all others are left to the caller, who parses them one by one.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from kb.session.session import Array

MOST_DIGITS: Final = 19
"""Nanoseconds since 1970 have 19; a leading 9 could pass int64 and is left to the caller."""
DIGITS_AT_MOST: Final = 60
"""Of one number; more is not a profiler's."""
_NUMBER: Final = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?", re.ASCII)
_DOT: Final = ord(".")
_ZERO: Final = ord("0")
_NINE: Final = ord("9")
_LARGEST_DIGIT: Final = 9
_BLANKS: Final = (ord("\t"), ord(" "), ord("\r"))
_POWERS: Final = 10 ** np.arange(MOST_DIGITS, dtype=np.int64)


def plain_decimals(codes: Array, starts: Array, ends: Array) -> tuple[Array, Array, Array]:
    """``(digits, decimals, plain)`` of the cells ``codes[starts[i]:ends[i]]``.

    ``codes`` is uint8. A plain cell's value is ``digits / 10 ** decimals``. Where ``plain`` is False the other two are 0.
    """
    ends = _without_blanks(codes, starts, ends)
    lengths = ends - starts
    plain = (lengths > 0) & (lengths <= MOST_DIGITS + 1)
    digits, decimals = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
    for length in np.unique(lengths[plain]).tolist():
        rows = np.flatnonzero(lengths == length)
        digits[rows], decimals[rows], plain[rows] = _of_length(codes, starts[rows], length)
    return digits, decimals, plain


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


def _of_length(codes: Array, starts: Array, length: int) -> tuple[Array, Array, Array]:
    cells = codes[starts[:, None] + np.arange(length)]
    dots = cells == _DOT
    numbers = cells - np.uint8(_ZERO)
    count = dots.sum(axis=1)
    plain = ((numbers <= _LARGEST_DIGIT) | dots).all(axis=1) & (count <= 1) & (length - count >= 1) & (length - count <= MOST_DIGITS)
    if length >= MOST_DIGITS:
        plain &= (length - count < MOST_DIGITS) | (np.where(dots[:, 0], cells[:, min(1, length - 1)], cells[:, 0]) < _NINE)
    place = np.where(count == 1, dots.argmax(axis=1), length)
    value = np.zeros(len(starts), np.int64)
    for dot in np.unique(place[plain]).tolist():
        # Nearly always one position, as all cells of one length have as many decimals.
        rows = np.flatnonzero(plain & (place == dot))
        kept = [index for index in range(length) if index != dot]
        value[rows] = numbers[rows[:, None], np.array(kept)].astype(np.int64) @ _POWERS[len(kept) - 1 :: -1][: len(kept)]
    decimals = np.where(plain & (count == 1), length - 1 - place, 0)
    return value, decimals, plain
