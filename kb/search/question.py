"""What is asked, cleaned and split: the text, its words, and what the glossary adds."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Set
from functools import cached_property
from typing import Final

import msgspec

from kb.domain.case import CaseContext, CaseQuery
from kb.domain.catalogue import Catalogue, GlossaryRow
from kb.domain.text import Text
from kb.errors import UsageError
from kb.text.glossary import expand
from kb.text.tokens import tokenize

MAX_CHARACTERS: Final = 2000
"""Longer queries are cut: the rest of a pasted log drowns the question."""


class Concept(msgspec.Struct, frozen=True):
    """One thing that is asked for, and the ways to say it: the words of the query, or each term that the glossary row ``row``
    adds. A record is as good as its best way, so that one written in both languages or in synonyms does not count twice.

    ``row`` is empty for a word of the query that no row knows. ``asked``: the first way is in the query's own words. ``share``: how
    much the concept counts.
    """

    row: str
    ways: tuple[tuple[str, ...], ...]
    asked: bool
    share: float = 1.0


class Question(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """``text`` is what the embedder reads. ``words`` are its lexical tokens, ``concepts`` what they and the glossary ask for (no
    token belongs to two). ``notes`` tell the reader what was changed."""

    text: str
    words: tuple[str, ...]
    concepts: tuple[Concept, ...]
    notes: tuple[Text, ...]

    @property
    def tokens(self) -> tuple[str, ...]:
        """All tokens to look up."""
        return (*self.words, *self.added)

    @cached_property
    def added(self) -> Mapping[str, str]:
        """Tokens that are not of the query, each with the id of the glossary row that brought it."""
        own = set(self.words)
        return {token: concept.row for concept in self.concepts for way in concept.ways for token in way if token not in own}

    @property
    def rows(self) -> tuple[str, ...]:
        """Ids of the glossary rows that brought a token."""
        return tuple(dict.fromkeys(self.added.values()))


def read_question(query: CaseQuery, catalogue: Catalogue) -> Question:
    """Clean the query's text; without text, say its context in words.

    Raises UsageError when there is neither: an empty text, or one of marks and control characters only.
    """
    cut = query.text[:MAX_CHARACTERS]
    text = cleaned(cut)
    notes: tuple[Text, ...] = ()
    if len(query.text) > MAX_CHARACTERS:
        notes = (Text(zh=f"查询过长：只用了前 {MAX_CHARACTERS} 个字符（共 {len(query.text)} 个）。",
                      en=f"The query is long: only its first {MAX_CHARACTERS} of {len(query.text)} characters were used."),)  # fmt: skip
    if not any(character.isalnum() for character in text):
        text = spoken(query.context, catalogue) if query.context is not None else ""
    if not text:
        raise _nothing_asked(query.text)
    return understood(text, tuple(dict.fromkeys(tokenize(text))), catalogue, notes)


def understood(text: str, words: tuple[str, ...], catalogue: Catalogue, notes: tuple[Text, ...]) -> Question:
    """The question of ``text``, whose tokens are ``words``, with what the glossary makes of it."""
    return Question(text=text, words=words, concepts=tuple(_concepts(text, words, catalogue)), notes=notes)


def _nothing_asked(text: str) -> UsageError:
    what = "the query holds no word or number, only marks or control characters" if text.strip() else "the query is empty"
    return UsageError(what, allowed="text in Chinese or English, a profile, or both", do="for example: kb search 'low L2 hit rate'")


def cleaned(text: str) -> str:
    """``text`` with control characters, lone surrogates and runs of blanks as one space."""
    return " ".join("".join(" " if unicodedata.category(character) in ("Cc", "Cs") else character for character in text).split())


def spoken(context: CaseContext, catalogue: Catalogue) -> str:
    """A context as a sentence for the embedder and the words: names of its causes, model, type and phase; empty when all are unknown."""
    names: list[str] = []
    for cause in context.causes:
        entry = catalogue.causes.get(cause)
        names += [entry.name.zh, entry.name.en] if entry is not None else []
        names.append(cause)
    return " ".join(dict.fromkeys(filter(None, (*names, context.model, context.model_type, context.phase, context.soc))))


def _concepts(text: str, words: tuple[str, ...], catalogue: Catalogue) -> Iterator[Concept]:
    """Those of the glossary rows that fire, then one of each word left."""
    expansion = expand(text, catalogue.glossary)
    wanted, fired, own = set(expansion.terms), set(expansion.rows), set(words)
    used: set[str] = set()
    for row in catalogue.glossary:
        if row.id in fired:
            said = _own_way(row, wanted, own - used)
            brought = _brought_ways(row, wanted, own | used)
            used.update(said, *brought)
            if ways := tuple(dict.fromkeys(filter(None, (said, *brought)))):
                yield Concept(row.id, ways, bool(said))
    yield from (Concept("", ((word,),), True) for word in words if word not in used)


def _own_way(row: GlossaryRow, wanted: Set[str], free: Set[str]) -> tuple[str, ...]:
    """The query's words among the row's terms."""
    return tuple(dict.fromkeys(token for term in (*row.zh, *row.en) if term not in wanted for token in tokenize(term) if token in free))


def _brought_ways(row: GlossaryRow, wanted: Set[str], taken: Set[str]) -> list[tuple[str, ...]]:
    """The tokens of each term the row adds, without those of the query or of an earlier row."""
    return [tuple(dict.fromkeys(token for token in tokenize(term) if token not in taken)) for term in (*row.zh, *row.en) if term in wanted]
