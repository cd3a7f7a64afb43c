"""Effects, order by target, limits on memory and throughput, the front."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recommend.samples import CATALOGUE, outcome, past, ranked, recommendation, record

from kb.domain.recommendation import Constraints, Quality, RankedStrategy, Recommendation
from kb.recommend.effects import load_priors, with_effects
from kb.recommend.support import PastCase
from kb.recommend.targets import Baseline, asked_qualities, front, weighed

_PRIORS = load_priors()
_BASE = Baseline(latency_ns=1e6, memory_b=10e9, samples=4)
_QUALITIES: tuple[Quality, ...] = ("latency", "memory", "precision")


def _weighed(
    *items: RankedStrategy, constraints: Constraints | None = None, base: Baseline = _BASE, cases: tuple[PastCase, ...] = ()
) -> Recommendation:
    return weighed(recommendation(*items), cases, CATALOGUE, constraints or Constraints(), base, _PRIORS, {"slow": 0.6, "waits": 0.6})


@settings(deadline=None)
@given(st.floats(0, 0.99), st.floats(0, 0.99))
def test_every_effect_lies_in_its_interval(gain: float, spare: float) -> None:
    item = ranked("bind", gain, gain + (1 - gain) * spare, cause="waits")
    for effect in with_effects(item, (), CATALOGUE, _PRIORS).effects:
        low, high = effect.interval
        assert low - 1e-12 <= effect.expected
        assert high is None or effect.expected <= high + 1e-12
        assert 0 < effect.level < 1
        assert effect.basis.zh
        assert effect.basis.en


def test_throughput_follows_the_time_of_a_step() -> None:
    effect = with_effects(ranked("bind", 0.5), (), CATALOGUE, _PRIORS).effect("throughput")
    assert effect is not None
    assert effect.expected == pytest.approx(1.0)


def test_removing_waiting_saves_less_energy_than_removing_work() -> None:
    waits, works = (with_effects(ranked("bind", 0.4, cause=cause), (), CATALOGUE, _PRIORS).effect("energy") for cause in ("waits", "slow"))
    assert waits is not None
    assert works is not None
    assert 0 < waits.expected < works.expected == pytest.approx(0.4)


def test_cases_that_report_memory_overrule_the_prior() -> None:
    case = past(record("a", outcome("use_fused_attention", "memory_peak", "4 GB", "3 GB", tier="simulated"), tier="simulated"))
    effect = with_effects(ranked("use_fused_attention", 0.1), (case,), CATALOGUE, _PRIORS).effect("memory")
    assert effect is not None
    assert effect.expected == pytest.approx(0.25)
    assert effect.provenance == "simulated"
    time = past(record("b", outcome("use_fused_attention", "step_time", "4 ms", "1 ms")))
    without = with_effects(ranked("use_fused_attention", 0.1), (time,), CATALOGUE, _PRIORS).effect("memory")
    assert without is not None
    assert without.provenance is None


def test_an_unknown_risk_has_no_bound() -> None:
    effect = with_effects(ranked("guess", 0.1), (), CATALOGUE, _PRIORS).effect("precision")
    assert effect is not None
    assert effect.interval[1] is None


def test_the_target_orders() -> None:
    items = ranked("increase_batch", 0.4), ranked("use_fused_attention", 0.2)
    by_rate = _weighed(*items, constraints=Constraints(target="throughput")).strategies
    assert [item.id for item in by_rate] == ["increase_batch", "use_fused_attention"]
    # A larger batch makes a step longer: .4 saved of a sample, twice the samples.
    by_time = _weighed(*items).strategies
    assert [item.id for item in by_time] == ["use_fused_attention", "increase_batch"]
    latency = by_time[1].effect("latency")
    assert latency is not None
    assert latency.expected == pytest.approx(-0.2)
    by_memory = _weighed(*items, constraints=Constraints(target="memory")).strategies
    assert [item.id for item in by_memory] == ["use_fused_attention", "increase_batch"]
    mixed = ranked("bind", 0.4, cause="waits"), ranked("use_fused_attention", 0.2)
    by_energy = _weighed(*mixed, constraints=Constraints(target="energy")).strategies
    assert [item.id for item in by_energy] == ["use_fused_attention", "bind"]


def test_what_would_break_the_memory_limit_is_excluded() -> None:
    found = _weighed(ranked("increase_batch", 0.4), ranked("bind", 0.1), constraints=Constraints(max_memory_b=11e9))
    assert [item.id for item in found.strategies] == ["bind"]
    assert found.excluded[0].id == "increase_batch"
    assert "11.00 GB" in found.excluded[0].reason.en
    assert found.feasible


def test_what_would_break_the_latency_limit_is_excluded_and_its_gain_meets_no_limit() -> None:
    found = _weighed(ranked("increase_batch", 0.4), ranked("bind", 0.1), constraints=Constraints(max_latency_ns=1.1e6))
    assert [item.id for item in found.strategies] == ["bind"]
    assert "1.2 ms" in found.excluded[0].reason.en
    # The ranking, which adds up time of samples, thought .6 ms within reach.
    tight = _weighed(ranked("increase_batch", 0.4), ranked("bind", 0.1), constraints=Constraints(max_latency_ns=0.6e6))
    assert not tight.feasible
    assert "0.9 ms" in tight.closest.en


def test_no_memory_is_promised_for_a_cause_that_was_not_found() -> None:
    known, unknown = (with_effects(ranked("use_fused_attention", 0.1), (), CATALOGUE, _PRIORS, found=found).effect("memory")
                      for found in (True, False))  # fmt: skip
    assert known is not None
    assert unknown is not None
    assert known.expected > 0 == unknown.expected


def test_a_memory_limit_out_of_reach_is_infeasible_and_says_how_far() -> None:
    found = _weighed(ranked("use_fused_attention", 0.3), constraints=Constraints(max_memory_b=4e9))
    assert not found.feasible
    assert "5.00 GB" in found.closest.en
    assert "now 10.00 GB" in found.closest.en
    assert found.closest.zh
    assert _weighed(ranked("use_fused_attention", 0.3), constraints=Constraints(max_memory_b=6e9)).feasible


def test_a_throughput_out_of_reach_is_infeasible_and_says_how_far() -> None:
    # 4 samples in 1 ms are 4000/s; half the time gives 8000/s.
    found = _weighed(ranked("bind", 0.2, 0.5), constraints=Constraints(min_throughput=9000))
    assert not found.feasible
    assert "8000.0/s" in found.closest.en
    assert _weighed(ranked("bind", 0.2, 0.5), constraints=Constraints(min_throughput=7999)).feasible


def test_limits_that_the_capture_cannot_be_held_against_are_said() -> None:
    bare = Baseline(latency_ns=1e6)
    found = _weighed(ranked("bind", 0.2), constraints=Constraints(max_memory_b=1, min_throughput=1e9), base=bare)
    assert found.feasible
    assert [word for note in found.notes for word in ("--max-memory", "--min-throughput") if word in note.en] == [
        "--max-memory",
        "--min-throughput",
    ]


def test_excluding_everything_is_infeasible_but_finding_nothing_is_not() -> None:
    alone = _weighed(ranked("increase_batch", 0.4), constraints=Constraints(max_memory_b=11e9))
    assert not alone.feasible
    assert "exclude every strategy" in alone.closest.en
    assert _weighed().feasible


_names = st.lists(st.sampled_from(["use_fused_attention", "increase_batch", "lower_precision", "retile", "guess", "bind"]), unique=True)


@settings(deadline=None)
@given(_names, st.data())
def test_the_front_is_exactly_what_nothing_beats(names: list[str], data: st.DataObject) -> None:
    items = [with_effects(ranked(name, data.draw(st.sampled_from([0.0, 0.1, 0.2, 0.3]))), (), CATALOGUE, _PRIORS) for name in names]
    chosen = front(items, _QUALITIES)
    assert bool(chosen) == bool(items)
    for item in items:
        beaten = any(_better(other, item) for other in items)
        assert (item.id in chosen) != beaten


def _better(other: RankedStrategy, item: RankedStrategy) -> bool:
    """Written out one quality at a time, as an oracle."""
    efforts = ["flag", "environment", "launch_script", "model_code", "kernel"]

    def values(one: RankedStrategy) -> list[float]:
        memory, precision = one.effect("memory"), one.effect("precision")
        assert memory is not None
        assert precision is not None
        worst = 1e9 if precision.interval[1] is None else precision.interval[1]
        return [one.gain_fraction, memory.expected, -worst, -efforts.index(one.effort)]

    pairs = list(zip(values(other), values(item), strict=True))
    return all(theirs >= mine for theirs, mine in pairs) and any(theirs > mine for theirs, mine in pairs)


def test_there_is_no_front_without_a_conflict() -> None:
    assert asked_qualities(Constraints()) == ("latency",)
    assert _weighed(ranked("bind", 0.2), ranked("retile", 0.3)).front == ()
    both = _weighed(
        ranked("use_fused_attention", 0.1), ranked("bind", 0.3, cause="waits"), constraints=Constraints(target="memory", max_latency_ns=1e9)
    )
    assert both.front == ("use_fused_attention", "bind")
