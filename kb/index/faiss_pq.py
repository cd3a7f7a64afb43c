"""Large collections in a process that lives long: a scan over half a byte a pair of numbers, then exact products of the best."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import faiss
import numpy as np

from kb.index.exact import ExactIndex
from kb.index.matrix import grouped
from kb.index.ranking import ranked, unasked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kb.domain.protocols import Ids, Vectors
    from kb.index.matrix import Rows

TRAINING_ROWS: Final = 20_000
"""Rows the code books are fitted to: 16 points for a pair of numbers need no more, and training takes 2 s."""
ADDED_ROWS: Final = 50_000
"""Rows coded at a time, which bounds the copies of a mapped matrix."""
OVERFETCH: Final = 100
"""Rows multiplied exactly for each one wanted: among 200,000 random vectors 20 found .975 and 100 all of the ten nearest."""
LEAST: Final = 1000
EXACT_BELOW: Final = 0.02
"""Allowed share of the rows under which the plain scan over them wins."""
COARSE_BELOW: Final = 0.2
"""Share of the rows beyond which fetching them costs more than the plain scan."""


class FaissPqIndex:
    """``kb.domain.protocols.Index`` on ``faiss.IndexPQFastScan`` (4 bits for two numbers), approximate: scores are exact, but a
    neighbour can be missed.

    Every row is looked at, so that recall does not hang on how the vectors cluster: 200,000 x 512 random vectors take 3 ms on one
    core, a thirteenth of the plain product. A restriction keeps its share of what the scan finds, and more is fetched in return.
    ``vectors`` (n, dim) are used in place for the exact products. Importing this module loads FAISS (0.23 s).
    """

    kind = "pq"

    def __init__(self, ids: Ids, vectors: Vectors) -> None:
        self._matrix = grouped(ids, vectors)
        self.dim = self._matrix.dim
        self._plain = ExactIndex(ids, vectors)
        self._scan = coarse_scan(self._matrix.vectors) if scannable(len(self), self.dim) else None

    def __len__(self) -> int:
        return len(self._matrix.codes)

    def search(self, query: Vectors, k: int, *, allowed: Ids | None = None) -> tuple[Ids, Vectors]:
        """The ``k`` best distinct ids found and their scores; see the protocol. Raises UsageError for a query of another shape."""
        matrix = self._matrix
        query = matrix.checked(query, k)
        rows = matrix.rows_of(allowed)
        if k == 0 or not query.any():
            return unasked(matrix, rows, k)
        share = 1.0 if rows is None else len(rows) / max(1, len(self))
        wanted = max(LEAST, k * matrix.largest * OVERFETCH)
        if self._scan is None or share < EXACT_BELOW or wanted / share > COARSE_BELOW * len(self):
            return self._plain.search(query, k, allowed=allowed)
        near = nearest_rows(self._scan, query, int(wanted / share))
        if rows is not None:
            near = np.intersect1d(near, rows, assume_unique=True)
        return ranked(matrix, near, matrix.vectors[near] @ query, query, k)


def scannable(rows: int, dim: int) -> bool:
    """Whether there is anything to gain and enough to fit code books to."""
    return dim % 2 == 0 and rows >= TRAINING_ROWS


def coarse_scan(vectors: Vectors) -> Any:
    """A scan over ``vectors`` (n, dim); see ``scannable``."""
    make: Any = faiss.IndexPQFastScan
    scan = make(vectors.shape[1], vectors.shape[1] // 2, 4, faiss.METRIC_INNER_PRODUCT)
    every = max(1, len(vectors) // TRAINING_ROWS)
    with _single():
        scan.train(np.ascontiguousarray(vectors[::every][:TRAINING_ROWS]))
        for start in range(0, len(vectors), ADDED_ROWS):
            scan.add(np.ascontiguousarray(vectors[start : start + ADDED_ROWS]))
    return scan


def nearest_rows(scan: Any, query: Vectors, count: int) -> Rows:
    """About the ``count`` nearest rows, ascending."""
    with _single():
        found: Rows = scan.search(query[None, :], count)[1][0]
    return np.sort(found[found >= 0])


@contextmanager
def _single() -> Iterator[None]:
    """One OpenMP thread inside the block: fitting hundreds of small code books in several threads makes them wait for each other (31 s
    instead of 2 on two busy cores), and the scan is over in milliseconds."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
