"""Which vectors speak for which cause: ridge regression from sentence vectors onto causes, solved in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kb.domain.catalogue import CauseId
from kb.recommend.field.documents import CaseDocument, CauseDocument
from kb.recommend.field.weights import FieldWeights

if TYPE_CHECKING:
    from kb.domain.protocols import Vectors

    Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
    Row = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class MeaningSums:
    """Sums over all vectors, centred on ``mean`` (dim,): ``gram`` (dim, dim) and ``cross`` (dim, causes) with the centred labels."""

    causes: tuple[CauseId, ...]
    mean: Row
    prior: Row
    gram: Matrix
    cross: Matrix

    def without(self, document: CaseDocument) -> MeaningSums:
        """The sums that never saw the label of ``document``."""
        own = document.vectors.astype(np.float64) - self.mean
        gram, cross = _sums(own, np.ones(len(own)), [self.causes.index(document.cause)] * len(own), self.prior)
        return MeaningSums(self.causes, self.mean, self.prior, self.gram - gram, self.cross - cross)


def meaning_sums(definitions: Sequence[CauseDocument], cases: Sequence[CaseDocument], weights: FieldWeights) -> MeaningSums:
    """Sums over the definitions (each of their vectors weighing ``definition_vectors``) and the cases."""
    causes = tuple(document.cause for document in definitions)
    places = {cause: row for row, cause in enumerate(causes)}
    spoken = [(document.cause, document.vectors) for group in (definitions, cases) for document in group]
    rows = np.concatenate([vectors for _, vectors in spoken]).astype(np.float64)
    labels = [places[cause] for cause, vectors in spoken for _ in vectors]
    defined = sum(len(document.vectors) for document in definitions)
    weight = np.ones(len(rows))
    weight[:defined] = weights.definition_vectors
    total = weight.sum()
    mean = weight @ rows / total
    prior = np.bincount(labels, weights=weight, minlength=len(causes)) / total
    gram, cross = _sums(rows - mean, weight, labels, prior)
    return MeaningSums(causes, mean, prior, gram, cross)


def _sums(rows: Matrix, weight: Row, labels: Sequence[int], prior: Row) -> tuple[Matrix, Matrix]:
    target = np.zeros((len(rows), len(prior)))
    target[np.arange(len(rows)), labels] = 1.0
    weighed = rows * weight[:, None]
    return weighed.T @ rows, weighed.T @ (target - prior)


def solved(sums: MeaningSums, weights: FieldWeights) -> Matrix:
    """(dim, causes) coefficients for centred vectors."""
    return np.asarray(np.linalg.solve(sums.gram + weights.ridge * np.eye(len(sums.mean)), sums.cross), np.float64)


def meaning_evidence(coefficients: Matrix, mean: Row, vectors: Vectors) -> Row:
    """(causes,) the mean over the question's vectors (n, dim) of what each says."""
    found: Row = ((vectors.astype(np.float64) - mean) @ coefficients).mean(axis=0)
    return found
