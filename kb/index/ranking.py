"""From products to an answer: what every kind of index shares, so that all kinds give one order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from kb.domain.protocols import Ids, Vectors
    from kb.index.matrix import Matrix, Rows

MARGIN: Final = 2e-6
"""Scores closer than this are computed again in float64: a float32 product of two unit vectors of some hundred numbers
is off by up to 3e-7, and by how much depends on the row's place in the matrix, so that equal vectors would differ."""
CHUNK_ROWS: Final = 4096
"""Rows multiplied in float64 at a time, which bounds the memory of an answer full of ties to 16 MiB at 512 numbers."""


def ranked(matrix: Matrix, rows: Rows | None, scores: Vectors, query: Vectors, k: int, *, even: bool = False) -> tuple[Ids, Vectors]:
    """The ``k`` best distinct ids, best first, smaller id first among equals; an id scores its best row.

    ``scores`` are float32 products of ``query`` with ``rows`` (None: all rows, in order). For ids apart by less than
    the margin they are computed again, exactly enough for equal vectors to score equally wherever they lie; ``even``
    scores come from ``even_product`` and do so already.
    """
    codes = matrix.codes if rows is None else matrix.codes[rows]
    best = _best_per_id(codes, scores, len(matrix.ids))
    order = _ordered(best, _contenders(best, k))
    near = np.diff(best[order]) >= -MARGIN
    if near.any() and not even:
        tied = np.zeros(len(best), dtype=bool)
        tied[order[:-1][near]] = tied[order[1:][near]] = True
        close = np.flatnonzero(tied[codes] & (scores >= best[codes] - MARGIN))
        again = _products(matrix.vectors, close if rows is None else rows[close], query)
        best = np.where(tied, _best_per_id(codes[close], again, len(best)), best)
        order = _ordered(best, order)
    return matrix.ids[order[:k]], best[order[:k]].astype(np.float32)


def even_product(vectors: Vectors, query: Vectors) -> Vectors:
    """``vectors @ query``, every row summed in the same order: equal rows give equal products, which BLAS does not promise."""
    products: Vectors = np.einsum("ij,j->i", vectors, query)
    return products


def unasked(matrix: Matrix, rows: Rows | None, k: int) -> tuple[Ids, Vectors]:
    """The answer to a query without content: every score is 0, so the smallest ids come first."""
    smallest = matrix.ids[:k] if rows is None else matrix.ids[np.unique(matrix.codes[rows])[:k]]
    return smallest, np.zeros(len(smallest), dtype=np.float32)


def _best_per_id(codes: Rows, scores: npt.NDArray[np.floating], size: int) -> npt.NDArray[np.floating]:
    best = np.full(size, -np.inf, dtype=scores.dtype)
    np.maximum.at(best, codes, scores)
    return best


def _contenders(best: npt.NDArray[np.floating], k: int) -> Rows:
    """Places of the ``k`` best and of those that rounding may have kept from them; never one without a score."""
    floor = np.partition(best, len(best) - k)[len(best) - k] - MARGIN if k < len(best) else -np.inf
    return np.flatnonzero((best >= floor) & (best > -np.inf))


def _ordered(best: npt.NDArray[np.floating], places: Rows) -> Rows:
    order: Rows = places[np.lexsort((places, -best[places]))]
    return order


def _products(vectors: Vectors, rows: Rows, query: Vectors) -> npt.NDArray[np.float64]:
    wide = query.astype(np.float64)
    chunks = (rows[start : start + CHUNK_ROWS] for start in range(0, len(rows), CHUNK_ROWS))
    # Summed row by row, unlike a matrix product, and rounded so that the two kinds of score compare alike.
    products = np.concatenate([(vectors[chunk].astype(np.float64) * wide).sum(axis=1) for chunk in chunks])
    return products.astype(np.float32).astype(np.float64)
