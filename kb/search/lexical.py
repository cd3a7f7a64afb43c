"""BM25 over postings, with the statistics of the records that pass the filters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from kb.domain.text import LANGS, Lang
from kb.search.fusion import Moments, Scores, moments, settled
from kb.search.question import Question
from kb.search.tally import Tally, tally

if TYPE_CHECKING:
    from kb.search.corpus import Postings
    from kb.search.filters import Candidates
    from kb.search.weights import Weights

ARRAYS_FROM: Final = 1_000_000
"""Postings of one query from which loading numpy (0.1 s) costs less than adding them up in Python."""


class Lexical(msgspec.Struct, frozen=True):
    """``scores`` over all candidates; ``idf`` of each query token (one that no candidate holds has the highest); ``postings`` of
    all places and ``length`` (mean tokens of a candidate) explain a single record."""

    scores: Scores
    idf: Mapping[str, float]
    postings: Mapping[str, Postings]
    length: float
    question: Question
    candidates: Candidates

    def parts(self, places: Iterable[int], weights: Weights) -> dict[int, dict[str, float]]:
        """Raw score of each token that counts in each of ``places`` (those of the best way to say each concept); they sum to
        the record's raw score."""
        parts: dict[int, dict[str, float]] = {place: {} for place in places}
        held = {token: self._held(token, parts, weights) for token in self.postings}
        for concept in self.question.concepts:
            for place, own in parts.items():
                ways = [{token: held[token][place] for token in way if place in held[token]} for way in concept.ways]
                settled_by_own = concept.asked and len(ways[0]) == len(concept.ways[0])
                best = ways[0] if settled_by_own else max(ways, key=_worth)
                own.update(best)
        return parts

    def _held(self, token: str, places: Iterable[int], weights: Weights) -> dict[int, float]:
        """What the token is worth in each of ``places`` that holds it."""
        holding, counts = self.postings[token]
        lengths, worth, found = self.candidates.corpus.lengths, self.idf[token] * (weights.k1 + 1), dict[int, float]()
        for place in places:
            at = bisect_left(holding, place)
            if at < len(holding) and holding[at] == place:
                flat = weights.k1 * (1 - weights.b)
                found[place] = worth * counts[at] / (counts[at] + flat + weights.k1 * weights.b / self.length * lengths[place])
        return found

    def coverage(self, held: Iterable[str]) -> float:
        """Share (0..1) of the query's word weight (idf) among the tokens ``held``; a glossary row that brought one of them
        counts as one more mean word, so that an answer in the other language can cover a query."""
        total = sum(self.idf[word] for word in self.question.words)
        if not total:
            return 0.0
        found = set(held)
        own = sum(self.idf[word] for word in self.question.words if word in found)
        rows = len({row for token, row in self.question.added.items() if token in found})
        return min(1.0, (own + rows * total / len(self.question.words)) / total)


def _worth(way: Mapping[str, float]) -> float:
    return sum(way.values())


def score_lexical(question: Question, candidates: Candidates, weights: Weights, *, arrays: bool = False) -> Lexical:
    """BM25 of every candidate, each concept of the question counting as its best way to be said.

    The number of records, their mean length and document frequencies are those of the candidates. Records without a token
    score 0. ``arrays`` adds up with numpy, which is loaded for very many postings in any case; both ways give the same scores.
    """
    postings = candidates.corpus.postings(question.tokens)
    many = sum(len(places) for places, _ in postings.values()) >= ARRAYS_FROM
    found = _arrays(question, candidates, postings, weights) if arrays or many else tally(question, candidates, postings, weights)
    full = sum(found.idf[word] for word in question.words)
    fixed = Moments(0.0, full / weights.lexical_span, 1, full)
    balance = settled({lang: _moments(found, lang, candidates.sizes[lang]) for lang in LANGS}, fixed, weights.minimum_group)
    several = None if found.raw is None else found.raw.__getitem__
    scores = Scores(found.value, found.top, balance, 0.0, weights.lexical, weights.widest, candidates.count, found.raw, several)
    return Lexical(scores, found.idf, postings, found.length, question, candidates)


def _arrays(question: Question, candidates: Candidates, postings: Mapping[str, Postings], weights: Weights) -> Tally:
    from kb.search.tally_arrays import tally_arrays  # numpy: not for a words-only search of a usual collection

    return tally_arrays(question, candidates, postings, weights)


def _moments(found: Tally, lang: Lang, size: int) -> Moments:
    """Over all candidates of the language, those without a token counting as 0."""
    return moments(size, *found.sums[lang])
