from __future__ import annotations

import re
from collections import Counter

import msgspec
import pytest
from diagnose.attention_runs import forward, projection
from diagnose.factories import MS, SHIPPED, catalogue, in_sequence, made
from hypothesis import given
from hypothesis import strategies as st

from kb.diagnose.composition import composed
from kb.diagnose.diagnosis import diagnose
from kb.diagnose.operators import load_classes
from kb.diagnose.ruleset import RULES
from kb.diagnose.thresholds import default_thresholds, load_thresholds, priority
from kb.domain.finding import Evidence, Finding, Judgement, Where
from kb.domain.quantity import UNITS
from kb.domain.template import Check, Template
from kb.domain.text import Text
from kb.errors import UsageError
from kb.session.session import Session

ATTENTION = made(name="sd3", rank=0, world_size=8, kernels=in_sequence([*projection(), *forward(), *projection()]))


def template(*checks: Check) -> Template:
    return Template(slug="diffusion", name=Text("扩散", "diffusion"), description=Text("扩散", "diffusion"), checks=checks)


def finding(cause: str, exposed: int, gain: int) -> Finding:
    evidence = (Evidence(file="f", row=2, metric="m", value=1.0, unit="us"),)
    return Finding(cause=cause, priority="P1", exposed_ns=exposed, share=0.1, gain_bound_ns=gain, confidence=0.9, message=Text("甲", "a"),
                   where=Where(), evidence=evidence)  # fmt: skip


def test_findings_carry_the_strategies_of_the_catalogue() -> None:
    (session,) = diagnose([ATTENTION], SHIPPED).sessions
    (found,) = session.findings
    assert (found.cause, found.strategies) == ("unfused_attention", ("fix_unfused_attention",))


def test_the_session_is_named_and_the_cluster_says_what_was_captured() -> None:
    diagnosis = diagnose([ATTENTION], SHIPPED)
    assert (diagnosis.sessions[0].name, diagnosis.sessions[0].rank, diagnosis.sessions[0].steps) == ("sd3", 0, 1)
    assert (diagnosis.cluster.captured_ranks, diagnosis.cluster.world_size, diagnosis.template) == ((0,), 8, "auto")
    assert "pipeline_imbalance" in [note.cause for note in diagnosis.cluster.not_judged]


def test_every_cause_of_every_rule_is_judged_for_every_session() -> None:
    for session in diagnose([ATTENTION, made(trace=[{"computing_ns": 9}]), made()], SHIPPED).sessions:
        judgements: tuple[Judgement, ...] = (*session.findings, *session.healthy, *session.not_judged)
        expected = Counter(cause for entry in RULES if entry.kind == "rank" for cause in entry.causes)
        assert Counter(note.cause for note in judgements) == expected


def test_a_cause_missing_in_the_catalogue_is_a_fault() -> None:
    diagnosis = diagnose([ATTENTION], catalogue("pipeline_imbalance"))
    assert diagnosis.has_fault()
    assert not diagnosis.sessions[0].findings


def test_a_template_restricts_and_lowers_or_raises_thresholds() -> None:
    check = Check(cause="unfused_attention", thresholds={"attention_minimum_share": 0.99})
    diagnosis = diagnose([ATTENTION], SHIPPED, template=template(check))
    assert diagnosis.template == "diffusion"
    assert not diagnosis.sessions[0].findings
    assert [note.cause for note in diagnosis.sessions[0].healthy] == ["unfused_attention"]
    assert not diagnosis.cluster.not_judged


def test_a_template_threshold_no_rule_reads_is_refused() -> None:
    with pytest.raises(UsageError, match="no_such"):
        diagnose([ATTENTION], SHIPPED, template=template(Check(cause="unfused_attention", thresholds={"no_such": 1.0})))


def test_a_template_cause_without_a_rule_is_listed_as_not_judged() -> None:
    diagnosis = diagnose([ATTENTION], SHIPPED, template=template(Check(cause="cpu_affinity")))
    (note,) = diagnosis.cluster.not_judged
    assert (note.cause, note.fault) == ("cpu_affinity", False)
    assert not diagnosis.sessions[0].not_judged


def test_books_that_do_not_balance_silence_the_rules_with_the_reason() -> None:
    broken = made(trace=[{"computing_ns": 40 * MS, "stage_ns": 90 * MS}], kernels=in_sequence(forward()))
    (session,) = diagnose([broken], SHIPPED).sessions
    assert all("do not balance" in note.reason.en for note in session.not_judged)
    assert len(session.not_judged) == sum(entry.kind == "rank" for entry in RULES)
    assert not session.findings


@pytest.mark.parametrize("session", [made(), made(steps=[("1", 0, 90, 0)])])
def test_a_session_without_device_data_is_accounted_and_not_judged(session: Session) -> None:
    (result,) = diagnose([session], SHIPPED).sessions
    assert result.accounting.notes
    assert not result.findings
    assert result.not_judged
    assert not any(note.fault for note in result.not_judged)


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), max_size=6), st.integers(0, 150))
def test_bounds_together_never_exceed_the_budget_and_none_is_raised(rows: list[tuple[int, int]], budget: int) -> None:
    given_findings = [finding(f"c{place}", max(row), min(row)) for place, row in enumerate(rows)]
    result = composed(given_findings, {"compute": budget // 2, "idle_launch": budget - budget // 2}, {})
    own = {before.cause: before.gain_bound_ns for before in given_findings}
    assert sum(after.gain_bound_ns for after in result) == min(budget, sum(own.values()))
    assert all(0 <= after.gain_bound_ns <= own[after.cause] for after in result)
    assert all(after.notes for after in result if after.gain_bound_ns < own[after.cause])
    assert [after.exposed_ns for after in result] == sorted((before.exposed_ns for before in given_findings), reverse=True)


def test_priorities_follow_the_exposed_share() -> None:
    assert [priority(share, load_thresholds()) for share in (0.10, 0.0999, 0.05, 0.0499, 0.01, 0.0099)] == [
        "P0",
        "P1",
        "P1",
        "P2",
        "P2",
        "P3",
    ]


def test_every_threshold_has_a_known_unit_and_a_reason() -> None:
    rows = default_thresholds()
    assert len({row.name for row in rows}) == len(rows)
    assert all(row.unit in UNITS and row.reason.endswith(".") for row in rows)


@pytest.mark.parametrize(
    ("op_type", "role"),
    [
        ("BatchMatMulV3", "product"),
        ("SoftmaxV2", "softmax"),
        ("SoftmaxGrad", "softmax_grad"),
        ("ScaledMaskedSoftmaxGrad", "softmax_grad"),
        ("Cast", "bridge"),
        ("DropOutDoMask", "bridge"),
        ("DropOutGenMask", "aside"),
        ("MemSet", "aside"),
        ("FlashAttentionScore", "fused_attention"),
        ("FusedInferAttentionScoreV2", "fused_attention"),
        ("LayerNormV3", None),
        ("LogSoftmaxV2", None),
    ],
)
def test_an_operator_type_plays_the_one_role_expected(op_type: str, role: str | None) -> None:
    types = {name: load_classes().types[name] for name in ("product", "softmax", "softmax_grad", "bridge", "aside", "fused_attention")}
    roles = [name for name, patterns in types.items() if any(re.fullmatch(pattern, op_type) for pattern in patterns)]
    assert roles == ([role] if role else [])


def test_everything_that_may_enter_a_run_may_also_bridge_it() -> None:
    types = load_classes().types
    assert set(types["entry"]) <= {*types["bridge"], "RealDiv|Div"}


def test_a_diagnosis_survives_its_json() -> None:
    diagnosis = diagnose([ATTENTION], SHIPPED)
    assert msgspec.json.decode(msgspec.json.encode(diagnosis), type=type(diagnosis)) == diagnosis
