from __future__ import annotations

import pytest
from diagnose.factories import Kernel, made

from kb.diagnose.steps import candidates, complete_steps, representative, rows_of


def trace(step: str, length: int) -> dict[str, object]:
    return {"step_id": step, "computing_ns": length}


def test_the_representative_is_the_lower_median_of_the_real_steps() -> None:
    run = made(trace=[trace("1", 50), trace("2", 10), trace("3", 30), trace("4", 20)])
    chosen = representative(complete_steps(run))
    assert chosen is not None
    assert (chosen.label, chosen.step_ns) == ("4", 20)


def test_warm_up_steps_never_represent_a_run_that_has_others() -> None:
    run = made(trace=[trace("1", 900), trace("2", 10), trace("3", 30)], steps=[("1", 0, 900, 1), ("2", 900, 910, 0), ("3", 910, 940, 0)])
    assert [step.label for step in candidates(complete_steps(run))] == ["2", "3"]


def test_a_run_of_warm_up_steps_alone_still_has_a_representative() -> None:
    run = made(steps=[("1", 0, 900, 1)])
    assert representative(complete_steps(run)) is not None


def test_totals_decide_the_length_where_the_exporter_gives_them() -> None:
    run = made(trace=[{"step_id": "1", "computing_ns": 70, "free_ns": 30}], steps=[("1", 0, 500, 0)])
    (step,) = complete_steps(run)
    assert step.step_ns == 100


def test_a_marker_without_an_end_is_no_complete_step() -> None:
    assert [step.label for step in complete_steps(made(steps=[("1", 0, 50, 0), ("2", 50, -1, 0)]))] == ["1"]


def test_kernels_without_ids_are_one_step() -> None:
    (step,) = complete_steps(made(kernels=[Kernel(op_type="Add", start=10, duration=5), Kernel(op_type="Add", start=30, duration=5)]))
    assert step.step_ns == 25


def test_kernels_with_ids_are_one_step_an_id() -> None:
    kernels = [Kernel(op_type="Add", start=start, duration=5, step=step) for start, step in ((0, "a"), (10, "a"), (40, "b"))]
    assert [(step.label, step.step_ns) for step in complete_steps(made(kernels=kernels))] == [("a", 15), ("b", 5)]


@pytest.mark.parametrize(("steps", "expected"), [([trace("1", 9)], 2), ([trace("1", 9), trace("2", 9)], 0)])
def test_rows_of_unknown_step_are_used_only_when_there_is_one_step(steps: list[dict[str, object]], expected: int) -> None:
    run = made(trace=steps, kernels=[Kernel(op_type="Add", start=0), Kernel(op_type="Add", start=200)])
    found = complete_steps(run)
    assert len(rows_of(run.tables["kernels"], found[0], only=len(found) == 1)) == expected


def test_a_marker_takes_the_kernels_that_run_inside_it() -> None:
    kernels = [Kernel(op_type="Add", start=start, duration=10) for start in (0, 95, 150, 205)]
    run = made(kernels=kernels, steps=[("1", 100, 200, 0)])
    assert rows_of(run.tables["kernels"], complete_steps(run)[0], only=True).tolist() == [1, 2]
