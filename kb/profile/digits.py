"""Runs of decimal digits to integers, eight characters at a time.

Eight characters are read as one little-endian 64-bit word whose highest byte is the last of them, so that neighbouring
digits, pairs and quadruples are joined by one multiplication each (SIMD within a register).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.session.session import Array

MOST_DIGITS: Final = 19
"""Digits of the largest number; more are not converted. Nineteen that begin with a 9 may pass int64: callers see to it."""
WORD: Final = 8
"""Characters converted together."""
_WORDS: Final = -(-MOST_DIGITS // WORD)
_ZEROS: Final = np.uint64(0x3030303030303030)
_DOTS: Final = np.uint64(0x2E2E2E2E2E2E2E2E)
_ONES: Final = np.uint64(0x0101010101010101)
_HIGH: Final = np.uint64(0x8080808080808080)
_ABOVE_NINE: Final = np.uint64(0x7676767676767676)
_PLACES: Final = np.uint64(0x0706050403020100)
"""Times a word with bit ``8 i`` set: the highest byte is ``7 - i``, how many bytes follow byte ``i``."""
_LAST: Final = np.array([0, *(2**64 - (1 << 8 * (WORD - kept)) for kept in range(1, WORD + 1))], np.uint64)
"""Masks of a word's last 0 to 8 characters."""
# Mask, multiplier and shift that join digits to pairs, pairs to quadruples, and those to the whole.
_JOINS: Final = tuple(
    (np.uint64(mask), np.uint64(factor), np.uint64(shift))
    for mask, factor, shift in (
        (0x0F0F0F0F0F0F0F0F, 10 * 2**8 + 1, 8),
        (0x00FF00FF00FF00FF, 100 * 2**16 + 1, 16),
        (0x0000FFFF0000FFFF, 10**4 * 2**32 + 1, 32),
    )
)


def words(codes: Array) -> Array:
    """Every eight neighbouring characters of ``codes`` (uint8) as one uint64; element ``i`` begins at character ``i``."""
    return np.ndarray((max(len(codes) - WORD + 1, 0),), "<u8", np.ascontiguousarray(codes), strides=(1,))


def values_of_runs(every: Array, ends: Array, lengths: Array) -> tuple[Array, Array]:
    """The numbers (int64) that the ``lengths`` characters before ``ends`` spell, and which of them are sound.

    ``every`` is ``words`` of the text. A sound run has at most 19 characters, digits only; an empty one is 0. Runs that
    begin within the first characters of the text, where no whole word can be read, are not sound.
    """
    sound = lengths <= MOST_DIGITS
    total = np.zeros(len(ends), np.uint64)
    longest = int(lengths.max(initial=0))
    for number in range(min(_WORDS, -(-longest // WORD))):
        kept = np.minimum(np.maximum(lengths - WORD * number, 0), WORD)
        places = ends - WORD * (number + 1)
        if places.min() < 0:
            sound &= (places >= 0) | (kept == 0)
            places = np.maximum(places, 0)
        value, digits = _joined((every[places] ^ _ZEROS) & _LAST[kept])
        sound &= digits
        total += value * np.uint64(10 ** (WORD * number)) if number else value
    return total.view(np.int64), sound


def short_numbers(every: Array, ends: Array, lengths: Array) -> tuple[Array, Array, Array]:
    """Digits, decimals (-1 without a dot) and soundness of numbers of at most eight characters with at most one dot."""
    places = ends - WORD
    word = every[np.maximum(places, 0)]
    mask = _LAST[lengths]
    decimals = _after_dot(word, mask)
    digits = (word ^ _ZEROS) & mask
    if decimals.max() >= 0:
        # The characters before the dot close up to those behind it.
        behind = _LAST[np.maximum(decimals, 0)]
        closed = (digits & behind) | ((digits & ~_LAST[decimals + 1]) << np.uint64(WORD))
        digits = np.where(decimals >= 0, closed, digits)
    value, sound = _joined(digits)
    return value.view(np.int64), decimals, sound & (places >= 0)


def dots_before(every: Array, ends: Array, lengths: Array) -> Array:
    """How many characters follow the dot among the last eight of each run; -1 where there is none.

    Where a run has several dots any of them may be meant: the digits beside it will not be sound.
    """
    places = ends - WORD
    kept = np.minimum(np.maximum(lengths, 0), WORD)
    return np.where(places >= 0, _after_dot(every[np.maximum(places, 0)], _LAST[kept]), -1)


def _after_dot(word: Array, mask: Array) -> Array:
    """How many characters follow the dot among the unmasked ones of each word; -1 where there is none."""
    other = word ^ _DOTS
    found = (other - _ONES) & ~other & _HIGH & mask
    if not found.any():
        return np.full(len(word), -1)
    lowest = (found & (~found + np.uint64(1))) >> np.uint64(7)
    return np.where(found != 0, ((lowest * _PLACES) >> np.uint64(56)).view(np.int64), -1)


def _joined(digits: Array) -> tuple[Array, Array]:
    """The number in eight bytes of 0 to 9, and whether all of them are."""
    sound = (((digits + _ABOVE_NINE) | digits) & _HIGH) == 0
    for mask, factor, shift in _JOINS:
        digits = ((digits & mask) * factor) >> shift
    return digits, sound
