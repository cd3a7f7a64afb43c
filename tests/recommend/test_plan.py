"""Plans: order, conflicts, commands for the user's tools, files, what steps save together."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recommend.samples import CATALOGUE, diagnosis, finding, ranked, recommendation

from kb.domain.plan import Plan
from kb.errors import UsageError
from kb.recommend.plan import composed, plan
from kb.recommend.plan_files import load_forms, tools_in, tools_of
from kb.report.plain import PlainRenderer
from kb.report.plan import plan_document

_FOUND = diagnosis(finding("slow", "P1"), finding("waits", "P0"))


def _plan(*names: str, tools: tuple[str, ...] = (), **changes: object) -> Plan:
    causes = {"bind": "waits"}
    items = [ranked(name, 0.2, 0.3, cause=causes.get(name, "slow")) for name in names]
    return plan(recommendation(*items), _FOUND, CATALOGUE, tools=tools, **changes)  # type: ignore[arg-type]  # keyword passthrough


def test_the_most_urgent_finding_comes_first() -> None:
    assert [(step.priority, step.strategy) for step in _plan("use_fused_attention", "bind").steps] == [
        ("P0", "bind"), ("P1", "use_fused_attention"),
    ]  # fmt: skip


def test_a_conflict_is_left_out_whichever_side_names_it() -> None:
    for names in (("increase_batch", "retile"), ("retile", "increase_batch")):
        made = _plan(*names)
        assert [step.strategy for step in made.steps] == [names[0]]
        assert made.left_out[0][0] == names[1]
        assert names[0] in made.left_out[0][1].en


def test_priorities_and_limit_choose() -> None:
    assert [step.strategy for step in _plan("use_fused_attention", "bind", priorities=("P1",)).steps] == ["use_fused_attention"]
    assert len(_plan("use_fused_attention", "bind", limit=1).steps) == 1


def test_commands_of_the_users_tools_only_or_first() -> None:
    assert [command.tool for command in _plan("bind", tools=("numactl",)).steps[0].commands] == ["numactl"]
    first = _plan("bind", software={"DeepSpeed": "0.14"}).steps[0].commands
    assert [command.tool for command in first] == ["deepspeed", "torch_npu", "numactl"]
    other = _plan("bind", tools=("atc",)).steps[0]
    assert len(other.commands) == 3
    assert any("toolchain" in risk.en for risk in other.risks)


def test_an_unknown_toolchain_is_refused_and_known_ones_are_named() -> None:
    with pytest.raises(UsageError) as caught:
        tools_of(["abacus"], CATALOGUE, load_forms())
    assert "numactl" in str(caught.value.allowed)
    assert "torch_npu" in tools_of(["torch_npu"], CATALOGUE, load_forms())
    assert tools_in({"unheard-of": "1"}, load_forms()) == ()


def test_files_hold_the_command_its_versions_and_the_way_back() -> None:
    files = {file.tool: file for file in _plan("bind").steps[0].files}
    assert files["torch_npu"].name == "01-bind-1.torch_npu.sh"
    assert "documented for 6.0; not tried" in files["torch_npu"].content
    assert "unset CPU_AFFINITY_CONF" in files["torch_npu"].content
    assert "tried on a machine" in files["numactl"].content
    assert json.loads(files["deepspeed"].content) == {"zero_optimization": {"stage": 2}}


def test_a_plan_says_what_may_break_and_what_cannot_be_simulated() -> None:
    made = _plan("lower_precision", "bind")
    steps = {step.strategy: step for step in made.steps}
    assert any("training" in risk.en for risk in steps["lower_precision"].risks)
    assert steps["lower_precision"].precision_check.en
    assert steps["bind"].precision_check.en == ""
    text = PlainRenderer().render(plan_document(made, "en"))
    assert "not simulatable" in text
    assert "can be tried on the simulator" in text


@given(st.lists(st.tuples(st.sampled_from(["slow", "waits"]), st.floats(0, 1), st.floats(0, 1)), max_size=6))
def test_together_never_more_than_the_step_nor_less_than_the_best(points: list[tuple[str, float, float]]) -> None:
    items = [ranked("bind", gain * high, high, cause=cause) for cause, gain, high in points]
    expected, low, high = composed(items)
    assert 0 <= low <= expected + 1e-12
    assert expected <= high + 1e-12
    assert high <= 1 + 1e-12
    assert expected >= max((item.gain_fraction for item in items), default=0) - 1e-9


def test_changes_against_one_cause_share_its_time() -> None:
    assert composed([ranked("bind", 0.3, 0.3), ranked("retile", 0.3, 0.3)])[0] == pytest.approx(0.3)
    assert composed([ranked("bind", 0.3, 0.3, cause="waits"), ranked("retile", 0.3, 0.3)])[0] == pytest.approx(0.51)


def test_no_findings_give_an_empty_plan() -> None:
    made = _plan()
    assert made.steps == ()
    assert made.expected is None
    assert made.feasible
