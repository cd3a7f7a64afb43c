from __future__ import annotations

import msgspec
import pytest
from diagnose.factories import made, view_of

from kb.diagnose.ruleset import RULES, RuleEntry
from kb.diagnose.runner import run
from kb.diagnose.thresholds import load_thresholds
from kb.diagnose.view import RankView
from kb.domain.finding import Evidence, Finding, Healthy, Judgement, NotJudged, Where
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds

VIEW = view_of(made(trace=[{"computing_ns": 100}]))
EVIDENCE = (Evidence(file="f.csv", row=2, metric="Duration", value=1.0, unit="us"),)
SOUND = Finding(cause="a", priority="P1", exposed_ns=10, share=0.1, gain_bound_ns=5, confidence=0.9, message=Text("甲", "a"), where=Where(),
                evidence=EVIDENCE)  # fmt: skip


def answers(*judgements: Judgement) -> RuleEntry:
    def rule(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
        return judgements

    return RuleEntry(rule, "rank", ("a",))


def outcome(entry: RuleEntry) -> tuple[Judgement, ...]:
    return run(entry, VIEW, load_thresholds(), ("a", "b"))


def test_a_sound_finding_passes_unchanged() -> None:
    assert outcome(answers(SOUND)) == (SOUND,)


def test_a_rule_that_raises_becomes_a_fault_that_names_the_error() -> None:
    def rule(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
        raise ZeroDivisionError("no kernels")

    found = outcome(RuleEntry(rule, "rank", ("a", "b")))
    assert [(note.cause, isinstance(note, NotJudged) and note.fault) for note in found] == [("a", True), ("b", True)]
    assert all(isinstance(note, NotJudged) and "ZeroDivisionError: no kernels" in note.reason.en for note in found)


def test_an_interrupt_is_not_swallowed() -> None:
    def rule(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        outcome(RuleEntry(rule, "rank", ("a",)))


@pytest.mark.parametrize(
    ("changes", "phrase"),
    [
        ({"evidence": ()}, "without evidence"),
        ({"gain_bound_ns": 11}, "outside 0..10"),
        ({"gain_bound_ns": -1}, "outside 0..10"),
        ({"share": 1.5}, "outside 0..1"),
        ({"share": float("nan")}, "outside 0..1"),
    ],
)
def test_an_unsound_finding_is_refused(changes: dict[str, object], phrase: str) -> None:
    (found,) = outcome(answers(msgspec.structs.replace(SOUND, **changes)))
    assert isinstance(found, NotJudged)
    assert found.fault
    assert phrase in found.reason.en


def test_a_judgement_on_somebody_elses_cause_is_refused() -> None:
    found = outcome(answers(msgspec.structs.replace(SOUND, cause="b")))
    assert [(note.cause, isinstance(note, NotJudged) and note.fault) for note in found] == [("b", True), ("a", True)]


def test_a_cause_the_catalogue_does_not_know_is_a_fault() -> None:
    (found,) = run(answers(SOUND), VIEW, load_thresholds(), ("b",))
    assert isinstance(found, NotJudged)
    assert found.fault


def test_silence_about_a_cause_is_a_fault() -> None:
    (found,) = outcome(answers())
    assert isinstance(found, NotJudged)
    assert found.fault


@pytest.mark.parametrize("entry", [entry for entry in RULES if entry.kind == "rank"])
def test_every_rank_rule_judges_a_bare_session_without_a_fault(entry: RuleEntry) -> None:
    found = run(entry, VIEW, load_thresholds(), entry.causes)
    assert not any(isinstance(note, NotJudged) and note.fault for note in found)


def test_no_two_rules_judge_the_same_cause() -> None:
    causes = [cause for entry in RULES for cause in entry.causes]
    assert len(causes) == len(set(causes))


def test_healthy_judgements_pass() -> None:
    fine = Healthy(cause="a", message=Text("好", "fine"))
    assert outcome(answers(fine)) == (fine,)
