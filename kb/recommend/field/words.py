"""Which words speak for which cause: counts of documents by word and cause, smoothed towards the common background."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kb.domain.catalogue import CauseId
from kb.recommend.field.documents import CaseDocument, CauseDocument
from kb.recommend.field.weights import FieldWeights

if TYPE_CHECKING:
    Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]
    Row = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class WordModel:
    """``counts`` (causes, words): in how many documents of the cause the word stands; ``columns``: column by word."""

    causes: tuple[CauseId, ...]
    columns: Mapping[str, int]
    counts: Matrix

    def without(self, document: CaseDocument) -> WordModel:
        """The model that never saw ``document``."""
        counts = self.counts.copy()
        counts[self.causes.index(document.cause), [self.columns[token] for token in document.tokens]] -= 1
        return WordModel(self.causes, self.columns, counts)


def fit_words(definitions: Sequence[CauseDocument], cases: Iterable[CaseDocument], weights: FieldWeights) -> WordModel:
    """Counts over the definitions and the cases."""
    cases = list(cases)
    columns: dict[str, int] = {}
    for tokens in (document.tokens for group in (definitions, cases) for document in group):
        for token in sorted(tokens):
            columns.setdefault(token, len(columns))
    for definition in definitions:
        for token in sorted(definition.answers):
            columns.setdefault(token, len(columns))
    causes = tuple(document.cause for document in definitions)
    counts = np.zeros((len(causes), len(columns)), dtype=np.float32)
    for row, definition in enumerate(definitions):
        counts[row, [columns[token] for token in definition.tokens]] += weights.definition
        counts[row, [columns[token] for token in definition.answers]] += weights.answers * np.array([*definition.answers.values()])
    places = {cause: row for row, cause in enumerate(causes)}
    for case in cases:
        counts[places[case.cause], [columns[token] for token in case.tokens]] += 1
    return WordModel(causes, columns, counts)


def word_evidence(model: WordModel, asked: Mapping[str, float], weights: FieldWeights) -> tuple[Matrix, tuple[str, ...]]:
    """(causes, words) log likelihood ratios of each asked word against the background, times its weight; and those words.
    Words that no document holds say nothing and are left out."""
    known = [token for token in asked if token in model.columns]
    columns = [model.columns[token] for token in known]
    total, sizes = model.counts.sum(), model.counts.sum(axis=1)
    background = model.counts[:, columns].sum(axis=0) / max(float(total), 1.0)
    held = background > 0
    chosen = np.array(columns, dtype=np.int64)[held]
    background = background[held]
    share = (model.counts[:, chosen] + weights.smoothing * background) / (sizes[:, None] + weights.smoothing)
    loud = np.array([asked[token] for token in known], dtype=np.float32)[held]
    return np.log(share / background) * loud, tuple(token for token, kept in zip(known, held, strict=True) if kept)
