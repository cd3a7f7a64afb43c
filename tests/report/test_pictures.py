"""Facts of sessions: nothing is counted twice, nothing gets lost, and nothing grows with the capture."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report.samples import session

from kb.diagnose.operators import load_classes
from kb.diagnose.view import rank_view
from kb.report.figures import Frame, Timeline
from kb.report.pictures.flame import flame_root
from kb.report.pictures.memory import resource_curves
from kb.report.pictures.operators import operator_facts
from kb.report.pictures.tasks import Tasks, step_tasks
from kb.report.pictures.timeline import timeline
from kb.session.session import Session, Table

_DURATIONS = st.lists(st.integers(1, 5_000), min_size=1, max_size=60)


def _tasks(made: Session) -> Tasks:
    tasks = step_tasks(rank_view(made, load_classes()))
    assert tasks is not None
    return tasks


def _sound(frame: Frame) -> bool:
    return sum(child.value_ns for child in frame.children) <= frame.value_ns and all(map(_sound, frame.children))


@settings(deadline=None)
@given(_DURATIONS, st.integers(0, 10**9))
def test_a_flame_graph_holds_all_time_once(durations: list[int], idle_ns: int) -> None:
    root = flame_root(_tasks(session(durations)), idle_ns)
    assert root.value_ns == sum(durations) * 1000 + idle_ns
    assert sum(child.value_ns for child in root.children) == root.value_ns
    assert _sound(root)


@settings(deadline=None)
@given(_DURATIONS)
def test_operator_types_add_up_to_the_device_time(durations: list[int]) -> None:
    facts = operator_facts(_tasks(session(durations)), 10)
    assert sum(fact.total_ns for fact in facts) == sum(durations) * 1000
    assert [fact.total_ns for fact in facts] == sorted((fact.total_ns for fact in facts), reverse=True)


def _totals(chart: Timeline) -> tuple[int, int]:
    return sum(sum(lane.counts) for lane in chart.lanes), sum(sum(lane.durations) for lane in chart.lanes)


@settings(deadline=None)
@given(_DURATIONS, st.integers(1, 20))
def test_merging_spans_loses_no_task_and_no_busy_time(durations: list[int], spans: int) -> None:
    tasks = _tasks(session(durations))
    whole, merged = timeline(tasks), timeline(tasks, spans=spans)
    assert _totals(whole) == _totals(merged) == (len(durations), sum(durations) * 1000)
    assert (merged.merged_below_ns > 0) is (len(durations) > spans)
    for lane in merged.lanes:
        assert list(lane.starts) == sorted(lane.starts)
        assert all(0 <= name < len(merged.names) for name in lane.names)


def test_gaps_are_where_nothing_ran() -> None:
    chart = timeline(_tasks(session((400, 100, 100, 200))))
    assert [(bubble.start_ns, bubble.duration_ns) for bubble in chart.bubbles] == [(400_000, 10_000), (510_000, 10_000), (620_000, 10_000)]
    assert {bubble.cause for bubble in chart.bubbles} == {"unknown"}
    assert (chart.bubbles[0].before, chart.bubbles[0].after) == ("MatMulV3", "Add")


def _tiled(made: Session, times: int) -> Session:
    """The kernels of ``made`` repeated one after the other."""
    kernels = made.tables["kernels"]
    columns = {name: np.tile(values, times) for name, values in kernels.columns.items()}
    length = int(kernels["start_ns"][-1] + kernels["duration_ns"][-1]) + 1_000
    columns["start_ns"] = columns["start_ns"] + np.repeat(np.arange(times) * length, len(kernels))
    return Session(made.meta, {"kernels": Table("kernels", columns)}, made.strings)


def test_a_million_kernels_keep_a_bounded_timeline() -> None:
    made = _tiled(session(np.random.default_rng(1).integers(1, 40, 1_000).tolist()), 1_000)
    started = time.process_time()
    chart = timeline(_tasks(made))
    assert sum(len(lane.starts) for lane in chart.lanes) <= 120_000
    assert _totals(chart)[0] == 1_000_000
    assert time.process_time() - started < 20, "quadratic work: a linear pass takes about two seconds"


def test_curves_keep_the_peak_when_they_are_thinned() -> None:
    curves = resource_curves(session())
    assert [(chart.y_title, max(chart.series[0].y)) for chart in curves] == [("MiB", 30.0)]


def test_a_session_without_device_tasks_has_no_pictures() -> None:
    made = session()
    bare = Session(made.meta, {"counters": made.tables["counters"]}, made.strings)
    assert step_tasks(rank_view(bare, load_classes())) is None


@pytest.mark.parametrize("name", ["qwen3-0.6b-train-pp2-dp2", "cnn-ddp-2rank-text"])
def test_real_captures_draw_every_device_task(name: str, shared: object) -> None:
    from pathlib import Path

    from kb.profile.sources import load

    folder = Path(str(shared)) / "data" / "profiles" / "ascend" / name
    for made in load(folder):
        view = rank_view(made, load_classes())
        tasks = step_tasks(view)
        if tasks is not None:
            assert _totals(timeline(tasks)) == (len(tasks), int(tasks.durations.sum()))
