"""Which causes a question sounds like, and what that adds to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from kb.domain.case import Why
from kb.domain.text import LANGS, Text
from kb.search.question import Question, understood
from kb.search.tally import inverse_frequency
from kb.text.tokens import tokenize

if TYPE_CHECKING:
    import numpy.typing as npt

    from kb.domain.catalogue import Catalogue
    from kb.domain.protocols import Vectors
    from kb.search.fusion import Scores
    from kb.search.hints import Hints
    from kb.search.weights import Weights

    Floats = npt.NDArray[np.float64]


class Guess(msgspec.Struct, frozen=True):
    """A cause the question may be about, with its share of the belief (0..1, all guesses together 1)."""

    cause: str
    share: float
    centre: int


def guesses(question: Question, vector: Vectors, hints: Hints, weights: Weights) -> tuple[Guess, ...]:
    """The likeliest causes, best first: by the nearest sentence people say about each, and by the words of all that is said."""
    likely = (_spread(_nearest(vector, hints)) + _spread(_worded(question, hints, weights))) / 2
    best = np.argsort(-likely, kind="stable")[: weights.guesses]
    belief = np.exp(likely[best] - likely[best[0]])
    return tuple(
        Guess(hints.causes[at], float(share), int(at)) for at, share in zip(best.tolist(), (belief / belief.sum()).tolist(), strict=True)
    )


def turned(vector: Vectors, found: Sequence[Guess], hints: Hints, weights: Weights) -> Vectors:
    """The query's vector turned towards the guessed causes, length 1."""
    towards = sum((guess.share * hints.centres[guess.centre] for guess in found), np.zeros_like(vector))
    length = float(np.linalg.norm(towards))
    moved = vector + (weights.turn / length if length else 0.0) * towards
    unit: Vectors = (moved / np.linalg.norm(moved)).astype(np.float32)
    return unit


def named(found: Sequence[Guess], catalogue: Catalogue, hints: Hints) -> Question:
    """The names of the guessed causes as a question of their own, each counting by its share."""
    concepts = []
    taken: set[str] = set()
    for guess in found:
        own = _name(guess.cause, catalogue, hints)
        for concept in own.concepts:
            # No token may belong to two concepts: the likelier cause keeps it.
            ways = tuple(way for way in (tuple(token for token in way if token not in taken) for way in concept.ways) if way)
            if ways:
                concepts.append(msgspec.structs.replace(concept, ways=ways, share=guess.share))
        taken.update(token for concept in own.concepts for way in concept.ways for token in way)
    words = tuple(dict.fromkeys(token for concept in concepts for way in concept.ways for token in way))
    return Question(text="", words=words, concepts=tuple(concepts), notes=())


def _name(cause: str, catalogue: Catalogue, hints: Hints) -> Question:
    """The names of one cause as a question, read once."""
    known = hints.memo.get(f"name {cause}")
    if known is None or known[0] is not catalogue:
        entry = catalogue.causes[cause]
        text = " ".join((entry.name.zh, entry.name.en, *entry.aliases))
        known = hints.memo[f"name {cause}"] = (catalogue, understood(text, tuple(dict.fromkeys(tokenize(text))), catalogue, ()))
    found: Question = known[1]
    return found


def guess_reason(place: int, scores: Scores, lang: str, found: Sequence[Guess], catalogue: Catalogue) -> Why:
    """What the names of the guessed causes add."""
    names = [catalogue.causes[guess.cause].name for guess in found]
    return Why(
        feature="cause_guess",
        text=Text(zh=f"听起来像：{'、'.join(name.zh for name in names)}", en=f"sounds like: {', '.join(name.en for name in names)}"),
        contribution=scores.contribution(place, "zh" if lang == "zh" else "en"),
    )


def _nearest(vector: Vectors, hints: Hints) -> Floats:
    """Of each cause its best sentence, in deviations among the sentences of the same language."""
    cosines = (hints.sentences @ vector).astype(np.float64)
    languages = np.array(hints.languages)
    for lang in LANGS:
        own = languages == lang
        if own.any():
            cosines[own] = _spread(cosines[own])
    best = np.full(len(hints.causes), -math.inf)
    np.maximum.at(best, hints.owners, cosines)
    return best


def _worded(question: Question, hints: Hints, weights: Weights) -> Floats:
    """BM25 of the question over what is said about each cause."""
    lengths = [sum(tokens.values()) for tokens in hints.tokens]
    mean = sum(lengths) / len(lengths) or 1.0
    total = nothing = np.zeros(len(hints.causes))
    for concept in question.concepts:
        ways = [sum((_token_scores(token, hints, lengths, mean, weights) for token in way), nothing) for way in concept.ways]
        total = total + np.max(ways, axis=0)
    return total


def _token_scores(token: str, hints: Hints, lengths: Sequence[int], mean: float, weights: Weights) -> Floats:
    often = np.array([tokens.get(token, 0) for tokens in hints.tokens], dtype=np.float64)
    flat = weights.k1 * (1 - weights.b)
    worth = inverse_frequency(len(often), int((often > 0).sum())) * (weights.k1 + 1)
    scores: Floats = worth * often / (often + flat + weights.k1 * weights.b / mean * np.asarray(lengths))
    return scores


def _spread(values: Floats) -> Floats:
    """``values`` in deviations from their mean; zeros where they do not differ."""
    deviation = float(values.std())
    spread: Floats = (values - values.mean()) / deviation if deviation else np.zeros_like(values)
    return spread
