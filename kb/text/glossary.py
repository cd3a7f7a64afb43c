"""Query expansion over the zh/en glossary: what one language says, added in the other's words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import Final

import msgspec

from kb.domain.catalogue import GlossaryRow
from kb.text.script import fold, is_cjk

_SEPARATORS = re.compile(r"[\s_\-]+")
_PLURALS: Final = ("", "s", "es")
_OPENING: Final = 2
"""Characters by which terms are looked up at each place of a text."""


class Expansion(msgspec.Struct, frozen=True):
    """``terms`` to add to the lexical query, none of which was found in the text; ``rows``: ids of the rows
    that fired, in glossary order."""

    terms: tuple[str, ...]
    rows: tuple[str, ...]


def expand(text: str, rows: Sequence[GlossaryRow]) -> Expansion:
    """If a term of one side of a row occurs in ``text``, add the terms of the other side.

    Matching ignores case and width, takes ``_``, ``-`` and spaces for the same, allows an English plural and asks for
    word boundaries where a term begins or ends in ASCII. Of overlapping terms the longest wins, so that a
    phrase does not also fire the rows of its words.
    """
    known = _spelled(tuple(rows))
    found = _longest(_occurrences(_plain(text), known.openings))
    terms: dict[str, None] = {}
    fired: list[str] = []
    for row in dict.fromkeys(sorted(at for term in found for at in known.rows[term])):
        entry = rows[row]
        chinese, english = (any(_plain(term) in found for term in side) for side in (entry.zh, entry.en))
        fired.append(entry.id)
        added = (entry.en if chinese else ()) + (entry.zh if english else ())
        terms.update((term, None) for term in added if _plain(term) not in found)
    return Expansion(terms=tuple(terms), rows=tuple(fired))


class _Spelled(msgspec.Struct, frozen=True):
    """The terms of a glossary as they are matched: the places of each one's ``rows``, and all of them by their first
    ``_OPENING`` characters (a shorter one by itself)."""

    rows: Mapping[str, Sequence[int]]
    openings: Mapping[str, Sequence[str]]


@lru_cache(maxsize=8)
def _spelled(rows: tuple[GlossaryRow, ...]) -> _Spelled:
    held: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        for term in (*row.zh, *row.en):
            held.setdefault(_plain(term), []).append(at)
    openings: dict[str, list[str]] = {}
    for term in filter(None, held):
        openings.setdefault(term[:_OPENING], []).append(term)
    return _Spelled(held, openings)


@lru_cache(maxsize=4096)
def _plain(text: str) -> str:
    lowered = fold(text).lower()
    return lowered if lowered.isalnum() else _closed(_SEPARATORS.sub(" ", lowered).strip())


def _closed(text: str) -> str:
    """``text`` without the spaces beside CJK characters."""
    if text.isascii() or " " not in text:
        return text
    pieces = text.split(" ")
    joined = pieces[0]
    for piece in pieces[1:]:
        joined += piece if is_cjk(joined[-1]) or is_cjk(piece[0]) else f" {piece}"
    return joined


def _occurrences(text: str, openings: Mapping[str, Sequence[str]]) -> Iterator[tuple[int, int, str]]:
    for start in range(len(text)):
        for length in range(1, _OPENING + 1):
            for term in openings.get(text[start : start + length], ()) if start + length <= len(text) else ():
                if text.startswith(term, start) and (end := _end(text, start, term)):
                    yield start, end, term


def _end(text: str, start: int, term: str) -> int:
    """Where the occurrence of ``term`` at ``start`` ends, plural included; 0 when it is only part of a word."""
    if _is_ascii_word(term[0]) and start and _is_ascii_word(text[start - 1]):
        return 0
    end = start + len(term)
    if not _is_ascii_word(term[-1]):
        return end
    for plural in _PLURALS:
        after = end + len(plural)
        if text.startswith(plural, end) and not _is_ascii_word(text[after : after + 1]):
            return after
    return 0


def _is_ascii_word(character: str) -> bool:
    return character.isascii() and character.isalnum()


def _longest(occurrences: Iterator[tuple[int, int, str]]) -> Set[str]:
    taken: list[tuple[int, int]] = []
    found: set[str] = set()
    for start, end, term in sorted(occurrences, key=lambda span: (span[0] - span[1], span[0], span[2])):
        if all(end <= left or start >= right for left, right in taken):
            taken.append((start, end))
            found.add(term)
    return found
