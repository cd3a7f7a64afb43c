"""BM25 over the store's postings, with the statistics of the records that pass the filters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kb.domain.protocols import Posting, Store
from kb.domain.text import LANGS, Lang
from kb.search.fusion import Moments, Scores, moments, settled
from kb.search.question import Concept, Question
from kb.search.weights import Weights


@dataclass(frozen=True, slots=True)
class Lexical:
    """``scores`` over all candidates; ``idf`` of each query token (one that no candidate holds has the highest);
    ``postings`` and ``length`` (mean tokens of the records that match) explain a single record."""

    scores: Scores
    idf: Mapping[str, float]
    postings: Mapping[str, Sequence[Posting]]
    length: float
    question: Question

    def parts(self, records: Iterable[int], weights: Weights) -> dict[int, dict[str, float]]:
        """Raw score of each token that counts in each of ``records`` (those of the best way to say each concept); they sum to
        the record's raw score."""
        parts: dict[int, dict[str, float]] = {record: {} for record in records}
        held = {
            token: {row.id: self.idf[token] * _saturated(row, self.length, weights) for row in rows if row.id in parts}
            for token, rows in self.postings.items()
        }
        for concept in self.question.concepts:
            for record, own in parts.items():
                ways = [{token: held[token][record] for token in way if record in held[token]} for way in concept.ways]
                settled_by_own = concept.asked and len(ways[0]) == len(concept.ways[0])
                worth = [sum(way.values()) for way in ways]
                own.update(ways[0] if settled_by_own else ways[worth.index(max(worth))])
        return parts

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


def score_lexical(question: Question, store: Store, languages: Mapping[int, Lang], weights: Weights) -> Lexical:
    """BM25 of every candidate (the keys of ``languages``), each concept of the question counting as its best way to be said.

    The number of records and document frequencies are those of the candidates; the mean length is that of the
    candidates holding a query token, as postings tell no others. Records without a token score 0.
    """
    tokens = question.tokens
    found = store.postings(tokens) if tokens else {}
    postings = {token: [row for row in found.get(token, ()) if row.id in languages] for token in tokens}
    idf = {token: math.log1p((len(languages) - len(rows) + 0.5) / (len(rows) + 0.5)) for token, rows in postings.items()}
    lengths = {row.id: row.length for rows in postings.values() for row in rows}
    length = sum(lengths.values()) / len(lengths) if lengths else 1.0
    raw: dict[int, float] = dict.fromkeys(lengths, 0.0)
    for concept in question.concepts:
        for record, value in _best_way(concept, postings, idf, length, weights).items():
            raw[record] += value
    order, members = _order(raw, languages), list(languages.values())
    full = sum(idf[word] for word in question.words)
    balance = _moments(raw, order, {lang: members.count(lang) for lang in LANGS}, full, weights)
    scores = Scores(raw, order, balance, 0.0, weights.lexical, weights.widest)
    return Lexical(scores, idf, postings, length, question)


def _best_way(concept: Concept, postings: Mapping[str, Sequence[Posting]], idf: Mapping[str, float], length: float,
              weights: Weights) -> dict[int, float]:  # fmt: skip
    """What the concept is worth in each record that says it: its best way, but the query's own words where a record holds
    them all."""
    best = _said(concept.ways[0], postings, idf, length, weights)
    settled_by_own = set.intersection(*({row.id for row in postings[token]} for token in concept.ways[0])) if concept.asked else set()
    for way in concept.ways[1:]:
        for record, value in _said(way, postings, idf, length, weights).items():
            if value > best.get(record, 0.0) and record not in settled_by_own:
                best[record] = value
    return best


def _said(way: Sequence[str], postings: Mapping[str, Sequence[Posting]], idf: Mapping[str, float], length: float,
          weights: Weights) -> dict[int, float]:  # fmt: skip
    """Sum of the token scores in each record; ``_saturated`` written out, as this line runs once a posting."""
    flat, slope = weights.k1 * (1 - weights.b), weights.k1 * weights.b / length
    said: dict[int, float] = {}
    for token in way:
        worth = idf[token] * (weights.k1 + 1)
        values = {row.id: worth * row.count / (row.count + flat + slope * row.length) for row in postings[token]}
        if said:
            for record, value in values.items():
                said[record] = said.get(record, 0.0) + value
        else:
            said = values
    return said


def _saturated(row: Posting, length: float, weights: Weights) -> float:
    return row.count * (weights.k1 + 1) / (row.count + weights.k1 * (1 - weights.b + weights.b * row.length / length))


def _order(raw: Mapping[int, float], languages: Mapping[int, Lang]) -> dict[Lang, list[int]]:
    """Ids of each language, best first; sorting is stable in reverse too, so that equals keep the order of their ids."""
    order: dict[Lang, list[int]] = {lang: [] for lang in LANGS}
    for record in sorted(sorted(raw), key=raw.__getitem__, reverse=True):
        order[languages[record]].append(record)
    return order


def _moments(
    raw: Mapping[int, float], order: Mapping[Lang, Sequence[int]], sizes: Mapping[Lang, int], full: float, weights: Weights
) -> dict[Lang, Moments]:
    """Over all candidates of each language, those without a token counting as 0. ``full`` is the idf of all the query's own words."""
    groups: dict[Lang, Moments] = {}
    for lang in LANGS:
        values = [raw[record] for record in order[lang]]
        groups[lang] = moments(sizes[lang], sum(values), sum(value * value for value in values), values[0] if values else 0.0)
    fixed = Moments(0.0, full / weights.lexical_span, 1, full)
    return settled(groups, fixed, weights.minimum_group)
