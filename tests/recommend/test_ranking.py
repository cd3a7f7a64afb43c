"""The recommender: bounds, constraints, tiers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kb.domain.accounting import Accounting
from kb.domain.case import Case, CaseContext, Hit, Outcome
from kb.domain.catalogue import Catalogue, Cause, Strategy
from kb.domain.diagnosis import ClusterDiagnosis, Diagnosis, SessionDiagnosis
from kb.domain.finding import Evidence, Finding, NotJudged, Where
from kb.domain.provenance import TIERS, Provenance, rank_of
from kb.domain.quantity import Quantity
from kb.domain.recommendation import Constraints, Recommendation
from kb.domain.record import Record
from kb.domain.soc import SocFamily
from kb.domain.text import Text
from kb.recommend.plan import plan
from kb.recommend.ranking import recommend
from kb.recommend.support import PastCase
from kb.recommend.weights import load_weights

_T = Text("文", "text")
_STEP = 1_000_000


def _strategy(name: str, **changes: object) -> Strategy:
    return Strategy(id=name, name=_T, definition=_T, **changes)  # type: ignore[arg-type]  # keyword passthrough of a test factory


_STRATEGIES = {
    "fuse": _strategy("fuse", effort="flag", families=("A2",)),
    "rewrite": _strategy("rewrite", effort="kernel", changes_model=True, conflicts=("fuse",)),
    "deepen": _strategy("deepen", effort="environment", phases=("training",)),
}
_CAUSE = Cause(id="slow", layer="graph", name=_T, definition=_T, evidence=_T, strategies=tuple(_STRATEGIES))
_CATALOGUE = Catalogue(causes={"slow": _CAUSE}, strategies=_STRATEGIES, metrics={}, socs={}, glossary=())


def _diagnosis(exposed: int = 400_000, bound: int = 300_000) -> Diagnosis:
    finding = Finding(
        cause="slow", priority="P0", exposed_ns=exposed, share=exposed / _STEP, gain_bound_ns=bound, confidence=0.8, message=_T,
        where=Where(), evidence=(Evidence(file="k.csv", row=2, metric="Duration", value=1, unit="us"),), strategies=tuple(_STRATEGIES),
    )  # fmt: skip
    books = Accounting(step="1", step_ns=_STEP, preparing_ns=None, parts={"compute": _STEP})
    one = SessionDiagnosis(
        name="x", rank=0, stage=None, origin="measured", steps=1, accounting=books, findings=(finding,), healthy=(), not_judged=()
    )
    return Diagnosis(sessions=(one,), cluster=ClusterDiagnosis())


def _past(
    strategy: str, gain: float, tier: Provenance, *, family: SocFamily = "A2", similarity: float = 0.5, share: float | None = 0.5
) -> PastCase:
    outcome = Outcome(strategy=strategy, result="improved" if gain > 0 else "worse", metric="time", before=Quantity(100, "ms"),
                      after=Quantity(100 * (1 - gain), "ms"), share=share, provenance=tier)  # fmt: skip
    case = Case(cause="slow", context=CaseContext(soc_family=family), outcomes=(outcome,))
    record = Record(kind="recipe", slug=f"{strategy}-{tier}", title=_T, summary=_T, body=_T, provenance=tier, cases=(case,))
    hit = Hit(
        slug=record.slug, version=1, origin="library", kind="recipe", title=_T, score=1, similarity=similarity, why=(), provenance=tier
    )
    return PastCase(hit=hit, record=record)


def _ask(
    past: tuple[PastCase, ...], constraints: Constraints | None = None, *, diagnosis: Diagnosis | None = None, phase: str | None = None
) -> Recommendation:
    return recommend(diagnosis or _diagnosis(), past, _CATALOGUE, constraints or Constraints(), load_weights(), family="A2", phase=phase)


@given(st.floats(-0.9, 0.99), st.sampled_from(TIERS), st.integers(1, _STEP), st.floats(0, 1))
def test_no_expectation_exceeds_the_bound_or_the_interval(gain: float, tier: Provenance, exposed: int, part: float) -> None:
    bound = round(exposed * part)
    for item in _ask((_past("fuse", gain, tier),), diagnosis=_diagnosis(exposed, bound)).strategies:
        assert -1e-9 <= item.gain_fraction <= bound / _STEP + 1e-9
        assert item.interval[0] - 1e-9 <= item.gain_fraction <= item.interval[1] + 1e-9
        assert 0 <= item.confidence <= 1


def test_a_part_gain_is_scaled_by_the_share_exposed_here() -> None:
    item = next(item for item in _ask((_past("fuse", 0.32, "measured"),)).strategies if item.id == "fuse")
    # A measured case of half similarity weighs as much as the prior part (0.3 of the bound of 0.3).
    assert abs(item.gain_fraction - (0.32 * 0.4 + 0.3 * 0.3) / 2) < 1e-9


def test_a_whole_step_gain_is_capped_by_the_bound() -> None:
    item = next(item for item in _ask((_past("fuse", 0.9, "measured", share=None),)).strategies if item.id == "fuse")
    assert abs(item.gain_fraction - (0.3 + 0.3 * 0.3) / 2) < 1e-9


def test_a_case_of_another_known_soc_family_does_not_speak() -> None:
    item = next(item for item in _ask((_past("fuse", 0.3, "measured", family="310P"),)).strategies if item.id == "fuse")
    assert item.cases == ()
    assert "no case" in item.rationale.en


def test_a_claim_never_outranks_a_measured_gain_of_equal_fit() -> None:
    for tier in TIERS[1:]:
        order = [item.id for item in _ask((_past("rewrite", 0.7, "claimed"), _past("fuse", 0.05, tier))).strategies]
        assert order.index("fuse") < order.index("rewrite"), tier


def test_failures_are_cases_too() -> None:
    item = next(item for item in _ask((_past("fuse", -0.2, "measured"),)).strategies if item.id == "fuse")
    assert item.gain_fraction < 0.1 * 0.3 * 0.3
    assert item.interval[0] < 0
    best = next(item for item in _ask((_past("fuse", 0.2, "measured"),)).strategies if item.id == "fuse")
    assert item.confidence < best.confidence


def test_an_outcome_is_never_stronger_than_its_record() -> None:
    typed = _past("fuse", 0.3, "measured")
    weak = PastCase(
        hit=typed.hit, record=Record(kind="recipe", slug="x", title=_T, summary=_T, body=_T, provenance="claimed", cases=typed.record.cases)
    )
    item = next(item for item in _ask((weak,)).strategies if item.id == "fuse")
    assert rank_of(item.provenance) == 0


def test_each_hard_constraint_excludes_with_its_reason() -> None:
    constraints = Constraints(forbid=("deepen",), allow_model_change=False)
    answer = _ask((), constraints)
    assert [item.id for item in answer.strategies] == ["fuse"]
    assert {item.id: item.reason.en for item in answer.excluded} == {
        "deepen": "forbidden by --forbid",
        "rewrite": "changes the model, which --no-model-change rules out",
    }


def test_effort_family_and_phase_exclude() -> None:
    assert {item.id for item in _ask((), Constraints(max_effort="environment")).excluded} == {"rewrite"}
    assert {item.id for item in _ask((), phase="inference").excluded} == {"deepen"}
    other = recommend(_diagnosis(), (), _CATALOGUE, Constraints(), load_weights(), family="310P", phase=None)
    assert {item.id for item in other.excluded} == {"fuse"}


def test_excluding_everything_is_infeasible() -> None:
    answer = _ask((), Constraints(forbid=tuple(_STRATEGIES)))
    assert not answer.feasible
    assert answer.closest.en


def test_an_unreachable_latency_says_how_close_one_can_come() -> None:
    answer = _ask((), Constraints(max_latency_ns=1.0))
    assert not answer.feasible
    assert "ms" in answer.closest.en


def test_no_findings_means_nothing_worth_fixing() -> None:
    empty = Diagnosis(sessions=(), cluster=ClusterDiagnosis())
    answer = _ask((), diagnosis=empty)
    assert answer.feasible
    assert answer.strategies == ()
    assert "nothing worth fixing" in answer.notes[0].en


def test_silence_is_no_all_clear_when_checks_could_not_be_made() -> None:
    skipped = ClusterDiagnosis(not_judged=(NotJudged(cause="slow", reason=_T),))
    note = _ask((), diagnosis=Diagnosis(sessions=(), cluster=skipped)).notes[0].en
    assert "slow" in note
    assert "nothing worth fixing" not in note


def test_a_limit_met_only_at_the_upper_ends_is_said_to_be_uncertain() -> None:
    answer = _ask((_past("fuse", 0.1, "measured"),), Constraints(max_latency_ns=_STEP * 0.75, allow=("fuse",)))
    assert answer.feasible
    assert any("only the upper ends" in note.en for note in answer.notes)
    sure = _ask((_past("fuse", 0.9, "measured"),), Constraints(max_latency_ns=_STEP * 0.85, allow=("fuse",)))
    assert sure.feasible
    assert not any("only the upper ends" in note.en for note in sure.notes)


def test_advice_on_a_simulated_session_says_so() -> None:
    diagnosis = _diagnosis()
    simulated = replace(diagnosis, sessions=tuple(replace(session, origin="simulated") for session in diagnosis.sessions))
    assert any("simulated" in note.en for note in _ask((), diagnosis=simulated).notes)
    assert not _ask((), diagnosis=diagnosis).notes


def test_a_card_does_not_count_a_second_time() -> None:
    past = _past("fuse", 0.3, "measured")
    card = PastCase(hit=past.hit, record=replace(past.record, kind="card"))
    item = next(item for item in _ask((past, card)).strategies if item.id == "fuse")
    assert len(item.cases) == 1


def test_a_plan_leaves_out_what_conflicts_with_an_earlier_step() -> None:
    diagnosis = _diagnosis()
    steps = plan(_ask((_past("fuse", 0.3, "measured"),)), diagnosis, _CATALOGUE).steps
    assert "fuse" in [step.strategy for step in steps]
    assert "rewrite" not in [step.strategy for step in steps]
    assert all(step.priority == "P0" for step in steps)


@pytest.mark.parametrize("change", [{"reported_to_work": False}, {"result": "unknown"}])
def test_a_gain_that_nobody_reported_expects_nothing(change: dict[str, object]) -> None:
    past = _past("fuse", 0.9, "claimed")
    case = past.record.cases[0]
    outcome = replace(case.outcomes[0], **change)
    suggested = replace(past, record=replace(past.record, cases=(replace(case, outcomes=(outcome,)),)))
    mine, prior = (next(item for item in _ask(cases).strategies if item.id == "fuse") for cases in ((suggested,), ()))
    assert mine.gain_fraction == prior.gain_fraction
    assert len(mine.cases) == 1
    assert mine.cases[0].gain_fraction is None
