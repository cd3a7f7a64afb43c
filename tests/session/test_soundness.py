"""Lost launches, clocks, overhead and warm-up are seen in the tables themselves."""

from __future__ import annotations

import numpy as np

from kb.session.builder import Strings, session, table
from kb.session.health import assess
from kb.session.meta import Capture, Group, Parallel, SessionMeta
from kb.session.session import Session
from kb.session.soundness import examine, reasons


def captured(links: list[int], starts: list[int], *, launches: list[int] | None = None, spans: list[int] | None = None,
             overhead: int = 0, warmup: int = 0, meta: SessionMeta | None = None) -> Session:  # fmt: skip
    """Kernels with ``links`` at ``starts``; launch ``i`` of ``launches`` begins at 1,000,000 * i."""
    strings = Strings()
    own = launches if launches is not None else links
    kernels = table("kernels", {
        "start_ns": np.array(starts), "duration_ns": np.full(len(starts), 10), "name": ["k"] * len(starts),
        "op_type": ["Cast"] * len(starts),         "core": ["AI_CORE"] * len(starts), "connection_id": np.array(links),
    }, strings)  # fmt: skip
    host = table("host_ops", {
        "start_ns": np.array([1_000_000 * link for link in own] + [0]), "duration_ns": np.array([5] * len(own) + [overhead]),
        "name": ["launch"] * len(own) + ["Buffer Flush"], "layer": ["node"] * len(own) + ["other"],
        "connection_id": np.array([*own, -1]),
    }, strings)  # fmt: skip
    begin = np.concatenate([[0], np.cumsum(spans or [5, 5, 5])])
    steps = table("steps", {
        "step_id": [str(index) for index in range(len(begin) - 1)], "start_ns": begin[:-1], "end_ns": begin[1:],
        "warmup": np.full(len(begin) - 1, warmup), "kind": ["train"] * (len(begin) - 1),
    }, strings)  # fmt: skip
    return session(meta or SessionMeta(name="s", origin="measured", capture=Capture(format="x")), [kernels, host, steps], strings)


def texts(found: Session) -> str:
    return " | ".join(reason.en for reason in reasons(examine(found), found))


def test_a_sound_capture_gives_no_reason() -> None:
    assert texts(captured([1, 2, 3], [1_000_100, 2_000_100, 3_000_100])) == ""


def test_launches_without_a_task_are_lost_and_the_first_ones_named() -> None:
    found = examine(captured([3, 4], [3_000_100, 4_000_100], launches=[1, 2, 3, 4, 5]))
    assert (found.launched, found.lost, found.lost_first) == (5, 3, 2)
    assert "3 of 5 launches have no task on the device, 2 of them before the first" in texts(
        captured([3, 4], [3_000_100, 4_000_100], launches=[1, 2, 3, 4, 5])
    )


def test_tasks_before_their_launch_mean_clocks_that_disagree() -> None:
    assert "clocks are not aligned" in texts(captured([1, 2, 3], [500_000, 1_500_000, 2_500_000]))
    assert "clocks" not in texts(captured([1, 2, 3], [999_000, 1_999_000, 2_999_000]))


def test_the_profilers_own_time_is_reported_above_its_share() -> None:
    assert "the profiler itself takes" in texts(captured([1, 2, 3], [1_000_100, 2_000_100, 3_000_100], overhead=2_000_000))


def test_a_long_first_step_or_only_warm_up_is_said() -> None:
    starts = [1_000_100, 2_000_100, 3_000_100]
    assert "the first step takes 4.0 times" in texts(captured([1, 2, 3], starts, spans=[40, 10, 10, 10]))
    assert "every captured step is a warm-up step" in texts(captured([1, 2, 3], starts, warmup=1))


def test_groups_larger_than_the_world_contradict_it() -> None:
    group = Group(name="dp", dimension="dp", ranks=tuple(range(8)))
    meta = SessionMeta(name="s", origin="measured", capture=Capture(format="x"), world_size=2, parallel=Parallel(groups=(group,)))
    found = captured([1, 2, 3], [1_000_100, 2_000_100, 3_000_100], meta=meta)
    assert "communication groups name 8 ranks" in texts(found)
    assert assess((found,)).sessions[0].soundness.launched == 3
