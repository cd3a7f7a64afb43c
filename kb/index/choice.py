"""Which kind of index to use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kb.errors import UsageError
from kb.index.exact import ExactIndex

if TYPE_CHECKING:
    from kb.domain.protocols import Ids, Index, Vectors

KINDS: Final = ("auto", "exact", "faiss", "pq")
COARSE_FROM_ROWS: Final = 200_000
"""Rows from which ``auto`` scans codes and re-ranks exactly. Loading FAISS costs 230 ms of CPU, where a scan of a
matrix over the cache costs 1 ms for 10,000 rows and 16 ms for 100,000: only a long-lived process over a large collection gains."""


def make_index(ids: Ids, vectors: Vectors, *, kind: str = "auto") -> Index:
    """An index over ``ids`` (n,) int64 and ``vectors`` (n, dim) float32 with rows of length 1 or 0; ids may repeat.

    ``exact`` and ``faiss`` give the same answers; ``pq`` finds 99 of 100 of the ten best, with exact
    scores. Raises UsageError for an unknown kind or arrays that do not fit.
    """
    if kind not in KINDS:
        raise UsageError(f"no index of kind {kind!r}", allowed=", ".join(KINDS))
    if kind == "exact" or (kind == "auto" and len(ids) < COARSE_FROM_ROWS):
        return ExactIndex(ids, vectors)
    if kind == "faiss":
        from kb.index.faiss_flat import FaissFlatIndex

        return FaissFlatIndex(ids, vectors)
    from kb.index.faiss_pq import FaissPqIndex

    return FaissPqIndex(ids, vectors)
