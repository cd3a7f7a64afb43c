"""BM25 over the store's postings, with the statistics of the records that pass the filters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kb.domain.protocols import Posting, Store
from kb.domain.text import LANGS, Lang
from kb.search.fusion import Moments, Scores, moments, settled
from kb.search.question import Question
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
        """Raw score of each token in each of ``records``; they sum to the record's raw score."""
        parts: dict[int, dict[str, float]] = {record: {} for record in records}
        for token, rows in self.postings.items():
            for row in rows:
                if row.id in parts:
                    parts[row.id][token] = self.idf[token] * _saturated(row, self.length, weights)
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
    """BM25 of every candidate (the keys of ``languages``).

    The number of records and document frequencies are those of the candidates; the mean length is that of the
    candidates holding a query token, as postings tell no others. Records without a token score 0.
    """
    found = store.postings(question.tokens) if question.tokens else {}
    postings = {token: [row for row in found.get(token, ()) if row.id in languages] for token in question.tokens}
    idf = {token: math.log1p((len(languages) - len(rows) + 0.5) / (len(rows) + 0.5)) for token, rows in postings.items()}
    lengths = {row.id: row.length for rows in postings.values() for row in rows}
    length = sum(lengths.values()) / len(lengths) if lengths else 1.0
    raw: dict[int, float] = dict.fromkeys(lengths, 0.0)
    for token, rows in postings.items():
        weight = idf[token]
        for row in rows:
            raw[row.id] += weight * _saturated(row, length, weights)
    scores = Scores(raw, _order(raw, languages), _moments(raw, languages, sum(idf[word] for word in question.words), weights), 0.0,
                    weights.lexical, weights.widest)  # fmt: skip
    return Lexical(scores, idf, postings, length, question)


def _saturated(row: Posting, length: float, weights: Weights) -> float:
    return row.count * (weights.k1 + 1) / (row.count + weights.k1 * (1 - weights.b + weights.b * row.length / length))


def _order(raw: Mapping[int, float], languages: Mapping[int, Lang]) -> dict[Lang, list[int]]:
    order: dict[Lang, list[int]] = {lang: [] for lang in LANGS}
    for record in sorted(raw, key=lambda record: (-raw[record], record)):
        order[languages[record]].append(record)
    return order


def _moments(raw: Mapping[int, float], languages: Mapping[int, Lang], full: float, weights: Weights) -> dict[Lang, Moments]:
    """Over all candidates of each language, those without a token counting as 0. ``full`` is the idf of all the query's own words."""
    groups: dict[Lang, Moments] = {}
    members = list(languages.values())
    for lang in LANGS:
        values = [value for record, value in raw.items() if languages[record] == lang]
        groups[lang] = moments(members.count(lang), sum(values), sum(value * value for value in values), max(values, default=0.0))
    fixed = Moments(0.0, full / weights.lexical_span, 1, full)
    return settled(groups, fixed, weights.minimum_group)
