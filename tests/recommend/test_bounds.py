"""No gain, and no set of gains, exceeds what the findings allow."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from recommend.samples import CATALOGUE, diagnosis, finding, outcome, past, ranked, recommendation, record, strategy

from kb.domain.case import CaseContext
from kb.domain.catalogue import Catalogue
from kb.domain.recommendation import Constraints, RankedStrategy
from kb.recommend.bounds import bounds_of, most_saved, together, unexplained
from kb.recommend.effects import load_priors, with_effects
from kb.recommend.expectation import Limit, expectation, unprompted
from kb.recommend.experience import Estimate
from kb.recommend.learnt import Learnt
from kb.recommend.plan import composed
from kb.recommend.ranking import recommend
from kb.recommend.support import supports
from kb.recommend.targets import Baseline, weighed
from kb.recommend.weights import load_weights

_WEIGHTS = load_weights()
_STEP = 1_000_000
_NAMES = ("use_fused_attention", "retile", "guess", "bind", "lower_precision")


def _estimate(gain: float, spare: float = 0.1) -> Estimate:
    return Estimate(gain=gain, interval=(gain - spare, min(1.0, gain + spare)), probability=0.9, outcomes=5.0, similar=())


def _catalogue() -> Catalogue:
    """As the shared one, but strategies know what they are for."""
    named = {
        "use_fused_attention": strategy("use_fused_attention", addresses=("slow", "waits")),
        "increase_batch": strategy("increase_batch", addresses=("slow",)),
        "bind": strategy("bind", addresses=("waits",)),
        "retile": strategy("retile", addresses=("elsewhere",)),
    }
    return Catalogue(causes=CATALOGUE.causes, strategies=named, metrics={}, socs={}, glossary=())


def _rows(learnt: dict[str, Estimate], names: tuple[str, ...] = ("slow",), **constraints: object) -> dict[str, RankedStrategy]:
    found = recommend(
        diagnosis(*(finding(name, "P0") for name in names)), (), _catalogue(), Constraints(**constraints), _WEIGHTS,  # type: ignore[arg-type]
        family="A2", phase=None, learnt=Learnt(estimates=learnt),
    )  # fmt: skip
    return {item.id: item for item in found.strategies}


@given(st.floats(-1, 1), st.floats(0, 0.5), st.sampled_from(("use_fused_attention", "increase_batch", "retile")))
def test_no_learnt_gain_exceeds_its_bound(gain: float, spare: float, name: str) -> None:
    rows = _rows({name: _estimate(gain, spare)})
    if name not in rows:
        return
    item = rows[name]
    assert item.interval[0] - 1e-12 <= item.gain_fraction <= item.interval[1] + 1e-12
    most = 0.7 if name == "retile" else 0.3
    assert item.interval[1] <= most + 1e-12
    assert item.answers == (() if name == "retile" else ("slow",))


def test_a_strategy_for_two_findings_may_save_what_both_allow() -> None:
    item = _rows({"use_fused_attention": _estimate(0.9)}, ("slow", "waits"))["use_fused_attention"]
    assert item.gain_fraction == pytest.approx(0.6)
    assert set(item.answers) == {"slow", "waits"}
    assert "slow" in item.rationale.en
    assert "waits" in item.rationale.en


def test_what_no_finding_asks_for_is_marked_and_bounded_by_what_none_explains() -> None:
    item = _rows({"retile": _estimate(0.9)}, ("slow", "waits"))["retile"]
    assert item.gain_fraction == pytest.approx(0.4)
    assert item.answers == ()
    assert "no finding asks for it" in item.rationale.en


def test_more_samples_in_a_step_are_said_to_be_of_a_sample_and_rank_last_for_latency() -> None:
    rows = _rows({"increase_batch": _estimate(0.3), "use_fused_attention": _estimate(0.05, 0.01)})
    assert next(iter(rows)) == "use_fused_attention"
    assert rows["increase_batch"].per == "sample"
    assert rows["use_fused_attention"].per == "step"
    by_rate = _rows({"increase_batch": _estimate(0.3), "use_fused_attention": _estimate(0.05, 0.01)}, target="throughput")
    assert next(iter(by_rate)) == "increase_batch"
    # Without a learnt gain too.
    assert _rows({})["increase_batch"].per == "sample"
    assert "per sample" in _rows({})["increase_batch"].rationale.en


@given(st.lists(st.tuples(st.sampled_from(_NAMES), st.floats(0, 1), st.sampled_from(("slow", "waits"))), max_size=12))
def test_alternatives_to_one_cause_are_counted_once(parts: list[tuple[str, float, str]]) -> None:
    bounds = {"slow": 0.3, "waits": 0.2}
    gains = [(ranked(name, gain, cause=cause), gain) for name, gain, cause in parts]
    saved = most_saved(gains, bounds, CATALOGUE)
    best = sum(min(bounds[cause], max((gain for _, gain, own in parts if own == cause), default=0.0)) for cause in bounds)
    assert saved <= best + 1e-12
    assert saved <= together(bounds, bounds) + 1e-12
    assert most_saved(gains[1:], {}, CATALOGUE) == 0.0


def test_what_conflicts_is_not_counted_with_what_it_conflicts_with() -> None:
    rows = [(ranked("increase_batch", 0.3), 0.3), (ranked("retile", 0.2, cause="waits"), 0.2)]
    assert most_saved(rows, {"slow": 0.3, "waits": 0.2}, CATALOGUE) == pytest.approx(0.3)


def test_eight_answers_to_one_cause_meet_no_limit_that_one_does_not() -> None:
    rows: Sequence[RankedStrategy] = [ranked(name, 0.1, 0.3) for name in _NAMES]
    asked = Constraints(max_latency_ns=0.5e6)
    found = weighed(recommendation(*rows), (), CATALOGUE, asked, Baseline(latency_ns=1e6), load_priors(), {"slow": 0.3})
    assert not found.feasible
    assert "0.7 ms" in found.closest.en


def test_a_gain_cut_by_its_bound_keeps_its_doubt() -> None:
    item = _rows({"use_fused_attention": _estimate(0.45, 0.09)})["use_fused_attention"]
    assert item.gain_fraction == pytest.approx(0.3)
    assert item.interval[0] == pytest.approx(0.21)
    assert item.interval[1] == pytest.approx(0.3)


def test_more_samples_shorten_no_step_whatever_the_strategy() -> None:
    for name in ("increase_batch", "guess"):
        item = replace(ranked(name, 0.4), per="sample")
        effect = with_effects(item, (), CATALOGUE, load_priors()).effect("latency")
        assert effect is not None
        assert effect.expected <= 0
    rows = replace(ranked("guess", 0.4), per="sample"), ranked("bind", 0.01, cause="waits")
    found = weighed(recommendation(*rows), (), CATALOGUE, Constraints(), Baseline(latency_ns=1e6), load_priors(), {"slow": 0.5})
    assert [item.id for item in found.strategies] == ["bind", "guess"]
    both = composed(rows)
    assert both[0] == pytest.approx(0.01)


def test_a_limit_beyond_all_bounds_is_out_of_reach_whatever_was_learnt() -> None:
    answer = recommend(
        diagnosis(finding("slow", "P0")), (), _catalogue(), Constraints(max_latency_ns=0.2e6), _WEIGHTS, family="A2", phase=None,
        learnt=Learnt(estimates={"use_fused_attention": _estimate(0.9), "retile": _estimate(0.9), "increase_batch": _estimate(0.9)}),
    )  # fmt: skip
    assert not answer.feasible
    assert "0.7 ms" in answer.closest.en


def test_ranks_that_wait_for_each_other_do_not_add_up() -> None:
    assert bounds_of(diagnosis(finding("slow", "P0"), finding("slow", "P0"))) == {"slow": pytest.approx(0.3)}
    assert unexplained({"slow": 0.7, "waits": 0.6}) == 0.0


def test_a_record_speaks_once_and_other_models_speak_less() -> None:
    twice = record("a", outcome("retile", "step_time", "10 ms", "8 ms"), outcome("retile", "step_time", "10 ms", "9 ms"))
    (found,) = supports(finding("slow", "P0"), "retile", (past(twice), past(twice)), "A2", _WEIGHTS)
    assert found.step_gain == pytest.approx(0.15)
    llm = record("b", outcome("retile", "step_time", "10 ms", "8 ms"), context=CaseContext(model_type="llm"))
    same, other = (supports(finding("slow", "P0"), "retile", (past(llm),), "A2", _WEIGHTS, kind)[0] for kind in ("llm", "cnn"))
    assert other.weight < 0.5 * same.weight


def test_one_claim_moves_the_expectation_less_than_three_measurements() -> None:
    def expected(count: int, tier: str) -> RankedStrategy:
        cases = [
            past(record(f"r{number}", outcome("retile", "step_time", "10 ms", "2 ms", tier=tier), tier=tier))  # type: ignore[arg-type]
            for number in range(count)
        ]
        own = finding("slow", "P0")
        return expectation(own, CATALOGUE.strategies["retile"], supports(own, "retile", tuple(cases), "A2", _WEIGHTS), _STEP, _WEIGHTS)

    prior, claim, measured = expected(0, "claimed"), expected(1, "claimed"), expected(3, "measured")
    assert prior.gain_fraction < claim.gain_fraction < measured.gain_fraction < 0.3
    assert claim.gain_fraction < 0.6 * 0.3
    assert claim.interval[0] == 0.0
    assert claim.interval[1] == pytest.approx(0.3)
    assert "1 record," in claim.rationale.en


def test_an_unprompted_gain_names_a_cause_it_is_for() -> None:
    own = replace(CATALOGUE.strategies["retile"], addresses=("waits",))
    item = unprompted(own, _STEP, _WEIGHTS, _estimate(0.5), Limit(bound=0.1))
    assert (item.cause, item.gain_fraction, item.gain_ns) == ("waits", 0.1, 100_000)
