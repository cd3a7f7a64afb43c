"""Every rule on a session with the cause, one without it, and one that cannot tell."""

from __future__ import annotations

import pytest
from diagnose.cases import CASES
from diagnose.factories import SHIPPED

from kb.diagnose.diagnosis import diagnose
from kb.diagnose.ruleset import RULES
from kb.domain.diagnosis import ClusterDiagnosis, Diagnosis, SessionDiagnosis
from kb.domain.finding import Finding, Healthy, Judgement, NotJudged


def judgements(diagnosis: Diagnosis, cause: str) -> list[Judgement]:
    parts: tuple[ClusterDiagnosis | SessionDiagnosis, ...] = (diagnosis.cluster, *diagnosis.sessions)
    found: list[Judgement] = []
    for part in parts:
        found += [*part.findings, *part.healthy, *part.not_judged]
    return [item for item in found if item.cause == cause]


def test_every_cause_of_every_rule_has_its_three_sessions() -> None:
    assert set(CASES) | {"unfused_attention"} == {cause for entry in RULES for cause in entry.causes}


@pytest.mark.parametrize("cause", CASES)
def test_the_cause_is_found_with_its_cost_and_rows_to_look_up(cause: str) -> None:
    case = CASES[cause]
    diagnosis = diagnose(case.positive(), SHIPPED)
    found = [item for item in judgements(diagnosis, cause) if isinstance(item, Finding)]
    assert len(found) == 1, judgements(diagnosis, cause)
    assert found[0].exposed_ns == pytest.approx(case.cost * 1000, rel=0.1)
    assert 0 <= found[0].gain_bound_ns <= found[0].exposed_ns
    assert all(row.file and row.row for row in found[0].evidence)
    assert found[0].message.zh
    assert found[0].message.en


@pytest.mark.parametrize("cause", CASES)
def test_a_session_without_the_cause_is_healthy(cause: str) -> None:
    items = judgements(diagnose(CASES[cause].negative(), SHIPPED), cause)
    assert any(isinstance(item, Healthy) for item in items)
    assert not any(isinstance(item, Finding) for item in items), items


@pytest.mark.parametrize("cause", CASES)
def test_a_session_that_cannot_tell_says_what_is_missing(cause: str) -> None:
    items = judgements(diagnose(CASES[cause].blind(), SHIPPED), cause)
    assert items
    for item in items:
        assert isinstance(item, NotJudged), item
        assert CASES[cause].reason in item.reason.en
        assert not item.fault


@pytest.mark.parametrize("cause", CASES)
def test_gains_together_never_exceed_the_step_and_books_balance(cause: str) -> None:
    diagnosis = diagnose(CASES[cause].positive(), SHIPPED)
    for session in diagnosis.sessions:
        assert sum(session.accounting.parts.values()) == pytest.approx(session.accounting.step_ns, rel=1e-3)
        assert sum(finding.gain_bound_ns for finding in session.findings) <= session.accounting.step_ns
    assert not diagnosis.has_fault()
