"""Light English stemming: plural, -ing and -ed only.

The rules bring the inflected forms of one verb or noun to one string, which need not be a word
(fuse, fused, fusing and fuses all become ``fus``; tile, tiles and tiling ``til``). Derivations stay
apart: fusion is not fused, which is the glossary's business.
"""

from __future__ import annotations

import re
from typing import Final

_VOWEL = re.compile(r"[aeiouy]")
_SIBILANT_ES = re.compile(r"(?:ch|sh|ss|zz|x)es\Z")
# Doubled by inflection (tagged, running), as opposed to doubled in the word itself (stall, pass, buzz).
_DOUBLED = re.compile(r"([^aeiouylsz])\1\Z")
_SHORTEST_STEM: Final = 3
_NOT_INFLECTED: Final = frozenset({"bias", "embed", "hundred"})


def stem(word: str) -> str:
    """The stem of one lower-case ASCII word; words of up to three letters only lose a plural s."""
    if word in _NOT_INFLECTED:
        return word
    base = _participle(_singular(word))
    return base[:-1] if base.endswith("e") and len(base) > _SHORTEST_STEM else base


def _singular(word: str) -> str:
    if not word.endswith("s") or len(word) < _SHORTEST_STEM or word.endswith(("ss", "is")):
        return word
    if word.endswith("us") and len(word) > 4:  # status, but gpus and npus are plurals
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if _SIBILANT_ES.search(word) else word[:-1]


def _participle(word: str) -> str:
    for suffix in ("ing", "ed"):
        base = word.removesuffix(suffix)
        if base != word and len(base) >= _SHORTEST_STEM and _VOWEL.search(base) and not word.endswith("eed") and word not in _NOT_INFLECTED:
            return base[:-1] if _DOUBLED.search(base) else base
    return word
