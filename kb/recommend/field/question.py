"""A question as the model reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kb.domain.catalogue import Catalogue
from kb.domain.field import FieldQuestion
from kb.domain.protocols import Embedder
from kb.errors import UsageError
from kb.recommend.field.model import AskedField
from kb.recommend.field.weights import FieldWeights
from kb.search.question import MAX_CHARACTERS, cleaned
from kb.text.glossary import expand
from kb.text.tokens import tokenize


def read_field_question(question: FieldQuestion, embedder: Embedder, catalogue: Catalogue, weights: FieldWeights) -> AskedField:
    """Tokens and vectors of ``question``; what is longer than ``MAX_CHARACTERS`` is cut. Raises UsageError for one without any word."""
    text = cleaned(question.words()[:MAX_CHARACTERS])
    if not any(character.isalnum() for character in text):
        raise UsageError(
            "the symptom holds no word or number",
            allowed="text in Chinese or English",
            do="for example: kb recommend --symptom 'idle between steps, loader queue empty'",
        )
    tokens = dict.fromkeys(tokenize(text), 1.0)
    terms = expand(text, catalogue.glossary).terms
    for term in terms:
        for token in tokenize(term):
            tokens.setdefault(token, weights.translation)
    sentences = [cleaned(side[:MAX_CHARACTERS]) for side in (question.symptom or text, question.setting() or text)]
    return AskedField(tokens, embedder.encode_documents(sentences), _spellings((text, *terms)))


def _spellings(texts: Iterable[str]) -> dict[str, str]:
    """The word behind each token that is not a word itself: its stem, or a part of it."""
    found: dict[str, str] = {}
    for text in texts:
        for word in _WORD.findall(text):
            for token in tokenize(word):
                if token != word.lower():
                    found.setdefault(token, word)
    return found


_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]*")
