"""Which characters belong to which script, and the folding every text goes through first."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

HANZI: Final = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Body of a regular-expression class: Chinese characters, the iteration and zero marks and the rare planes."""
CJK: Final = HANZI + "\u3040-\u309f\u30a1-\u30fa\u30fc\uac00-\ud7a3"
"""Hanzi, kana and hangul syllables: scripts written without spaces that bigrams index well."""


def fold(text: str) -> str:
    """NFKC: full-width letters, digits and signs become half-width, ligatures come apart. Case is kept."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def is_cjk(character: str) -> bool:
    """Whether one character is of ``CJK``; without a regular expression, as compiling the class costs 2 ms."""
    return character > "\u3004" and any(first <= character <= last for first, last in _RANGES)


def _ranges(class_body: str) -> Iterator[tuple[str, str]]:
    """The ranges of a class body such as ``CJK``, a single character being its own."""
    at = 0
    while at < len(class_body):
        width = 3 if class_body[at + 1 : at + 2] == "-" else 1
        yield class_body[at], class_body[at + width - 1]
        at += width


_RANGES: Final = tuple(_ranges(CJK))
