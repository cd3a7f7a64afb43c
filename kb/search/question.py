"""What is asked, cleaned and split: the text, its words, and what the glossary adds."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kb.domain.case import CaseContext, CaseQuery
from kb.domain.catalogue import Catalogue
from kb.domain.text import Text
from kb.errors import UsageError
from kb.text.glossary import expand
from kb.text.tokens import tokenize

MAX_CHARACTERS: Final = 2000
"""Longer queries are cut: the rest of a pasted log drowns the question."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """``text`` is what the embedder reads. ``words`` are its lexical tokens, ``added`` further tokens by the id of
    the glossary row that brought them (no token stands twice). ``notes`` tell the reader what was changed."""

    text: str
    words: tuple[str, ...]
    added: Mapping[str, str]
    notes: tuple[Text, ...]

    @property
    def tokens(self) -> tuple[str, ...]:
        """All tokens to look up."""
        return (*self.words, *self.added)

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
    words = tuple(dict.fromkeys(tokenize(text)))
    return Question(text=text, words=words, added=_added(text, words, catalogue), notes=notes)


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


def _added(text: str, words: tuple[str, ...], catalogue: Catalogue) -> dict[str, str]:
    expansion = expand(text, catalogue.glossary)
    wanted, fired, own = set(expansion.terms), set(expansion.rows), set(words)
    added: dict[str, str] = {}
    for row in catalogue.glossary:
        if row.id in fired:
            added.update({token: row.id for token in _tokens((*row.zh, *row.en), wanted) if token not in own and token not in added})
    return added


def _tokens(terms: tuple[str, ...], wanted: set[str]) -> Iterator[str]:
    for term in terms:
        if term in wanted:
            yield from tokenize(term)
