"""What answered a cause before: the catalogue's list as prior, past cases on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kb.domain.catalogue import Catalogue
from kb.recommend.field.documents import CaseDocument, answers_to
from kb.recommend.field.weights import FieldWeights

if TYPE_CHECKING:
    Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def answer_counts(catalogue: Catalogue, cases: Sequence[CaseDocument], weights: FieldWeights) -> Matrix:
    """(causes, strategies) weight of each strategy as the answer to each cause, in the catalogue's order of both.

    A change that was tried and did not help is no answer; one that was only suggested is.
    """
    causes = {cause: row for row, cause in enumerate(catalogue.causes)}
    strategies = {strategy: column for column, strategy in enumerate(catalogue.strategies)}
    counts = np.zeros((len(causes), len(strategies)))
    for cause, row in causes.items():
        named = answers_to(catalogue.causes[cause], catalogue)
        worth = weights.decay ** np.arange(len(named))
        if named:
            counts[row, [strategies[name] for name in named]] = weights.prior * worth / worth.sum()
    for case in cases:
        for name, helped in case.tried:
            if helped is not False:
                counts[causes[case.cause], strategies[name]] += 1
    return counts


def outcomes(catalogue: Catalogue, cases: Sequence[CaseDocument]) -> Matrix:
    """(strategies, 2) how often each was tried with a reported result, and how often it helped."""
    strategies = {strategy: row for row, strategy in enumerate(catalogue.strategies)}
    counts = np.zeros((len(strategies), 2))
    for case in cases:
        for name, helped in case.tried:
            if helped is not None:
                counts[strategies[name]] += (1, helped)
    return counts
