"""The Tuning Impact Score: its formula, bounds and what counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recommend.samples import CATALOGUE, outcome, record

from kb.domain.catalogue import EFFORTS, Effort
from kb.domain.impact import IMPACT_PARTS, Impact, ImpactPart
from kb.recommend.impact import impact, load_impact_weights, reported_impact

_W = load_impact_weights()
_benefits = st.dictionaries(st.sampled_from(IMPACT_PARTS), st.floats(-2, 1))


def _impact(benefits: dict[ImpactPart, float], effort: Effort = "flag") -> Impact | None:
    return impact(benefits, effort, "measured", _W)


@given(_benefits, st.sampled_from(EFFORTS))
def test_the_score_follows_its_formula_and_stays_in_its_range(benefits: dict[ImpactPart, float], effort: Effort) -> None:
    found = _impact(benefits, effort)
    assert (found is None) == (not {"latency", "throughput"} & benefits.keys())
    if found is not None:
        assert 0 <= found.score <= 100
        assert sum(found.weights.values()) == pytest.approx(1)
        mean = sum(found.weights[part] * max(-1.0, min(1.0, benefits[part])) for part in benefits)
        assert found.score == pytest.approx(100 * max(0.0, mean) * (0.8 + 0.2 * found.ease))


@given(_benefits, st.sampled_from(IMPACT_PARTS), st.floats(0, 0.5))
def test_more_benefit_never_scores_less(benefits: dict[ImpactPart, float], part: ImpactPart, more: float) -> None:
    before = _impact(benefits)
    if before is not None and part in benefits:
        after = _impact({**benefits, part: benefits[part] + more})
        assert after is not None
        assert after.score >= before.score - 1e-9


def test_less_work_scores_more_and_a_loss_scores_nothing() -> None:
    scores = [found.score for effort in EFFORTS if (found := _impact({"latency": 0.5}, effort)) is not None]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(50)
    lost = _impact({"latency": -0.5})
    assert lost is not None
    assert lost.score == 0


def test_outcomes_of_the_whole_run_count_with_the_hardest_change_and_the_weakest_tier() -> None:
    told = record(
        "a",
        outcome("bind", "latency", "420 ms", "98 ms", tier="simulated"),
        outcome("retile", "throughput", "38 /s", "145 /s", better="higher"),
        outcome("bind", "memory_peak", "4.1 GB", "1.6 GB"),
        outcome("bind", "latency_jitter", "85 ms", "12 ms"),
        outcome("bind", "op_time", "10 ms", "1 ms"),
        outcome("bind", "latency", "10 ms", "1 ms", share=0.1),
    )
    found = reported_impact(told, CATALOGUE, _W)
    assert found is not None
    assert found.benefits == {"latency": pytest.approx(0.7667, abs=1e-4), "throughput": pytest.approx(0.7379, abs=1e-4),
                              "memory": pytest.approx(0.6098, abs=1e-4), "stability": pytest.approx(0.8588, abs=1e-4)}  # fmt: skip
    assert (found.ease, found.provenance) == (0.0, "simulated")


def test_figures_of_a_part_alone_give_no_score() -> None:
    assert reported_impact(record("a", outcome("bind", "op_time", "10 ms", "1 ms")), CATALOGUE, _W) is None
    assert reported_impact(record("a"), CATALOGUE, _W) is None


def test_of_two_figures_of_one_part_the_cautious_one_counts() -> None:
    told = record("a", outcome("bind", "latency", "10 ms", "5 ms"), outcome("bind", "step_time", "10 ms", "9 ms"))
    found = reported_impact(told, CATALOGUE, _W)
    assert found is not None
    assert found.benefits["latency"] == pytest.approx(0.1)
