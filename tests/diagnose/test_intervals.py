from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kb.diagnose.intervals import clipped, union_length

pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(-5, 20)), max_size=25)


@given(pairs)
def test_the_union_covers_exactly_the_points_of_its_intervals(rows: list[tuple[int, int]]) -> None:
    points = {point for start, length in rows for point in range(start, start + length)}
    starts = np.array([row[0] for row in rows], np.int64)
    ends = starts + np.array([row[1] for row in rows], np.int64)
    assert union_length(starts, ends) == len(points)


@given(pairs, st.integers(0, 40), st.integers(0, 40))
def test_clipping_keeps_exactly_the_points_inside_the_window(rows: list[tuple[int, int]], begin: int, length: int) -> None:
    window = (begin, begin + length)
    points = {point for start, size in rows for point in range(start, start + size) if window[0] <= point < window[1]}
    starts = np.array([row[0] for row in rows], np.int64)
    ends = starts + np.array([row[1] for row in rows], np.int64)
    assert union_length(*clipped(starts, ends, window)) == len(points)


def test_nanoseconds_of_real_timestamps_are_exact() -> None:
    starts = np.array([1_764_246_877_073_569_641, 1_764_246_877_073_569_640], np.int64)
    assert union_length(starts, starts + 1) == 2
