"""The discrete events of ranks against plain oracles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.errors import InternalFaultError
from kb.profile.simulated.engine import Record, run_step
from kb.profile.simulated.plan import HOST_CAUSES, IDLE_CAUSES, Call, HostCosts, HostEvent, IdleCause, Plan

times = st.lists(st.tuples(st.integers(1, 100), st.integers(1, 60)), min_size=2, max_size=40)
ENDLESS = 10**6
QUEUE = IDLE_CAUSES.index("queue")


def plan(rows: list[tuple[int, int]], depth: int, **changes: object) -> Plan:
    parts: dict[str, object] = {"before": {}, "calls": {}, "joins": frozenset(), **changes}
    return Plan(durations=[d for d, _ in rows], launches=[c for _, c in rows], depth=depth, **parts)  # type: ignore[arg-type]


def go(rows: list[tuple[int, int]], depth: int, gap: int = 0, **changes: object) -> Record:
    return run_step({0: plan(rows, depth, **changes)}, {0: 100}, HostCosts(gap=gap, sync_return=5))[0]


@given(times, st.integers(1, 6))
def test_time_is_busy_plus_named_idle(rows: list[tuple[int, int]], depth: int) -> None:
    record = go(rows, depth, 3)
    assert record.ends[-1] - 100 == sum(d for d, _ in rows) + sum(sum(wait) for wait in record.waits)
    assert all(part >= 0 for wait in record.waits for part in wait)
    assert record.end == record.ends[-1] + 5


@given(times, st.integers(1, 6))
def test_queue_idle_is_exactly_what_an_endless_queue_saves(rows: list[tuple[int, int]], depth: int) -> None:
    limited, endless = go(rows, depth), go(rows, ENDLESS)
    queue = sum(wait[QUEUE] for wait in limited.waits)
    assert limited.end - endless.end == queue
    assert sum(wait[QUEUE] for wait in endless.waits) == 0


@given(times, st.integers(1, 6))
def test_a_deeper_queue_is_never_slower(rows: list[tuple[int, int]], depth: int) -> None:
    assert go(rows, depth + 1, 3).end <= go(rows, depth, 3).end


@given(times, st.integers(1, 6))
def test_no_more_than_the_depth_is_ever_unfinished(rows: list[tuple[int, int]], depth: int) -> None:
    record = go(rows, depth)
    begins = {place: begin for place, begin, _ in record.launched}
    for place in range(depth, len(rows)):
        assert begins[place] >= record.ends[place - depth]


@given(times, st.integers(1, 6))
def test_littles_law_holds_for_the_queue(rows: list[tuple[int, int]], depth: int) -> None:
    # Launches wait or run: mean number in the system x span = sum of the times from launch to end.
    record = go(rows, depth)
    begins = [begin for _, begin, _ in record.launched]
    span = record.ends[-1] - begins[0]
    events = sorted([(begin, 1) for begin in begins] + [(end, -1) for end in record.ends])
    area, inside, last = 0, 0, begins[0]
    for when, change in events:
        area += inside * (when - last)
        inside, last = inside + change, when
    assert area == sum(end - begin for begin, end in zip(begins, record.ends, strict=True))
    assert area <= depth * span + sum(c for _, c in rows)


@given(times, st.integers(1, 6))
def test_kernels_follow_their_launch_and_each_other(rows: list[tuple[int, int]], depth: int) -> None:
    record = go(rows, depth, 3)
    assert all(start >= launched for start, (_, _, launched) in zip(record.starts, record.launched, strict=True))
    assert all(later >= earlier + 3 for later, earlier in zip(record.starts[1:], record.ends, strict=False))


@given(st.lists(st.integers(1, 100), min_size=2, max_size=40))
def test_one_launch_submits_the_whole_segment(durations: list[int]) -> None:
    rows = [(duration, 60 if place == 0 else 0) for place, duration in enumerate(durations)]
    record = go(rows, ENDLESS)
    assert record.starts == [160 + sum(durations[:place]) for place in range(len(durations))]
    assert len(record.launched) == 1


@given(times, st.sampled_from(HOST_CAUSES), st.integers(1, 500), st.integers(0, 39))
def test_a_host_pause_costs_at_most_itself_and_is_named(rows: list[tuple[int, int]], cause: IdleCause, ns: int, at: int) -> None:
    place = at % len(rows)
    paused = go(rows, ENDLESS, before={place: [HostEvent("pause", "other", cause, ns)]})
    plain = go(rows, ENDLESS)
    named = sum(wait[IDLE_CAUSES.index(cause)] for wait in paused.waits)
    assert paused.end - plain.end == named
    assert 0 <= named <= ns


def call(*members: int, key: str = "a", blocking: bool = True, eager: bool = False) -> Call:
    return Call((key,), members, blocking, eager)


def test_a_collective_starts_when_the_last_rank_has_come_and_ends_for_all_together() -> None:
    plans = {rank: plan([(100 + 50 * rank, 1), (20, 1), (10, 1)], ENDLESS, calls={1: call(0, 1)}) for rank in (0, 1)}
    records = run_step(plans, {0: 0, 1: 0}, HostCosts(gap=0, sync_return=0))
    assert records[0].ends[1] == records[1].ends[1] == 151 + 20
    assert (records[0].starts[1], records[1].starts[1]) == (101, 151)
    assert {record.met[1] for record in records.values()} == {151}
    assert all(record.starts[2] >= record.ends[1] for record in records.values())


def test_an_asynchronous_collective_runs_beside_kernels_until_somebody_joins() -> None:
    rows = [(10, 1), (40, 1), (30, 1), (10, 1)]
    plans = {rank: plan(rows, ENDLESS, calls={1: call(0, 1, blocking=False)}, joins=frozenset({3})) for rank in (0, 1)}
    record = run_step(plans, {0: 0, 1: 0}, HostCosts(gap=0, sync_return=0))[0]
    assert record.starts[2] < record.ends[1]
    assert record.starts[3] == record.ends[1]


def test_a_receive_waits_for_the_send_and_a_send_for_nobody() -> None:
    sender = plan([(500, 1), (20, 1)], ENDLESS, calls={1: call(0, 1, key="f", blocking=False, eager=True)})
    receiver = plan([(20, 1), (10, 1)], ENDLESS, calls={0: Call(("receive", "f"), (0, 1), True)})
    records = run_step({0: sender, 1: receiver}, {0: 0, 1: 0}, HostCosts(gap=0, sync_return=0))
    assert records[1].ends[0] == records[0].ends[1]
    assert records[1].starts[1] == records[1].ends[0]


def test_ranks_that_wait_for_each_other_are_reported() -> None:
    plans = {
        0: plan([(1, 1), (1, 1)], ENDLESS, calls={0: call(0, 1, key="a"), 1: call(0, 1, key="b")}),
        1: plan([(1, 1), (1, 1)], ENDLESS, calls={0: call(0, 1, key="b"), 1: call(0, 1, key="a")}),
    }
    with pytest.raises(InternalFaultError, match="wait for each other"):
        run_step(plans, {0: 0, 1: 0}, HostCosts(gap=0, sync_return=0))


def test_independent_kernels_share_the_cores_of_two_streams() -> None:
    rows = [(100, 1), (100, 1), (100, 1)]
    needs: list[tuple[int, ...]] = [(), (), (0, 1)]
    half = go(rows, ENDLESS, needs=needs, shares=[0.5, 0.5, 0.5], streams=2)
    whole = go(rows, ENDLESS, needs=needs, shares=[1.0, 1.0, 1.0], streams=2)
    assert half.starts[1] < half.ends[0]
    assert whole.starts[1] >= whole.ends[0]
    assert half.starts[2] >= max(half.ends[:2])
