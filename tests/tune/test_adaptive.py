"""The adaptive engine on streams whose right answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.errors import UsageError
from kb.tune import adaptive
from kb.tune.adaptive import COLD_INTERVALS, Policy, Served, Setting, Space, Timing, serve

MS = 1_000_000
SPACE = Space(batches=(4, 8, 16, 32), stages=(1, 2, 4), tensors=(1, 2), devices=4)


def times(setting: Setting) -> Timing | None:
    """5 ms a batch and 1 ms a request on one device; stages divide the interval, tensor ranks both by 1.6."""
    step = (5 * MS + setting.batch * MS) / (1.6 if setting.tensor == 2 else 1.0)
    return Timing(latency_ns=round(step), interval_ns=round(step / setting.stages))


def stream(rate: float, seconds: float, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    random = np.random.default_rng(seed)
    return np.cumsum(random.exponential(1e9 / rate, int(rate * seconds))).astype(np.int64)


def run(arrivals: np.ndarray[tuple[int], np.dtype[np.int64]], *, moving: bool, limit: float = 100 * MS) -> Served:
    policy = Policy(SPACE, times, limit) if moving else None
    return serve(arrivals, times, Setting(4), limit_ns=limit, interval=20, change_ns=50 * MS, decide=policy)


def test_an_overloaded_server_gets_what_it_needs() -> None:
    """444 requests a second are the most of the smallest setting; 1,200 come."""
    arrivals = stream(1200.0, 15.0)
    fixed, engine = run(arrivals, moving=False), run(arrivals, moving=True)
    assert fixed.late > 0.9
    assert engine.throughput > 1.9 * fixed.throughput
    assert engine.p50_ns < 100 * MS
    assert engine.late < fixed.late / 2
    assert {move.reason for move in engine.moves} & {"queue", "late"}


def test_a_calm_server_is_left_alone() -> None:
    arrivals = stream(150.0, 10.0)
    fixed, engine = run(arrivals, moving=False), run(arrivals, moving=True)
    assert engine.moves == ()
    assert (engine.p99_ns, engine.device_seconds) == (fixed.p99_ns, fixed.device_seconds)


def test_devices_come_back_after_the_rush() -> None:
    rush, calm = stream(1200.0, 6.0), stream(100.0, 15.0, seed=1)
    engine = run(np.concatenate([rush, rush[-1] + calm]), moving=True)
    assert max(move.after.devices for move in engine.moves) > 1
    assert engine.last.devices == 1


def test_a_cold_engine_takes_one_notch_of_the_batch_and_no_devices() -> None:
    engine = run(stream(3000.0, 6.0), moving=True)
    early = engine.moves[:COLD_INTERVALS]
    assert [move.reason for move in early] == ["cold"] * len(early)
    for move in early:
        assert move.after.devices == move.before.devices
        assert SPACE.batches.index(move.after.batch) - SPACE.batches.index(move.before.batch) == 1
    assert any(move.after.devices > 1 for move in engine.moves)


def test_a_new_layout_costs_its_pause() -> None:
    arrivals = stream(1200.0, 8.0)
    policies = [Policy(SPACE, times, 100 * MS) for _ in range(2)]
    quick, slow = (
        serve(arrivals, times, Setting(4), limit_ns=100 * MS, interval=20, change_ns=pause, decide=policy)
        for pause, policy in zip((0, 2_000 * MS), policies, strict=True)
    )
    assert slow.p99_ns > quick.p99_ns + 1_000 * MS


def test_serving_is_exact_on_a_stream_by_hand() -> None:
    """Batches of at most 4: [0], [1, 2, 3, 4] (padded to 4), [5] at 1 ms arrivals; a batch of one takes 6 ms, of four 9 ms."""
    done = serve([0, 1 * MS, 2 * MS, 3 * MS, 4 * MS, 5 * MS], times, Setting(4), limit_ns=12 * MS, interval=20, change_ns=0, decide=None)
    # ends: 6; 6 + 9 = 15 (four requests), 15 + 6 = 21. Waits: 6, 14, 13, 12, 11, 16.
    assert done.requests == 6
    assert done.p50_ns == 12_500_000
    assert done.late == pytest.approx(3 / 6)
    assert done.throughput == pytest.approx(6 / 0.021)
    assert done.most_queued == 5


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 2_000), min_size=1, max_size=300), st.sampled_from([20.0, 60.0, 300.0]), st.booleans())
def test_every_request_is_served_once_and_never_early(gaps: list[int], limit: float, moving: bool) -> None:
    arrivals = np.cumsum(np.asarray(gaps, np.int64) * 10_000)
    done = run(arrivals, moving=moving, limit=limit * MS)
    assert done.requests == len(arrivals)
    fastest = times(Setting(1, 4, 2))
    assert fastest is not None
    assert done.p50_ns >= fastest.latency_ns
    assert 0 <= done.late <= 1
    assert 0 <= done.utilization <= 1
    assert all(move.after.devices <= SPACE.devices for move in done.moves)


def test_settings_that_cannot_run_are_never_chosen() -> None:
    def single(setting: Setting) -> Timing | None:
        return times(setting) if setting.devices == 1 and setting.batch <= 8 else None

    policy = Policy(SPACE, single, 100 * MS)
    done = serve(stream(2000.0, 4.0), single, Setting(4), limit_ns=100 * MS, interval=20, change_ns=0, decide=policy)
    assert {(move.after.devices, move.after.batch) for move in done.moves} == {(1, 4), (1, 8)}


def test_streams_that_cannot_be_served_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no requests"):
        serve([], times, Setting(4), limit_ns=1.0, interval=20, change_ns=0, decide=None)
    with pytest.raises(UsageError, match="cannot run"):
        serve([0], lambda _setting: None, Setting(4), limit_ns=1.0, interval=20, change_ns=0, decide=None)
    monkeypatch.setattr(adaptive, "MOST_BATCHES", 50)
    # Far apart, so that every request is a batch of its own.
    many = np.arange(60, dtype=np.int64) * 100 * MS
    with pytest.raises(UsageError, match="more than 50 batches"):
        serve(many, times, Setting(4), limit_ns=1.0, interval=20, change_ns=0, decide=None)
