"""Vectors grouped by id: what every kind of index is built from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kb.errors import UsageError

if TYPE_CHECKING:
    import numpy.typing as npt

    from kb.domain.protocols import Ids, Vectors

    Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """``vectors`` (n, dim) float32; ``ids`` (u,) the distinct ids, ascending; ``codes`` (n,) the place of each row's id
    in ``ids``; ``largest`` the most rows any id has (1 for none)."""

    vectors: Vectors
    ids: Ids
    codes: Rows
    largest: int

    @property
    def dim(self) -> int:
        """Numbers in a vector."""
        return int(self.vectors.shape[1])

    def rows_of(self, allowed: Ids | None) -> Rows | None:
        """Rows whose id is in ``allowed``; None when that is every row."""
        if allowed is None:
            return None
        mask = np.isin(self.ids, allowed)
        return None if mask.all() else np.flatnonzero(mask[self.codes])

    def checked(self, query: Vectors, k: int) -> Vectors:
        """``query`` as contiguous float32 (dim,). Raises UsageError for another shape, numbers not finite, or a negative ``k``."""
        found = np.ascontiguousarray(query, dtype=np.float32)
        if found.shape != (self.dim,) or not np.isfinite(found).all():
            raise UsageError(
                f"a query of shape {found.shape}", allowed=f"{self.dim} finite numbers", do="encode it with the model of the index"
            )
        if k < 0:
            raise UsageError(f"k is {k}", allowed="0 or more")
        return found


def grouped(ids: Ids, vectors: Vectors) -> Matrix:
    """A matrix of ``ids`` (n,), in any order and repeated at will, and ``vectors`` (n, dim), copied only when not float32.

    Raises UsageError for shapes that do not belong together.
    """
    ids, vectors = np.asarray(ids, dtype=np.int64), np.asarray(vectors, dtype=np.float32)
    if ids.ndim != 1 or vectors.ndim != 2 or len(ids) != len(vectors):
        raise UsageError(f"ids {ids.shape} and vectors {vectors.shape} do not belong together", allowed="shapes (n,) and (n, dim)")
    distinct, codes, counts = np.unique(ids, return_inverse=True, return_counts=True)
    return Matrix(vectors, distinct, codes, int(counts.max(initial=1)))
