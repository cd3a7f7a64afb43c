"""Which characters belong to which script, and the folding every text goes through first."""

from __future__ import annotations

import unicodedata
from typing import Final

HANZI: Final = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Body of a regular-expression class: Chinese characters, the iteration and zero marks and the rare planes."""
CJK: Final = HANZI + "\u3040-\u309f\u30a1-\u30fa\u30fc\uac00-\ud7a3"
"""Hanzi, kana and hangul syllables: scripts written without spaces that bigrams index well."""


def fold(text: str) -> str:
    """NFKC: full-width letters, digits and signs become half-width, ligatures come apart. Case is kept."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)
