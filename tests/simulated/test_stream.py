"""The discrete events of one stream against plain oracles."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kb.profile.simulated.stream import HostCosts, Segment, run_segment

times = st.lists(st.tuples(st.integers(1, 100), st.integers(1, 60)), min_size=2, max_size=40)
COSTS = HostCosts(gap=0, sync_return=5, work=0)
GAPPED = HostCosts(gap=3, sync_return=5, work=0)
ENDLESS = 10**6


def go(rows: list[tuple[int, int]], depth: int, costs: HostCosts = COSTS) -> Segment:
    return run_segment([d for d, _ in rows], [c for _, c in rows], idle_since=90, begin=100, depth=depth, costs=costs)


@given(times, st.integers(1, 6))
def test_time_is_busy_plus_named_idle(rows: list[tuple[int, int]], depth: int) -> None:
    segment = go(rows, depth, GAPPED)
    end = segment.starts[-1] + rows[-1][0]
    assert end - 90 == sum(d for d, _ in rows) + sum(sum(wait) for wait in segment.waits)
    assert all(part >= 0 for wait in segment.waits for part in wait)
    assert segment.resume == end + 5


@given(times, st.integers(1, 6))
def test_queue_idle_is_exactly_what_an_endless_queue_saves(rows: list[tuple[int, int]], depth: int) -> None:
    limited, endless = go(rows, depth), go(rows, ENDLESS)
    queue = sum(wait[2] for wait in limited.waits)
    assert limited.resume - endless.resume == queue
    assert sum(wait[2] for wait in endless.waits) == 0


@given(times, st.integers(1, 6))
def test_a_deeper_queue_is_never_slower(rows: list[tuple[int, int]], depth: int) -> None:
    assert go(rows, depth + 1, GAPPED).resume <= go(rows, depth, GAPPED).resume


@given(times, st.integers(1, 6))
def test_no_more_than_the_depth_is_ever_unfinished(rows: list[tuple[int, int]], depth: int) -> None:
    segment = go(rows, depth)
    ends = [start + duration for start, (duration, _) in zip(segment.starts, rows, strict=True)]
    for place in range(depth, len(rows)):
        assert segment.launch_starts[place] >= ends[place - depth]


@given(times, st.integers(1, 6))
def test_kernels_follow_their_launch_and_each_other(rows: list[tuple[int, int]], depth: int) -> None:
    segment = go(rows, depth, GAPPED)
    assert all(start >= launched for start, launched in zip(segment.starts, segment.launch_ends, strict=True))
    ends = [start + duration for start, (duration, _) in zip(segment.starts, rows, strict=True)]
    assert all(later >= earlier + 3 for later, earlier in zip(segment.starts[1:], ends, strict=False))


@given(st.lists(st.integers(1, 100), min_size=2, max_size=40))
def test_one_launch_submits_the_whole_segment(durations: list[int]) -> None:
    segment = run_segment(durations, [60], idle_since=100, begin=100, depth=1, costs=COSTS)
    assert segment.starts == [160 + sum(durations[:place]) for place in range(len(durations))]
    assert len(segment.launch_starts) == 1
