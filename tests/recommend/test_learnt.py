"""What grown runs teach: expectations that follow the law behind them, honest intervals, and their place in a ranking."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recommend.grown import GROUPS, STRATEGIES, TRAITS, WEIGHTS, quiet, table

from kb.domain.accounting import Accounting
from kb.domain.case import Case, CaseContext, Hit, Outcome
from kb.domain.catalogue import Catalogue, Cause, Strategy
from kb.domain.diagnosis import ClusterDiagnosis, Diagnosis, SessionDiagnosis
from kb.domain.finding import Evidence, Finding, Where
from kb.domain.provenance import Provenance
from kb.domain.quantity import Quantity
from kb.domain.recommendation import Constraints, Recommendation
from kb.domain.record import Record
from kb.domain.text import Text
from kb.recommend.experience import GainModel, estimates
from kb.recommend.fitting import fit_gains, folds_of
from kb.recommend.learnt import NOTHING, Learnt, learnt_of, unfit
from kb.recommend.ranking import recommend
from kb.recommend.support import PastCase, Use
from kb.recommend.weights import load_weights

_T = Text("字", "text")
_STEP = 1_000_000


@pytest.fixture(scope="module")
def model() -> GainModel:
    return fit_gains(table(), WEIGHTS, quiet)


def _traits(host: float = 0.0, attention: float = 0.0, batch: float = 0.0, held: float = 0.1) -> dict[str, float]:
    return dict(zip(TRAITS, (host, attention, batch, held), strict=True))


@pytest.mark.parametrize(("host", "attention"), [(0.5, 0.0), (0.25, 0.4), (0.0, 0.3)])
def test_a_gain_follows_the_exposed_share(model: GainModel, host: float, attention: float) -> None:
    found = estimates(model, _traits(host, attention), "A2")
    assert found["enable_graph_mode"].gain == pytest.approx(0.8 * host, abs=0.03)
    assert found["use_fused_attention"].gain == pytest.approx(0.5 * attention, abs=0.03)
    assert abs(found["schedule_gc"].gain) < 0.005


def test_shares_beyond_any_past_run_are_reached(model: GainModel) -> None:
    """Amdahl goes on where trees stop."""
    assert estimates(model, _traits(0.66), "A2")["enable_graph_mode"].gain == pytest.approx(0.53, abs=0.05)


def test_nothing_is_said_about_a_run_like_none_before(model: GainModel) -> None:
    strange = _traits(1.9, 1.9, 60.0)
    assert not estimates(model, strange, "A2")
    assert "no simulated run is similar enough" in learnt_of(model, strange, "A2").note.en


def test_intervals_and_probabilities_hold_on_new_runs(model: GainModel) -> None:
    fresh = table(runs=160, seed=99)
    held, right, said = [], [], []
    for row in range(len(fresh)):
        shown = dict(zip(TRAITS, fresh.values[row].tolist(), strict=True))
        for name, estimate in estimates(model, shown, "A2").items():
            truth = float(fresh.gains[row, STRATEGIES.index(name)])
            if np.isfinite(truth):
                said.append(estimate.probability)
                right.append(truth > 0.01)
                if estimate.gain > 0.01:
                    held.append(estimate.interval[0] <= truth <= estimate.interval[1])
    assert 0.68 < float(np.mean(held)) < 0.92
    assert abs(float(np.mean(said)) - float(np.mean(right))) < 0.06


@settings(max_examples=30, deadline=None)
@given(st.floats(0, 2), st.floats(0, 2), st.floats(-3, 9), st.floats(0, 1))
def test_every_estimate_is_sound(model: GainModel, host: float, attention: float, batch: float, held: float) -> None:
    for estimate in estimates(model, _traits(host, attention, batch, held), "A2").values():
        assert estimate.interval[0] <= estimate.gain <= estimate.interval[1] <= 1.0
        assert 0.0 <= estimate.probability <= 1.0
        assert estimate.outcomes >= 1.0
        assert all(0.0 <= similarity <= 1.0 for _, similarity, _ in estimate.similar)


def test_traits_a_capture_does_not_show_are_no_reason_to_fail(model: GainModel) -> None:
    assert estimates(model, {"bound.host_bound_launch": 0.5, "unheard_of": 3.0}, "A2")["enable_graph_mode"].gain > 0.3
    assert not estimates(model, {}, "A2")


def test_cases_of_another_chip_family_do_not_speak(model: GainModel) -> None:
    assert not estimates(model, _traits(0.5), "A3")
    for family in ("310P", "A2"):
        found = estimates(model, _traits(0.5), family)["enable_graph_mode"]
        rows = [model.table.runs.index(run) for run, _, _ in found.similar]
        assert {model.table.families[row] for row in rows} == {family}


def test_a_chip_nobody_has_tried_says_so(model: GainModel) -> None:
    assert "no tried outcome on A3 chips" in learnt_of(model, _traits(0.5), "A3").note.en


def test_what_did_not_fit_a_fuller_memory_is_not_offered(model: GainModel) -> None:
    assert "increase_batch" in unfit(model.table, _traits(held=0.9))
    assert "increase_batch" not in unfit(model.table, _traits(held=0.3))
    assert not unfit(model.table, {"log_batch": 0.0})


def test_no_model_family_is_in_two_folds() -> None:
    groups = tuple(name for count, name in enumerate(GROUPS, 1) for _ in range(count))
    folds = folds_of(groups, 3)
    for name in GROUPS:
        assert len({int(fold) for fold, own in zip(folds, groups, strict=True) if own == name}) == 1
    assert set(folds.tolist()) == {0, 1, 2}


def test_fitting_twice_gives_the_same(model: GainModel) -> None:
    again = fit_gains(table(), WEIGHTS, quiet)
    assert again.reliability == model.reliability
    assert np.array_equal(again.fitted, model.fitted, equal_nan=True)


def test_leaving_a_family_out_leaves_no_trace() -> None:
    rest = table().without_group("bert")
    assert "bert" not in rest.groups
    assert rest.fingerprint != table().fingerprint
    assert len(rest) == 96


# In a ranking.

_NAMES = {
    "enable_graph_mode": {"addresses": ("host_bound_launch",)},
    "use_fused_attention": {"addresses": ("unfused_attention",), "changes_model": True},
    "increase_batch": {"addresses": ("host_bound_launch",)},
    "schedule_gc": {"addresses": ("gc_pause",)},
    "rewrite": {"addresses": ("host_bound_launch",)},
}


def _catalogue() -> Catalogue:
    made: dict[str, Any] = {name: Strategy(id=name, name=_T, definition=_T, **own) for name, own in _NAMES.items()}  # type: ignore[arg-type]
    causes = {
        name: Cause(id=name, layer="graph", name=_T, definition=_T, evidence=_T)
        for name in ("host_bound_launch", "unfused_attention", "gc_pause")
    }
    return Catalogue(causes=causes, strategies=made, metrics={}, socs={}, glossary=())


def _diagnosis(share: float = 0.5) -> Diagnosis:
    finding = Finding(
        cause="host_bound_launch", priority="P0", exposed_ns=round(share * _STEP), share=share, gain_bound_ns=round(share * _STEP),
        confidence=0.9, message=_T, where=Where(), evidence=(Evidence(file="k.csv", row=2, metric="Duration", value=1, unit="us"),),
        strategies=("enable_graph_mode", "rewrite"),
    )  # fmt: skip
    books = Accounting(step="1", step_ns=_STEP, preparing_ns=None, parts={"compute": _STEP})
    one = SessionDiagnosis(
        name="x", rank=0, stage=None, origin="measured", steps=1, accounting=books, findings=(finding,) if share else (), healthy=(),
        not_judged=(),
    )  # fmt: skip
    return Diagnosis(sessions=(one,), cluster=ClusterDiagnosis())


def _past(strategy: str, gain: float, tier: Provenance, uses: tuple[Use, ...] = ()) -> PastCase:
    outcome = Outcome(strategy=strategy, result="improved" if gain > 0 else "worse", metric="time", before=Quantity(100, "ms"),
                      after=Quantity(100 * (1 - gain), "ms"), provenance=tier)  # fmt: skip
    case = Case(cause="host_bound_launch", context=CaseContext(soc_family="A2"), outcomes=(outcome,))
    record = Record(kind="recipe", slug=f"{strategy}-{tier}", title=_T, summary=_T, body=_T, provenance=tier, cases=(case,))
    hit = Hit(slug=record.slug, version=1, origin="library", kind="recipe", title=_T, score=1, similarity=0.9, why=(), provenance=tier)
    return PastCase(hit=hit, record=record, uses=uses)


def _ask(learnt: Learnt, past: tuple[PastCase, ...] = (), constraints: Constraints | None = None, share: float = 0.5) -> Recommendation:
    return recommend(
        _diagnosis(share), past, _catalogue(), constraints or Constraints(), load_weights(), family="A2", phase=None, learnt=learnt
    )


def test_learnt_gains_lead_and_priors_follow(model: GainModel) -> None:
    answer = _ask(learnt_of(model, _traits(0.5, 0.4, batch=5.0), "A2"))
    order = [item.id for item in answer.strategies]
    assert order.index("enable_graph_mode") < order.index("use_fused_attention") < order.index("rewrite")
    first = answer.strategies[0]
    assert (first.id, first.provenance) == ("enable_graph_mode", "simulated")
    assert "simulated runs" in first.rationale.en
    assert all(support.provenance == "simulated" for support in first.cases)
    assert any("not measured" in note.en for note in answer.notes)


def test_a_larger_batch_answers_throughput_not_latency(model: GainModel) -> None:
    learnt = learnt_of(model, _traits(0.2, 0.1, batch=0.0), "A2")
    fast, much = (
        [item.id for item in _ask(learnt, constraints=Constraints(target=target)).strategies] for target in ("latency", "throughput")
    )
    assert much[0] == "increase_batch"
    assert fast.index("increase_batch") > fast.index("use_fused_attention")


def test_what_gained_in_similar_runs_is_offered_without_a_finding(model: GainModel) -> None:
    learnt = learnt_of(model, _traits(0.0, 0.4), "A2")
    answer = _ask(learnt, share=0.0)
    assert "use_fused_attention" in [item.id for item in answer.strategies]
    assert any("no finding" in note.en for note in answer.notes)
    assert "schedule_gc" not in [item.id for item in answer.strategies]


def test_constraints_hold_for_learnt_strategies_too(model: GainModel) -> None:
    learnt = learnt_of(model, _traits(0.5, 0.4, held=0.9), "A2")
    answer = _ask(learnt, constraints=Constraints(allow_model_change=False, forbid=("enable_graph_mode",)))
    assert not {"use_fused_attention", "enable_graph_mode", "increase_batch"} & {item.id for item in answer.strategies}
    reasons = {item.id: item.reason.en for item in answer.excluded}
    assert "did not fit" in reasons["increase_batch"]


def test_a_claim_does_not_move_a_learnt_gain_and_a_measurement_does(model: GainModel) -> None:
    learnt = learnt_of(model, _traits(0.5), "A2")
    plain, claimed, measured = (
        next(item for item in _ask(learnt, past).strategies if item.id == "enable_graph_mode")
        for past in ((), (_past("enable_graph_mode", 0.05, "claimed"),), (_past("enable_graph_mode", 0.05, "measured"),))
    )
    assert claimed.gain_fraction == plain.gain_fraction
    assert measured.gain_fraction < plain.gain_fraction - 0.1
    assert measured.interval[0] <= 0.05 + 1e-9
    assert len(claimed.cases) == len(plain.cases) + 1


def test_a_claimed_gain_never_outranks_a_learnt_one_of_equal_fit(model: GainModel) -> None:
    learnt = learnt_of(model, _traits(0.2), "A2")
    fit = max(support.similarity for support in next(item for item in _ask(learnt).strategies if item.id == "enable_graph_mode").cases)
    bold = _past("rewrite", 0.9, "claimed")
    same = PastCase(hit=Hit(**{name: getattr(bold.hit, name) for name in Hit.__struct_fields__} | {"similarity": fit}), record=bold.record)
    order = [item.id for item in _ask(learnt, (same,)).strategies]
    assert order.index("enable_graph_mode") < order.index("rewrite")


def test_reported_uses_move_gain_and_confidence() -> None:
    past = _past("rewrite", 0.3, "measured")
    failed = _past("rewrite", 0.3, "measured", (Use(result="worse", gain_fraction=-0.1), Use(result="no_gain", gain_fraction=0.0)))
    worked = _past("rewrite", 0.3, "measured", (Use(result="improved", gain_fraction=0.3), Use(result="improved")))
    bare, bad, good = (next(item for item in _ask(NOTHING, (one,)).strategies if item.id == "rewrite") for one in (past, failed, worked))
    assert bad.gain_fraction < bare.gain_fraction
    assert bad.confidence < bare.confidence < good.confidence
    assert bad.interval[0] < 0
