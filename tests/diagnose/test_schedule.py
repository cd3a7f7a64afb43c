from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.diagnose.schedule import microbatches_of_batched, operations, replay
from kb.errors import UsageError

TIMES = st.integers(1, 50)
PIPELINES = st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=5)


def longest_path(forward: list[int], backward: list[int], count: int) -> int:
    """End of the last pass by recursion over what each pass waits for: an independent way to the makespan."""
    stages = len(forward)
    orders = [operations(stage, stages, count) for stage in range(stages)]

    @cache
    def end(stage: int, place: int) -> int:
        if place < 0:
            return 0
        is_forward, index = orders[stage][place]
        waits = [end(stage, place - 1)]
        if is_forward and stage:
            waits.append(end(stage - 1, orders[stage - 1].index((True, index))))
        if not is_forward and stage < stages - 1:
            waits.append(end(stage + 1, orders[stage + 1].index((False, index))))
        return max(waits) + (forward if is_forward else backward)[stage]

    return max(end(stage, 2 * count - 1) for stage in range(stages))


@given(PIPELINES, st.integers(1, 7))
def test_the_makespan_is_the_longest_path(stages: list[tuple[int, int]], count: int) -> None:
    forward, backward = [stage[0] for stage in stages], [stage[1] for stage in stages]
    assert replay(forward, backward, count).makespan == longest_path(forward, backward, count)


@given(st.integers(1, 6), st.integers(1, 9), TIMES, TIMES)
def test_equal_stages_take_microbatches_plus_stages_less_one(stages: int, count: int, forward: int, backward: int) -> None:
    result = replay([forward] * stages, [backward] * stages, count)
    assert result.makespan == (count + stages - 1) * (forward + backward)


def test_equal_stages_are_not_always_best() -> None:
    uneven = replay([0.75, 0.5], [2.25, 1.5], 2).makespan
    assert uneven < replay([0.625, 0.625], [1.875, 1.875], 2).makespan


@given(st.integers(1, 100), st.integers(0, 100), st.integers(1, 8), st.floats(0.05, 1.0))
def test_two_stages_with_the_heavy_one_last_do_not_depend_on_the_forward_share(light: int, more: int, count: int, share: float) -> None:
    loads = [float(light), float(light + more)]
    result = replay([c * share for c in loads], [c * (1 - share) for c in loads], count)
    assert result.makespan == pytest.approx(loads[0] + count * loads[1])


def test_two_stages_with_the_heavy_one_first_do_depend_on_it() -> None:
    spans = {share: replay([9.0 * share, 3.0 * share], [9.0 * (1 - share), 3.0 * (1 - share)], 3).makespan for share in (0.25, 0.5)}
    assert spans[0.25] != spans[0.5]


def test_idle_is_what_a_stage_does_not_work() -> None:
    result = replay([1.0, 2.0], [2.0, 4.0], 2)
    assert result.idle == (result.makespan - 6.0, result.makespan - 12.0)


@given(st.integers(2, 6), st.integers(1, 12))
def test_microbatches_are_read_back_from_the_exchanges_of_the_first_stage(stages: int, count: int) -> None:
    alone = min(count, stages - 1)
    exchanges = alone + (count - alone) + alone
    assert microbatches_of_batched(exchanges, stages) == count


@pytest.mark.parametrize(("exchanges", "stages"), [(0, 2), (1, 2), (3, 4)])
def test_a_count_that_no_schedule_makes_tells_nothing(exchanges: int, stages: int) -> None:
    assert microbatches_of_batched(exchanges, stages) is None


@pytest.mark.parametrize(("forward", "backward", "count"), [([], [], 1), ([1.0], [], 1), ([1.0], [1.0], 0)])
def test_an_impossible_schedule_is_refused(forward: list[float], backward: list[float], count: int) -> None:
    with pytest.raises(UsageError):
        replay(forward, backward, count)
