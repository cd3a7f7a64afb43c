"""The plain scan: every product, no index. The oracle of the other kinds and the quickest start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from kb.index.matrix import Matrix, grouped
from kb.index.ranking import even_product, ranked, unasked

if TYPE_CHECKING:
    from kb.domain.protocols import Ids, Vectors

GATHER_BELOW: Final = 0.15
"""Share of rows below which copying the allowed ones beats multiplying all (512 numbers a row: 3 against 16 ms for
5 % of 100,000, 25 against 16 ms for 30 %)."""


EVEN_FROM: Final = 0.05
"""Wanted share of the rows from which a slower product that needs no repair wins: 22 against 16 ms for 100,000 rows,
where repairing the near-ties of a full answer takes 280 ms."""


class ExactIndex:
    """``kb.domain.protocols.Index`` over ``ids`` (n,) and ``vectors`` (n, dim), rows of length 1 or 0.

    Memory-mapped arrays are used in place: nothing is copied or changed.
    """

    kind = "exact"

    def __init__(self, ids: Ids, vectors: Vectors) -> None:
        self._matrix: Matrix = grouped(ids, vectors)
        self.dim = self._matrix.dim

    def __len__(self) -> int:
        return len(self._matrix.codes)

    def search(self, query: Vectors, k: int, *, allowed: Ids | None = None) -> tuple[Ids, Vectors]:
        """The ``k`` best distinct ids and their scores; see the protocol. Raises UsageError for a query of another shape."""
        matrix = self._matrix
        query = matrix.checked(query, k)
        rows = matrix.rows_of(allowed)
        if k == 0 or not query.any():
            return unasked(matrix, rows, k)
        even = k * matrix.largest >= EVEN_FROM * (len(self) if rows is None else len(rows))
        product = even_product if even else np.matmul
        if rows is None:
            scores = product(matrix.vectors, query)
        elif len(rows) < GATHER_BELOW * len(self):
            scores = product(matrix.vectors[rows], query)
        else:
            scores = product(matrix.vectors, query)[rows]
        return ranked(matrix, rows, scores, query, k, even=even)
