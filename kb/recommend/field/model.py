"""From a question in words to likely causes and the changes that answer them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from kb.domain.catalogue import Catalogue, CauseId, StrategyId
from kb.recommend.field.answers import answer_counts, outcomes
from kb.recommend.field.documents import CaseDocument, Lessons
from kb.recommend.field.meaning import MeaningSums, meaning_evidence, meaning_sums, solved
from kb.recommend.field.weights import FieldWeights
from kb.recommend.field.words import WordModel, fit_words, word_evidence

if TYPE_CHECKING:
    from kb.domain.protocols import Vectors

    Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
    Row = np.ndarray[tuple[int], np.dtype[np.float64]]

_SPOKEN: Final = 5


@dataclass(frozen=True, slots=True)
class AskedField:
    """A question as the model reads it: weight by token, and vectors (n, dim) of its sentences; n may be 0. ``spellings`` are the words
    that tokens were made of, where they differ."""

    tokens: Mapping[str, float]
    vectors: Vectors
    spellings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FieldModel:
    """``words`` and ``coefficients`` (dim, causes) judge causes; ``answers`` (causes, strategies) are counts, ``outcomes`` (strategies,
    2) how often each was tried and helped. ``cases`` were learnt from."""

    causes: tuple[CauseId, ...]
    strategies: tuple[StrategyId, ...]
    words: WordModel
    mean: Row
    coefficients: Matrix
    answers: Matrix
    outcomes: Matrix
    cases: int


@dataclass(frozen=True, slots=True)
class FieldEvidence:
    """``probability`` (causes,) sums to 1, not calibrated; ``strategies`` (strategies,) sums to at most 1; ``spoken`` are the words that
    speak most for each cause; ``speakers`` the cause that speaks most for each strategy."""

    probability: Row
    strategies: Row
    spoken: tuple[tuple[str, ...], ...]
    speakers: tuple[CauseId, ...]


def fit_field(lessons: Lessons, catalogue: Catalogue, weights: FieldWeights) -> FieldModel:
    """The model of a casebook."""
    words = fit_words(lessons.definitions, lessons.cases, weights)
    return _model(words, meaning_sums(lessons.definitions, lessons.cases, weights), catalogue, lessons.cases, weights)


def _model(words: WordModel, sums: MeaningSums, catalogue: Catalogue, cases: Sequence[CaseDocument], weights: FieldWeights) -> FieldModel:
    return FieldModel(
        causes=words.causes,
        strategies=tuple(catalogue.strategies),
        words=words,
        mean=sums.mean,
        coefficients=solved(sums, weights),
        answers=answer_counts(catalogue, cases, weights),
        outcomes=outcomes(catalogue, cases),
        cases=len(cases),
    )


def left_out(lessons: Lessons, groups: Sequence[Sequence[int]], catalogue: Catalogue, weights: FieldWeights) -> Iterator[FieldModel]:
    """For each group (places in the cases) the model of the others: what the whole learnt minus what the group taught."""
    cases = lessons.cases
    words, sums = fit_words(lessons.definitions, cases, weights), meaning_sums(lessons.definitions, cases, weights)
    for group in groups:
        yield _without(words, sums, catalogue, cases, frozenset(group), weights)


def _without(words: WordModel, sums: MeaningSums, catalogue: Catalogue, cases: Sequence[CaseDocument], group: frozenset[int],
             weights: FieldWeights) -> FieldModel:  # fmt: skip
    for place in sorted(group):
        words, sums = words.without(cases[place]), sums.without(cases[place])
    return _model(words, sums, catalogue, [case for place, case in enumerate(cases) if place not in group], weights)


def judge(model: FieldModel, asked: AskedField, weights: FieldWeights) -> FieldEvidence:
    """How far words and vectors speak for each cause, and so for each strategy. Words and vectors are each taken in deviations over the
    causes; a question without any known word and without vectors gives every cause the same probability."""
    ratios, known = word_evidence(model.words, asked.tokens, weights)
    score = _deviations(ratios.sum(axis=1).astype(np.float64))
    if len(asked.vectors) and asked.vectors.any():
        score = score + weights.vectors * _deviations(meaning_evidence(model.coefficients, model.mean, asked.vectors))
    probability = np.exp(score - score.max())
    probability /= probability.sum()
    share = model.answers / np.maximum(model.answers.sum(axis=1, keepdims=True), 1e-12)
    joint = probability[:, None] * share
    return FieldEvidence(
        probability=probability,
        strategies=joint.sum(axis=0),
        spoken=tuple(_spoken(row, known, asked.spellings) for row in ratios),
        speakers=tuple(model.causes[place] for place in joint.argmax(axis=0)),
    )


def _spoken(row: np.ndarray[tuple[int], np.dtype[np.float32]], known: tuple[str, ...], spellings: Mapping[str, str]) -> tuple[str, ...]:
    order = np.argsort(-row, kind="stable")
    words = (spellings.get(known[place], known[place]) for place in order if row[place] > 0)
    return tuple(dict.fromkeys(words))[:_SPOKEN]


def _deviations(values: Row) -> Row:
    spread = float(values.std())
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)
