"""Repeats, controls, tails, warm-up, scaling and quality of a comparison."""

from __future__ import annotations

import numpy as np
import pytest
from compare.test_comparison import run_of, simulated
from diagnose.factories import MS, SHIPPED, Kernel, in_sequence, made

from kb.compare.comparison import compare, compare_sets, middle
from kb.compare.evidence import scaling
from kb.compare.quality import judge_quality
from kb.diagnose.diagnosis import diagnose
from kb.errors import UsageError
from kb.session.session import Session


def kernels(cast: int, add: int, name: str = "run") -> Session:
    return made(kernels=in_sequence([Kernel(op_type="Cast", duration=cast), Kernel(op_type="Add", duration=add)]), name=name)


def test_repeats_are_judged_by_the_spread_between_captures() -> None:
    before = [run_of(length, length + 1, length) for length in (100, 104, 98, 102)]
    after = [run_of(length, length + 1, length) for length in (80, 82, 79, 81)]
    result = compare_sets(before, after)
    assert (result.verdict, result.captures, result.n) == ("improved", (4, 4), (12, 12))
    assert not any("single capture" in reason.en for reason in result.reasons)
    assert result.interval[0] > 0.15


def test_captures_that_scatter_as_much_as_they_differ_prove_nothing() -> None:
    before, after = ([run_of(length) for length in lengths] for lengths in ((100, 130, 90, 120), (105, 85, 125, 95)))
    assert compare_sets(before, after).verdict in ("inconclusive", "no_change")


def test_one_measured_capture_a_side_cannot_prove_a_few_percent() -> None:
    result = compare(run_of(*[100] * 20), run_of(*[95] * 20))
    assert result.verdict == "inconclusive"
    assert any("re-run interleaved" in reason.en for reason in result.reasons)
    assert compare(simulated(1000), simulated(990)).verdict == "improved"


def test_the_middle_capture_speaks_for_its_side() -> None:
    captures = [run_of(length, name=str(length)) for length in (140, 100, 120)]
    assert middle(captures).meta.name == "120"


def test_a_first_step_that_is_much_longer_is_left_out_and_said_so() -> None:
    result = compare(run_of(180, 100, 101, 99, 100), run_of(80, 81, 79, 80, 80))
    assert result.n == (4, 5)
    assert any("warm-up" in reason.en for reason in result.reasons)


def test_operators_the_change_did_not_touch_are_controls() -> None:
    result = compare(kernels(500_000, 100_000), kernels(500_000, 140_000))
    assert {delta.name for delta in result.controls} == {"Cast", "Add"}
    assert result.control_drift == pytest.approx(40 / 600)
    assert any("clock or machine" in reason.en for reason in result.reasons)


def test_causes_carry_their_exposed_time_on_both_sides() -> None:
    before, after = kernels(500_000, 100_000), kernels(1_000, 100_000)
    diagnoses = diagnose([before], SHIPPED).sessions[0], diagnose([after], SHIPPED).sessions[0]
    (cast,) = [row for row in compare(before, after, diagnoses=diagnoses).causes if row.name == "excess_cast"]
    assert (cast.before_ns, cast.after_ns) == (500_000, 0)


def test_tails_need_enough_steps() -> None:
    lengths = [100] * 39 + [200]
    assert compare(run_of(*lengths), run_of(*lengths)).p99_ns == (int(np.percentile([100 * MS] * 39 + [200 * MS], 99)),) * 2
    assert compare(run_of(100), run_of(100)).p99_ns is None


def test_scaling_is_told_where_the_world_sizes_differ() -> None:
    one, four = run_of(100, world_size=1).meta, run_of(30, world_size=4).meta
    assert scaling(one, four, (100, 30)) == pytest.approx(100 / 120)
    assert scaling(one, one, (100, 30)) is None


@pytest.mark.parametrize(
    ("before", "after", "allowed", "expected"),
    [
        ({"accuracy": 0.80}, {"accuracy": 0.79}, 0.02, "kept"),
        ({"accuracy": 0.80}, {"accuracy": 0.70}, 0.02, "lost"),
        ({"eval_loss": 2.0}, {"eval_loss": 2.5}, 0.02, "lost"),
        ({"eval_loss": 2.0}, {"eval_loss": 1.5}, 0.0, "kept"),
        ({"accuracy": 0.8, "ppl": 5.0}, {"accuracy": 0.8, "ppl": 6.0}, 0.1, "lost"),
    ],
)
def test_quality_is_lost_when_any_metric_gets_worse_than_allowed(
    before: dict[str, float], after: dict[str, float], allowed: float, expected: str
) -> None:
    state, texts = judge_quality(before, after, allowed)
    assert state == expected
    assert len(texts) == len(before)


def test_quality_needs_a_shared_metric() -> None:
    with pytest.raises(UsageError, match="no quality metric"):
        judge_quality({"a": 1.0}, {"b": 1.0}, 0.0)
