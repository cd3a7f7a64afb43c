"""Slips of the keyboard: a word that no record holds is looked up as the nearest word that some do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from string import ascii_lowercase
from typing import Final

import msgspec

from kb.domain.catalogue import Catalogue
from kb.domain.text import Text
from kb.search.corpus import Corpus, Postings
from kb.search.question import Question, understood

SHORTEST: Final = 5
"""Shorter words have too many neighbours: one letter makes another word of them."""
MOST_WORDS: Final = 3
"""Words repaired in one query: each costs some hundred look-ups."""


def respelled(question: Question, corpus: Corpus, held: Mapping[str, Postings], catalogue: Catalogue) -> Question:
    """``question`` with each word that no record holds (``held``: their postings) replaced by the word one slip away that
    most records hold.

    A slip is a letter too many, missing, wrong, or swapped with the next; only plain English words are repaired, and a note says
    which. The same question when there is nothing to repair.
    """
    unknown = [word for word in question.words if not len(held[word][0]) and len(word) >= SHORTEST and word.isascii() and word.isalpha()]
    meant = {word: near for word in unknown[:MOST_WORDS] if (near := _nearest(word, corpus))}
    if not meant:
        return question
    words = tuple(dict.fromkeys(meant.get(word, word) for word in question.words))
    shown = ", ".join(f"{word} -> {near}" for word, near in meant.items())
    note = Text(zh=f"没有记录含有这些词，按相近的词查找：{shown}", en=f"No record holds these words, so near ones were looked up: {shown}")
    repaired = understood(" ".join((question.text, *meant.values())), words, catalogue, (*question.notes, note))
    return msgspec.structs.replace(repaired, text=question.text)


def _nearest(word: str, corpus: Corpus) -> str:
    """The word one slip away that most records hold, the first in the alphabet among equals; empty when there is none."""
    held = {near: many for near, many in corpus.frequencies(sorted(set(_slips(word)))).items() if many}
    return min(held, key=lambda near: (-held[near], near), default="")


def _slips(word: str) -> Iterator[str]:
    for at in range(len(word) + 1):
        head, tail = word[:at], word[at:]
        yield from (f"{head}{letter}{tail}" for letter in ascii_lowercase)
        if tail:
            yield head + tail[1:]
            yield from (f"{head}{letter}{tail[1:]}" for letter in ascii_lowercase)
        if len(tail) > 1:
            yield f"{head}{tail[1]}{tail[0]}{tail[2:]}"
