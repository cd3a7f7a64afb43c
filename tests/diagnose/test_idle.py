"""Idle time split by cause: exclusive, complete, and true to the simulator where the books come from files."""

from __future__ import annotations

import numpy as np
from diagnose.cases import hosted, late_launches, one, paused
from diagnose.factories import view_of
from diagnose.scenes import Scene
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.diagnose.intervals import common, complement, covered_by, merged, union_length, without

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=8)


def arrays(spans: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.array([start for start, _ in spans], np.int64)
    return starts, starts + np.array([length for _, length in spans], np.int64)


def points(intervals: tuple[np.ndarray, np.ndarray]) -> set[int]:
    return {point for begin, end in zip(*(side.tolist() for side in intervals), strict=True) for point in range(begin, end)}


@given(SPANS, SPANS)
def test_interval_sets_agree_with_sets_of_points(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    one_side, other = arrays(first), arrays(second)
    left, right = merged(*one_side), merged(*other)
    assert points(left) == points(one_side)
    assert points(common(left, right)) == points(left) & points(right)
    assert points(without(left, right)) == points(left) - points(right)
    assert points(complement(*one_side, (5, 50))) == set(range(5, 50)) - points(one_side)
    assert covered_by(*left, *other).sum() == len(points(left) & points(right))


HOSTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["aclrtSynchronizeStream", "enumerate(DataLoader)#x", "gc", "torch.save", "launch", "aclrtMalloc", "barrier", "aten::add"]
        ),
        st.integers(0, 900),
        st.integers(1, 300),
    ),
    max_size=8,
)
KERNELS = st.lists(st.tuples(st.integers(0, 900), st.integers(1, 120)), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(KERNELS, HOSTS, st.lists(st.tuples(st.integers(0, 900), st.integers(1, 60)), max_size=3))
def test_the_parts_of_any_step_sum_to_it(
    kernels: list[tuple[int, int]], hosts: list[tuple[str, int, int]], copies: list[tuple[int, int]]
) -> None:
    scene = Scene().step(0, 1200)
    for start, length in sorted(kernels):
        scene.kernel("Add", length, at=start)
    for name, start, length in hosts:
        scene.host(name, start, length)
    for start, length in copies:
        scene.copy("h2d", start, length)
    view = view_of(one(scene)[0])
    books = view.accounting
    assert books.imbalance_ns == 0
    assert all(part >= 0 for part in books.parts.values())
    assert view.books.idle is not None
    owned = [view.books.idle.owned[cause] for cause in view.books.idle.owned]
    lengths = sum(int((ends - begins).sum()) for begins, ends in owned)
    joined = union_length(np.concatenate([side[0] for side in owned]), np.concatenate([side[1] for side in owned]))
    assert lengths == joined


def test_each_pause_goes_to_its_own_part() -> None:
    expected = {
        "gc": "idle_gc",
        "torch.save": "idle_io",
        "enumerate(DataLoader)#x": "idle_input",
        "aclrtSynchronizeStream": "idle_sync",
        "barrier": "idle_peer",
    }
    for event, part in expected.items():
        books = view_of(one(paused(event, 400.0))[0]).accounting
        named = {name: spent for name, spent in books.parts.items() if name.startswith("idle_") and name != "idle_launch"}
        assert max(named, key=lambda name: named[name]) == part
        assert abs(books.parts[part] - 400_000) <= 20_000


def test_late_launches_are_launch_and_launches_ahead_leave_no_idle_time() -> None:
    late, early = (view_of(one(scene)[0]).accounting for scene in (late_launches(20.0), hosted()))
    assert late.parts["idle_launch"] == 39 * 20_000
    assert sum(spent for part, spent in early.parts.items() if part.startswith("idle_")) == 0


def test_without_host_events_idle_time_stays_unknown_and_the_books_say_so() -> None:
    books = view_of(one(Scene().kernel("Add", 10.0).kernel("Add", 10.0, gap=30.0))[0]).accounting
    assert books.parts["idle_unknown"] == 30_000
    assert any("not split" in note.en for note in books.notes)
