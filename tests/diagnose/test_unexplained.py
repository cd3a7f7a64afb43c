"""Idle time that nothing explains is never cleared, and a capture of the host alone never judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from diagnose.cases import hosted, one
from diagnose.factories import SHIPPED
from diagnose.scenes import Scene
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.diagnose.diagnosis import diagnose
from kb.domain.diagnosis import UNEXPLAINED_LARGE, SessionDiagnosis
from kb.workflow.diagnose import diagnose_paths

OWNERS = {
    "dataloader_bound",
    "host_bound_launch",
    "stream_bubbles",
    "synchronization_stall",
    "gc_pause",
    "io_checkpoint",
    "dynamic_shape_recompile",
    "memory_fragmentation",
}


def held_back(pause: float) -> Scene:
    """Twenty products launched far ahead; ``pause`` us in the middle in which the device runs nothing and nothing says why."""
    scene = Scene()
    for place in range(20):
        scene.host("launch", place * 6.0, 5.0, layer="node", connection_id=place)
        scene.kernel("MatMulV3", 100.0, core="AI_CORE", gap=pause if place == 10 else 0.0, connection_id=place)
    return scene


def diagnosed(scene: Scene) -> SessionDiagnosis:
    (session,) = diagnose(one(scene), SHIPPED).sessions
    return session


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1500))
def test_a_large_pause_nobody_explains_leaves_its_possible_owners_open(pause: int) -> None:
    session = diagnosed(held_back(float(pause)))
    large = pause >= UNEXPLAINED_LARGE * (2000 + pause)
    assert session.unexplained_ns == pause * 1000
    assert OWNERS.isdisjoint({item.cause for item in session.healthy}) is large
    assert ({item.cause for item in session.not_judged} >= OWNERS) is large
    assert session.leaves_open(session.findings) is large


def test_the_reason_says_how_much_is_open_and_that_the_kernel_had_been_launched() -> None:
    session = diagnosed(held_back(1000.0))
    (note,) = [item for item in session.not_judged if item.cause == "host_bound_launch"]
    assert "1.0 ms (33.3 %) of the step is idle" in note.reason.en
    assert "had been launched already" in note.reason.en
    assert "0.9 ms ahead" in note.reason.en
    assert "33.3 %" in note.reason.zh
    assert note.capture.en


def test_a_finding_that_explains_the_idle_time_leaves_nothing_open() -> None:
    scene = Scene()
    for _ in range(40):
        scene.kernel("MatMulV3", 10.0, gap=20.0, core="AI_CORE")
    session = diagnosed(scene)
    assert [finding.cause for finding in session.findings][:1] == ["host_bound_launch"]
    assert session.unexplained_ns < UNEXPLAINED_LARGE * session.accounting.step_ns


def test_a_busy_device_keeps_its_clean_bill() -> None:
    session = diagnosed(hosted())
    assert {item.cause for item in session.healthy} >= OWNERS - {"dynamic_shape_recompile"}


def test_host_events_alone_judge_nothing_and_never_say_they_are_missing() -> None:
    session = diagnosed(Scene().step(0, 100).host("aten::add", 10.0, 20.0))
    assert not session.findings
    assert not session.healthy
    assert not session.saw_device()
    assert {item.reason.en for item in session.not_judged} == {"no device activity was captured: nothing on the device can be judged"}
    assert not diagnose(one(Scene().step(0, 100).host("aten::add", 10.0, 20.0)), SHIPPED).has_books()


def test_the_small_kernels_of_a_real_trace_are_not_called_healthy(shared: Path) -> None:
    """Its kernels were launched up to 199 ms before they ran: the host was not late, and what they waited for is not recorded."""
    (path,) = (shared / "data" / "profiles" / "kineto").glob("a100_busy36*")
    (session,) = diagnose_paths([path]).diagnosis.sessions
    assert OWNERS.isdisjoint({item.cause for item in session.healthy})
    assert session.leaves_open(session.findings)
    assert session.unexplained_ns / session.accounting.step_ns == pytest.approx(0.636, abs=0.001)


def test_captured_communication_is_never_called_absent(shared: Path) -> None:
    rank = shared / "data" / "profiles" / "ascend" / "qwen3-0.6b-train-pp2-dp2" / "rank_0_ascend_pt"
    (gpu,) = (shared / "data" / "profiles" / "kineto").glob("a100_busy36*")
    for path in (rank, gpu):
        diagnosis = diagnose_paths([path]).diagnosis
        assert diagnosis.sessions[0].accounting.parts["comm_exposed"] > 0
        assert not [item for item in diagnosis.cluster.not_judged if item.reason.en == "no communication was captured"]
    slow = next(item for item in diagnose_paths([rank]).diagnosis.cluster.not_judged if item.cause == "slow_link_or_rank")
    assert "420.2 ms exposed" in slow.reason.en
