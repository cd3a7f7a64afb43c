"""The tokens that lexical search counts, for stored text and for queries alike.

Three kinds, in the order of the text:

- a number with its unit is one token: ``63%``, ``192gb``, ``186gb/s``; a space between them and thousands
  separators do not matter;
- an ASCII identifier gives itself in lower case and its parts: between dots, between ``_`` and ``-``, at
  camelCase humps and between letters and digits (parts of one character are dropped). A plain word gives its stem;
- a run of CJK characters gives its bigrams, or itself when it is one character.

Other scripts give no tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from kb.domain.quantity import UNITS
from kb.text.script import CJK, fold
from kb.text.stem import stem

# One-letter units (B, W, C, ..) are left out: 910B and 8C are names far more often than quantities.
_UNITS: Final = sorted({unit.lower() for unit in UNITS if len(unit) > 1 or unit in "%s"} - {"count", "ratio"}, key=len, reverse=True)
_NUMBER: Final = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_TOKEN = re.compile(
    rf"(?<![A-Za-z0-9_])(?P<number>{_NUMBER}) ?(?P<unit>(?i:{'|'.join(map(re.escape, _UNITS))}))(?![A-Za-z0-9_/])"
    r"|(?P<word>[A-Za-z0-9]+(?:[._\-]+[A-Za-z0-9]+)*)"
    rf"|(?P<cjk>[{CJK}]+)"
)
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SEPARATOR = re.compile(r"[_\-]+")


def tokenize(text: str) -> list[str]:
    """Tokens of ``text`` in its order, repeated as often as they occur. Empty for text without any."""
    tokens: list[str] = []
    for match in _TOKEN.finditer(fold(text)):
        kind = match.lastgroup
        if kind == "word":
            tokens += _identifier(match[0])
        elif kind == "cjk":
            tokens += _bigrams(match[0])
        else:
            tokens.append(match["number"].replace(",", "") + match["unit"].lower())
    return tokens


def counts(text: str) -> dict[str, int]:
    """How often each token of ``text`` occurs, in order of first occurrence."""
    return dict(Counter(tokenize(text)))


def _bigrams(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[at : at + 2] for at in range(len(run) - 1)]


def _identifier(word: str) -> list[str]:
    if word.isalpha() and (word.islower() or word.isupper() or word.istitle()):
        return [stem(word.lower())]
    forms: dict[str, None] = {}
    _add(word, forms, shortest=1)
    for dotted in word.split("."):
        for piece in (dotted, *_SEPARATOR.split(dotted)):
            _add(piece, forms)
            for hump in _HUMP.findall(piece):
                _add(hump, forms)
    return list(forms)


def _add(piece: str, forms: dict[str, None], *, shortest: int = 2) -> None:
    if len(piece) >= shortest:
        forms[stem(piece.lower()) if piece.isalpha() else piece.lower()] = None
