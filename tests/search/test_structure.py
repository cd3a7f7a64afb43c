from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search.samples import record

from kb.domain.case import CaseContext
from kb.domain.quantity import Quantity
from kb.domain.soc import SocFamily
from kb.search.structure import applicable, likeness, nearness
from kb.search.weights import load_weights

WEIGHTS = load_weights()
FAMILIES: tuple[SocFamily, ...] = ("A2", "A3", "unknown")


def added(context: CaseContext, **case: object) -> dict[str, float]:
    item = record("a", en="x", **{"cause": "unfused_attention", **case})  # type: ignore[arg-type]
    families = (context.soc_family,) if context.soc_family != "unknown" else ()
    return {why.feature: why.contribution for why in likeness(context, families, item, WEIGHTS)}


def test_causes_count_by_the_share_in_common() -> None:
    assert added(CaseContext(causes=("unfused_attention",)))["causes"] == pytest.approx(WEIGHTS.structure.causes)
    assert added(CaseContext(causes=("unfused_attention", "gc_pause")))["causes"] == pytest.approx(WEIGHTS.structure.causes / 2)
    assert "causes" not in added(CaseContext(causes=("gc_pause",)))


def test_what_one_side_does_not_know_adds_nothing() -> None:
    assert added(CaseContext(model_type="diffusion")) == {}
    assert added(CaseContext(), model_type="diffusion", family="A2") == {}


def test_the_same_kind_of_model_is_a_reason() -> None:
    assert added(CaseContext(model_type="Diffusion"), model_type="diffusion") == {"model_type": WEIGHTS.structure.model_type}


def test_an_unknown_chip_family_is_discounted_and_the_same_one_is_not() -> None:
    context = CaseContext(soc_family="A2")
    assert added(context)["soc"] == WEIGHTS.soc_unknown < 0
    assert added(context, family="A2")["soc"] == WEIGHTS.structure.soc_same > 0


def test_only_another_known_family_does_not_apply() -> None:
    item = {family: record("a", en="x", cause="c", family=family) for family in FAMILIES}
    assert [applicable(item[family], ("A2",)) for family in FAMILIES] == [True, False, True]
    assert applicable(record("card", en="no case"), ("A2",))
    assert applicable(item["A3"], ())


def test_metrics_are_compared_in_their_units() -> None:
    context = CaseContext(metrics={"step_time": Quantity(100, "ms"), "l2_hit_ratio": Quantity(0.6, "ratio")})
    reasons = added(context, metrics={"step_time": Quantity(100_000, "us"), "l2_hit_ratio": Quantity(60, "%"), "other": Quantity(1, "s")})
    assert reasons == {name: pytest.approx(WEIGHTS.structure.metrics / 2) for name in ("metric:step_time", "metric:l2_hit_ratio")}


def test_metrics_of_another_dimension_are_not_compared() -> None:
    assert added(CaseContext(metrics={"x": Quantity(1, "s")}), metrics={"x": Quantity(1, "B")}) == {}


positive = st.floats(1e-6, 1e9)


@given(left=positive, right=positive, factor=st.sampled_from([1e-3, 1.0, 1e3]))
def test_nearness_is_symmetric_bounded_and_free_of_scale(left: float, right: float, factor: float) -> None:
    there = nearness(Quantity(left, "ms"), Quantity(right, "ms"), 4.0)
    assert 0.0 <= there <= 1.0
    assert there == pytest.approx(nearness(Quantity(right, "ms"), Quantity(left, "ms"), 4.0), abs=1e-9)
    assert there == pytest.approx(nearness(Quantity(left * factor, "ms"), Quantity(right * factor, "ms"), 4.0), abs=1e-9)


def test_nearness_ends_at_the_span_and_at_zero() -> None:
    assert nearness(Quantity(1, "s"), Quantity(1, "s"), 4.0) == 1.0
    assert nearness(Quantity(1, "s"), Quantity(2, "s"), 4.0) == pytest.approx(0.5)
    assert nearness(Quantity(1, "s"), Quantity(4, "s"), 4.0) == pytest.approx(0.0)
    assert nearness(Quantity(0, "s"), Quantity(1, "s"), 4.0) == 0.0
    assert nearness(Quantity(0, "s"), Quantity(0, "s"), 4.0) == 1.0
