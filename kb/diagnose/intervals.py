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


def merged(starts: Array, ends: Array) -> tuple[Array, Array]:
    """The union of the intervals as disjoint ones in ascending order; touching ones become one."""
    real = ends > starts
    order = np.argsort(starts[real], kind="stable")
    starts, ends = starts[real][order], ends[real][order]
    if not len(starts):
        return starts, ends
    reach = np.maximum.accumulate(ends)
    first = np.concatenate(([True], starts[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return starts[first], reach[last]


def complement(starts: Array, ends: Array, window: tuple[int, int]) -> tuple[Array, Array]:
    """What of ``window`` (begin, end) no interval covers, disjoint and ascending."""
    low, high = window
    starts, ends = merged(*clipped(starts, ends, window))
    begins = np.concatenate((np.array([low], np.int64), ends))
    stops = np.concatenate((starts, np.array([high], np.int64)))
    real = stops > begins
    return begins[real], stops[real]


def covered_by(begins: Array, stops: Array, starts: Array, ends: Array) -> Array:
    """How much (ns) of each interval ``[begins[i], stops[i])`` the union of ``[starts[j], ends[j])`` covers, shape of ``begins``."""
    starts, ends = merged(starts, ends)
    if not len(starts):
        return np.zeros(len(begins), np.int64)
    before = np.concatenate(([0], np.cumsum(ends - starts)))

    def until(times: Array) -> Array:
        place = np.searchsorted(starts, times, side="right")
        inside = np.maximum(ends[place - 1] - times, 0)
        return np.where(place > 0, before[place] - np.where(place > 0, inside, 0), 0)

    return np.asarray(until(stops) - until(begins), np.int64)


def common(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    """The intersection of two sets of disjoint ascending intervals, disjoint and ascending."""
    edges = np.unique(np.concatenate((*first, *second)))
    if len(edges) < 2:
        return edges[:0], edges[:0]
    begins, stops = edges[:-1], edges[1:]
    both = (covered_by(begins, stops, *first) > 0) & (covered_by(begins, stops, *second) > 0)
    return merged(begins[both], stops[both])


def without(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    """What of ``first`` (disjoint, ascending) ``second`` does not cover, disjoint and ascending."""
    edges = np.unique(np.concatenate((*first, *second)))
    if len(edges) < 2:
        return edges[:0], edges[:0]
    begins, stops = edges[:-1], edges[1:]
    kept = (covered_by(begins, stops, *first) > 0) & (covered_by(begins, stops, *second) == 0)
    return merged(begins[kept], stops[kept])
