"""A gain is credited to a strategy only where the captures show that it is about the strategy's cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.domain.case import Case, CaseContext, Outcome, Result
from kb.domain.comparison import Comparison, Delta
from kb.domain.quantity import Quantity
from kb.domain.record import Record
from kb.domain.text import Text
from kb.recommend.potential import trials_of
from kb.store.artefacts import FolderArtefacts
from kb.workflow import attribution
from kb.workflow.attribution import attributed, meant_for
from kb.workflow.evidence import Evidence, Recomputed
from kb.workflow.location import shipped_catalogue

_T = Text("文", "text")
_STEP, _AFTER = 100_000_000, 70_000_000
_CATALOGUE = shipped_catalogue()


def _comparison(*causes: Delta, after: int = _AFTER) -> Comparison:
    return Comparison(
        before="a", after="b", verdict="improved", before_step_ns=_STEP, after_step_ns=after, gain_fraction=1 - after / _STEP,
        interval=(0.2, 0.4), interval_level=0.9, noise_fraction=0.02, n=(6, 6), origins=("measured", "measured"), causes=causes,
    )  # fmt: skip


def _record(strategy: str, result: Result = "improved") -> Record:
    outcome = Outcome(strategy=strategy, result=result, metric="step_time", before=Quantity(100, "ms"), after=Quantity(70, "ms"),
                      provenance="measured")  # fmt: skip
    case = Case(cause="dataloader_bound", context=CaseContext(), outcomes=(outcome,))
    return Record(kind="recipe", slug="x", title=_T, summary=_T, body=_T, provenance="measured", cases=(case,))


def _judge(monkeypatch: pytest.MonkeyPatch, strategy: str, *causes: Delta, result: Result = "improved") -> tuple[Record, int]:
    seen = _comparison(*causes)
    monkeypatch.setattr(attribution, "_with_causes", lambda names, artefacts: iter((seen,)))
    carried = Recomputed(strategy=strategy, tier="measured", comparison=seen, contradicted=False, reason=Text())
    evidence = Evidence(tier="measured", outcomes=(carried,), reasons=(), token="t")
    record, notes = attributed(_record(strategy, result), evidence, FolderArtefacts(Path("nowhere")), _CATALOGUE)
    return record, len(notes)


_LOADER = Delta(name="dataloader_bound", before_ns=60_000_000, after_ns=31_000_000, before_count=1, after_count=1)


def test_a_strategy_for_another_cause_is_not_credited_and_promises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    record, notes = _judge(monkeypatch, "use_fused_attention", _LOADER)
    outcome = record.cases[0].outcomes[0]
    assert notes == 1
    assert not outcome.reported_to_work
    assert (outcome.result, outcome.provenance) == ("improved", "measured")
    assert "dataloader_bound" in outcome.note.en
    assert list(trials_of("x@1", record, "use_fused_attention")) == []


def test_a_strategy_for_the_cause_that_shrank_is_credited(monkeypatch: pytest.MonkeyPatch) -> None:
    record, notes = _judge(monkeypatch, "prefetch_data", _LOADER)
    assert notes == 0
    assert record.cases[0].outcomes[0].reported_to_work


def test_a_cause_that_stayed_explains_no_gain_but_a_failure_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    stayed = Delta(name="dataloader_bound", before_ns=60_000_000, after_ns=58_000_000, before_count=1, after_count=1)
    assert _judge(monkeypatch, "prefetch_data", stayed)[1] == 1
    assert _judge(monkeypatch, "prefetch_data", stayed, result="no_gain")[1] == 0
    new = Delta(name="dataloader_bound", before_ns=0, after_ns=58_000_000, before_count=0, after_count=1)
    assert _judge(monkeypatch, "prefetch_data", new)[1] == 1


def test_marking_twice_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    once, _ = _judge(monkeypatch, "use_fused_attention", _LOADER)
    seen = _comparison(_LOADER)
    carried = Recomputed(strategy="use_fused_attention", tier="measured", comparison=seen, contradicted=False, reason=Text())
    again, notes = attributed(
        once, Evidence(tier="measured", outcomes=(carried,), reasons=(), token="t"), FolderArtefacts(Path("nowhere")), _CATALOGUE
    )
    assert again == once
    assert notes == ()


@given(st.sampled_from(sorted(_CATALOGUE.strategies)))
def test_both_sides_of_the_catalogue_say_what_a_strategy_is_for(name: str) -> None:
    causes = meant_for(name, _CATALOGUE)
    assert set(_CATALOGUE.strategies[name].addresses) <= causes
    assert meant_for("unheard_of", _CATALOGUE) == frozenset()
