"""Lengths of unions of time intervals: the arithmetic under the accounting."""

from __future__ import annotations

import numpy as np

from kb.session.session import Array


def union_length(starts: Array, ends: Array) -> int:
    """Time covered by at least one of the half-open intervals ``[starts[i], ends[i])``, in ns.

    Both arrays are int64 of one shape (n,), in any order. Empty or reversed intervals cover nothing.
    What a set A adds to a set B is ``union_length(A and B) - union_length(B)``.
    """
    real = ends > starts
    if not real.any():
        return 0
    starts, ends = starts[real], ends[real]
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    before = np.empty_like(starts)
    before[0] = starts[0]
    before[1:] = reach[:-1]
    return int(np.maximum(ends - np.maximum(starts, before), 0).sum())


def clipped(starts: Array, ends: Array, window: tuple[int, int]) -> tuple[Array, Array]:
    """The intervals cut to ``window`` (begin, end); those outside become empty."""
    low, high = window
    return np.clip(starts, low, high), np.clip(ends, low, high)
