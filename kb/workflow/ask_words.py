"""The words of a question: which say what it is about, which say nothing, and which ask for what no profile holds."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from kb.domain.text import Text
from kb.text.script import CJK, fold
from kb.text.tokens import tokenize

CHINESE: Final = re.compile(rf"[{CJK}]+")


class Topic(msgspec.Struct, frozen=True):
    """What a profile cannot tell: Chinese ``terms`` stand in the question as written, of English ones every word does."""

    terms: tuple[str, ...]
    say: Text


class Words(msgspec.Struct, frozen=True):
    """The data file: ``empty`` words say nothing about the subject, ``outside`` topics are none of a diagnosis."""

    empty: tuple[str, ...]
    outside: tuple[Topic, ...]


@lru_cache(maxsize=1)
def load_words() -> Words:
    """The shipped words."""
    return msgspec.json.decode(Path(__file__).with_name("ask_words.json").read_bytes(), type=Words)


def content(question: str, terms: Collection[str], held: Collection[str]) -> tuple[str, ...]:
    """Distinct tokens that say what the question is about; ``held`` are the tokens that may answer it.

    In Chinese the known ``terms`` are found first, the longest first, and then the empty words, so that no pair of characters
    reaches over their borders. What lies between gives its pairs too: those that are held where any is (the others reach over
    the border of two words), else all. A single character left over says nothing.
    """
    words, folded = load_words(), fold(question)
    empty = {token for word in words.empty if word.isascii() for token in tokenize(word)}
    chinese = frozenset(word for word in words.empty if not word.isascii())
    found = _joined([token for token in tokenize(CHINESE.sub(" ", folded)) if token not in empty], held)
    for run in CHINESE.findall(folded):
        known, left = _split(run, terms, chinese)
        found += [token for term in known for token in tokenize(term)]
        for piece in left:
            pairs = tokenize(piece)
            found += [pair for pair in pairs if pair in held] or pairs
    return tuple(dict.fromkeys(found))


def outside(question: str) -> Topic | None:
    """The topic no profile speaks to that the question asks for."""
    asked, text = frozenset(tokenize(question)), fold(question)
    for topic in load_words().outside:
        for term in topic.terms:
            if (frozenset(tokenize(term)) <= asked) if term.isascii() else term in text:
                return topic
    return None


def _joined(tokens: Sequence[str], held: Collection[str]) -> list[str]:
    """Two words in a row that are held as one (data loader, dataloader) are that one."""
    found: list[str] = []
    for token in tokens:
        if found and found[-1] + token in held:
            token = found.pop() + token
        found.append(token)
    return found


def _split(run: str, terms: Collection[str], empty: Collection[str]) -> tuple[list[str], list[str]]:
    """The known terms in a run of Chinese characters, and what is left between them and the empty words."""
    known = []
    for term in _longest_first(term for term in terms if len(term) > 1 and term in run and not _padded(term, terms, empty)):
        if term in run:
            known.append(term)
            run = run.replace(term, " ")
    for word in _longest_first(empty):
        run = run.replace(word, " ")
    return known, [left for left in run.split() if len(left) > 1]


def _padded(term: str, terms: Collection[str], empty: Collection[str]) -> bool:
    """Whether a term is an empty word, or a shorter term with one beside it."""
    return term in empty or any(
        rest in terms for word in empty for rest in (term.removeprefix(word), term.removesuffix(word)) if rest != term
    )


def _longest_first(words: Iterable[str]) -> list[str]:
    return sorted(set(words), key=lambda word: (-len(word), word))
