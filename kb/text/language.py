"""How Chinese a text is: the number that balances scores between languages."""

from __future__ import annotations

import re
from typing import Final

from kb.text.script import HANZI, fold

WORD_WEIGHT: Final = 1.5
"""Hanzi that say as much as one Latin word; from the measurements behind the language-balanced ranking."""
_HANZI = re.compile(f"[{HANZI}]")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_.\-'][A-Za-z0-9]+)*")


def chinese_share(text: str) -> float:
    """``c / (c + 1.5 w)`` with c hanzi and w Latin words (an identifier is one word), 0..1; 0 when there is neither."""
    folded = fold(text)
    hanzi = len(_HANZI.findall(folded))
    words = len(_WORD.findall(folded))
    return hanzi / (hanzi + WORD_WEIGHT * words) if hanzi else 0.0
