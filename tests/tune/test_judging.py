"""Which changes stay."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.domain.recommendation import Constraints, Target
from kb.tune.figures import Figures
from kb.tune.judging import cost, excess, judge, limits_of

BEFORE = Figures(latency_ns=100_000_000, memory_b=4_000_000_000, samples=10, power_w=200.0)


def changed(**values: float) -> Figures:
    return msgspec.structs.replace(BEFORE, **values)


def test_a_gain_beyond_the_noise_stays_and_one_inside_it_goes() -> None:
    assert judge(BEFORE, changed(latency_ns=90_000_000), Constraints(), 0.02).keep
    inside = judge(BEFORE, changed(latency_ns=99_000_000), Constraints(), 0.02)
    assert not inside.keep
    assert "within the noise" in inside.reasons[0].en
    worse = judge(BEFORE, changed(latency_ns=120_000_000), Constraints(), 0.02)
    assert (worse.keep, round(worse.gain, 3)) == (False, -0.2)
    assert "regresses" in worse.reasons[0].en


def test_a_limit_that_held_may_not_break_however_large_the_gain() -> None:
    limits = Constraints(max_memory_b=4.5e9)
    judged = judge(BEFORE, changed(latency_ns=10_000_000, memory_b=5_000_000_000), limits, 0.02)
    assert not judged.keep
    assert "5 GB" in judged.reasons[0].en
    assert "4.5 GB" in judged.reasons[0].en


def test_the_precision_budget_is_a_limit() -> None:
    limits = Constraints(max_precision_loss=0.01)
    assert not judge(BEFORE, changed(latency_ns=50_000_000, precision_loss=0.03), limits, 0.02).keep
    assert judge(BEFORE, changed(latency_ns=50_000_000, precision_loss=0.009), limits, 0.02).keep


def test_nearer_to_a_missed_limit_stays_even_when_the_target_pays() -> None:
    limits = Constraints(target="latency", min_throughput=200.0)
    batched = changed(latency_ns=110_000_000, samples=20)
    judged = judge(BEFORE, batched, limits, 0.02)
    assert judged.keep
    assert judged.gain == pytest.approx(-0.1)
    assert "nearer to the limits" in judged.reasons[0].en


def test_a_missed_limit_may_not_get_worse() -> None:
    limits = Constraints(target="latency", max_memory_b=3e9)
    assert not judge(BEFORE, changed(latency_ns=50_000_000, memory_b=4_400_000_000), limits, 0.02).keep
    assert judge(BEFORE, changed(latency_ns=50_000_000), limits, 0.02).keep


@pytest.mark.parametrize(
    ("target", "better"),
    [
        ("latency", {"latency_ns": 50_000_000}),
        ("throughput", {"samples": 20}),
        ("memory", {"memory_b": 2_000_000_000}),
        ("energy", {"power_w": 100.0}),
    ],
)
def test_every_target_has_its_own_cost(target: Target, better: dict[str, float]) -> None:
    judged = judge(BEFORE, changed(**better), Constraints(target=target), 0.02)
    assert judged.keep
    assert judged.gain == pytest.approx(0.5)
    assert cost(target, changed(**better)) == pytest.approx(cost(target, BEFORE) / 2)


def test_throughput_follows_the_mean_step_not_the_middle_one() -> None:
    """Every other step waits for data: the middle step does not see it."""
    waiting = changed(latency_ns=30_000_000, mean_ns=100_000_000)
    assert waiting.throughput == pytest.approx(100.0)
    fed = changed(latency_ns=31_000_000, mean_ns=31_000_000)
    assert judge(waiting, fed, Constraints(target="throughput"), 0.02).keep
    assert not judge(waiting, fed, Constraints(target="latency"), 0.02).keep


figures = st.builds(
    Figures,
    latency_ns=st.integers(1_000, 10**10),
    memory_b=st.integers(1_000, 10**11),
    samples=st.integers(1, 512),
    precision_loss=st.floats(0, 1),
)
constraints = st.builds(
    Constraints,
    target=st.sampled_from(["latency", "throughput", "memory"]),
    max_latency_ns=st.none() | st.floats(1e3, 1e10),
    max_memory_b=st.none() | st.floats(1e3, 1e11),
    min_throughput=st.none() | st.floats(0.1, 1e6),
    max_precision_loss=st.none() | st.floats(1e-6, 1.0),
)


@given(figures, figures, constraints, st.floats(0.001, 0.1))
def test_a_kept_change_never_breaks_a_limit_that_held(before: Figures, after: Figures, limits: Constraints, noise: float) -> None:
    judged = judge(before, after, limits, noise)
    if judged.keep:
        pairs = zip(limits_of(limits, before), limits_of(limits, after), strict=True)
        assert all(new.holds for old, new in pairs if old.holds)
        assert excess(limits, after) <= excess(limits, before) + noise * len(limits_of(limits, before))


@given(figures, constraints, st.floats(0.001, 0.1))
def test_nothing_changed_is_never_kept(same: Figures, limits: Constraints, noise: float) -> None:
    assert not judge(same, same, limits, noise).keep
