from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from diagnose.attention_runs import forward, projection
from diagnose.factories import MS, SHIPPED, Kernel, in_sequence, made
from hypothesis import given
from hypothesis import strategies as st

from kb.compare.comparability import common_work
from kb.compare.comparison import compare
from kb.compare.limits import default_limits, load_limits
from kb.compare.noise import Band, lower_median, noise_band, verdict
from kb.diagnose.diagnosis import diagnose
from kb.domain.quantity import UNITS
from kb.domain.soc import SocRef
from kb.session.meta import Model, SessionMeta
from kb.session.session import Session

LIMITS = load_limits()
A2, V100 = SocRef(id="910b2", family="A2"), SocRef(id="v100", family="gpu")


def run_of(*steps: int, **meta: Any) -> Session:
    """Steps of the given lengths in ms, 60 % compute."""
    rows = [{"step_id": str(place), "computing_ns": 6 * step * MS // 10, "free_ns": step * MS - 6 * step * MS // 10}
            for place, step in enumerate(steps)]  # fmt: skip
    return made(trace=rows, **meta)


def simulated(step: int, *, noise: float = 0.0, version: str = "1", steps: int = 3) -> Session:
    return run_of(*[step] * steps, origin="simulated", simulator=version, options={"noise": noise})


def test_a_session_compared_with_itself_has_not_changed() -> None:
    for session in (run_of(100), run_of(100, 104, 98, 101), simulated(100)):
        result = compare(session, session)
        assert (result.verdict, result.gain_fraction) == ("no_change", 0.0)
        assert all(not delta.saved_ns for delta in (*result.parts, *result.operators))


@pytest.mark.parametrize(
    ("after", "expected"), [((50, 51, 49, 50), "improved"), ((150, 149, 151, 150), "regressed"), ((100, 101, 99, 100), "no_change")]
)
def test_repeated_steps_are_judged_by_their_spread(after: tuple[int, ...], expected: str) -> None:
    result = compare(run_of(100, 102, 98, 101), run_of(*after))
    assert result.verdict == expected
    assert result.n == (4, 4)
    assert result.interval[0] <= result.gain_fraction <= result.interval[1]
    assert any("single capture" in reason.en for reason in result.reasons)


def test_wide_scatter_is_inconclusive_and_not_called_no_change() -> None:
    result = compare(run_of(60, 140, 100, 180, 70), run_of(90, 170, 65, 110, 150))
    assert result.verdict == "inconclusive"


@pytest.mark.parametrize(("after", "expected"), [(90, "improved"), (95, "no_change"), (105, "no_change"), (112, "regressed")])
def test_single_steps_are_judged_by_the_default_noise_and_say_so(after: int, expected: str) -> None:
    result = compare(run_of(100), run_of(after))
    assert result.verdict == expected
    assert result.noise_fraction == LIMITS["single_step_noise"]
    assert any("a default, not measured" in reason.en for reason in result.reasons)


def test_noise_free_simulations_of_one_version_resolve_a_fraction_of_a_percent() -> None:
    assert compare(simulated(1000), simulated(997)).verdict == "improved"
    assert compare(simulated(1000, steps=1), simulated(997, steps=1)).verdict == "improved"
    assert compare(simulated(10000), simulated(9995)).verdict == "no_change"
    assert compare(simulated(1000), simulated(997)).reasons == compare(simulated(1000), simulated(1000)).reasons


@pytest.mark.parametrize("other", [simulated(997, noise=1.0), simulated(997, version="2")])
def test_noise_or_another_simulator_version_lose_that_resolution(other: Session) -> None:
    assert compare(simulated(1000), other).verdict == "no_change"


@pytest.mark.parametrize(
    ("before", "after", "phrase"),
    [
        ({"soc": A2}, {"soc": V100}, "chip"),
        ({"soc": SocRef(family="A2")}, {"soc": SocRef(family="A3")}, "chip"),
        ({"soc": SocRef(cores=24)}, {"soc": SocRef(cores=20)}, "number of cores: 24 and 20"),
        ({"world_size": 8}, {"world_size": 2}, "world size"),
        ({"model": Model(name="SD3")}, {"model": Model(name="bert")}, "model"),
        ({"model": Model(phase="prefill")}, {"model": Model(phase="decode")}, "phase"),
        ({"origin": "measured"}, {"origin": "simulated"}, "origin"),
    ],
)
def test_what_differs_is_refused_with_the_reason(before: dict[str, Any], after: dict[str, Any], phrase: str) -> None:
    result = compare(run_of(100, **before), run_of(50, **after))
    assert (result.verdict, result.gain_fraction) == ("not_comparable", 0.0)
    assert any(f"different {phrase}" in reason.en for reason in result.reasons)


@pytest.mark.parametrize(
    "sides", [({"soc": A2}, {}), ({"world_size": 8}, {}), ({"model": Model(name="SD3")}, {"model": Model(name="sd3 ")})]
)
def test_what_one_side_does_not_state_is_no_reason(sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    assert compare(run_of(100, **sides[0]), run_of(50, **sides[1])).verdict == "improved"


def test_another_batch_size_withholds_the_verdict() -> None:
    result = compare(run_of(100, model=Model(batch=1)), run_of(50, model=Model(batch=2)))
    assert result.verdict == "inconclusive"


def test_other_work_is_refused() -> None:
    one = made(kernels=in_sequence([Kernel(op_type="Conv2D", duration=1000), Kernel(op_type="Add", duration=100)]))
    other = made(kernels=in_sequence([Kernel(op_type="MatMulV3", duration=1000), Kernel(op_type="Add", duration=100)]))
    result = compare(one, other)
    assert result.verdict == "not_comparable"
    assert [delta.name for delta in result.operators] == ["Conv2D", "MatMulV3", "Add"]


def test_fusing_half_of_the_step_is_still_the_same_work() -> None:
    fused = Kernel(op_type="FlashAttentionScore", duration=400)
    before = made(kernels=in_sequence([*projection(), *forward(), *projection()]), name="before")
    after = made(kernels=in_sequence([*projection(), fused, *projection()]), name="after")
    result = compare(before, after, diagnoses=(diagnose([before], SHIPPED).sessions[0], diagnose([after], SHIPPED).sessions[0]))
    assert result.verdict == "improved"
    assert (result.resolved_causes, result.new_causes) == (("unfused_attention",), ())
    assert (result.before, result.after) == ("before", "after")


def test_operators_are_sorted_by_change_and_carry_counts() -> None:
    before = made(kernels=in_sequence([Kernel(op_type="Cast", duration=10)] * 3 + [Kernel(op_type="Add", duration=100)]))
    after = made(kernels=in_sequence([Kernel(op_type="Cast", duration=10), Kernel(op_type="Add", duration=101)]))
    rows = [(delta.name, delta.saved_ns, delta.before_count, delta.after_count) for delta in compare(before, after).operators]
    assert rows == [("Cast", 20, 3, 1), ("Add", -1, 1, 1)]


def test_the_parts_account_for_the_change_of_the_step() -> None:
    result = compare(run_of(100, 103, 97), run_of(80, 82, 79))
    assert sum(delta.saved_ns for delta in result.parts) == result.before_step_ns - result.after_step_ns


def test_a_side_without_a_step_is_not_comparable() -> None:
    result = compare(made(), run_of(100))
    assert (result.verdict, result.n) == ("not_comparable", (0, 1))


def test_books_that_do_not_balance_withhold_the_verdict() -> None:
    broken = made(trace=[{"computing_ns": 10 * MS, "stage_ns": 50 * MS}])
    result = compare(run_of(100), broken)
    assert result.verdict == "inconclusive"
    assert any("do not balance" in reason.en for reason in result.reasons)


def test_warm_up_steps_do_not_count() -> None:
    rows = [{"step_id": str(place), "computing_ns": step * MS} for place, step in enumerate((900, 100))]
    warm = made(trace=rows, steps=[("0", 0, 900 * MS, 1), ("1", 900 * MS, 1000 * MS, 0)])
    assert compare(warm, run_of(100)).n == (1, 1)


def test_common_work_is_measured_on_the_shorter_run() -> None:
    assert common_work({"a": (100, 1), "b": (300, 1)}, {"a": (100, 1), "c": (20, 1)}) == pytest.approx(100 / 120)
    assert common_work({}, {"a": (100, 1)}) is None


LENGTHS = st.lists(st.integers(1_000_000, 9_000_000), min_size=1, max_size=8)


@given(LENGTHS, LENGTHS)
def test_a_verdict_is_never_stronger_than_its_interval(first: list[int], second: list[int]) -> None:
    metas = SessionMeta(name="a", origin="measured", capture=run_of(1).meta.capture), run_of(1).meta
    before, after = np.array(first, np.int64), np.array(second, np.int64)
    band = noise_band(before, after, metas, LIMITS)
    gain = 1.0 - lower_median(after) / lower_median(before)
    judged = verdict(gain, band, LIMITS)
    assert band == noise_band(before, after, metas, LIMITS)
    assert band.interval[0] <= gain <= band.interval[1]
    assert judged != "improved" or (band.interval[0] > 0 and gain > band.fraction)
    assert judged != "regressed" or (band.interval[1] < 0 and gain < -band.fraction)
    assert judged != "no_change" or abs(gain) <= band.fraction <= LIMITS["widest_noise"]


@pytest.mark.parametrize(
    ("gain", "band", "expected"),
    [
        (0.05, Band(0.02, (0.01, 0.09), "repeats"), "improved"),
        (0.05, Band(0.02, (-0.01, 0.09), "repeats"), "inconclusive"),
        (-0.05, Band(0.02, (-0.09, -0.01), "repeats"), "regressed"),
        (0.01, Band(0.02, (-0.01, 0.02), "repeats"), "no_change"),
        (0.01, Band(0.3, (-0.3, 0.3), "repeats"), "inconclusive"),
    ],
)
def test_the_verdict_needs_both_the_band_and_the_interval(gain: float, band: Band, expected: str) -> None:
    assert verdict(gain, band, LIMITS) == expected


def test_chance_alone_rarely_looks_like_a_change() -> None:
    random = np.random.default_rng(7)
    metas = run_of(1).meta, run_of(1).meta
    wrong = 0
    for _ in range(60):
        before, after = ((random.normal(1.0, 0.01, 8) * 100 * MS).astype(np.int64) for _ in range(2))
        gain = 1.0 - lower_median(after) / lower_median(before)
        wrong += verdict(gain, noise_band(before, after, metas, LIMITS), LIMITS) in ("improved", "regressed")
    assert wrong <= 3


def test_every_limit_has_a_known_unit_and_a_reason() -> None:
    assert all(limit.unit in UNITS and limit.reason.endswith(".") for limit in default_limits())
