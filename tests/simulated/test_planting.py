"""Planted causes: in the run, not in the session."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from simulated.chips import chip_file

from kb.errors import UsageError
from kb.profile.simulated.degrading import degraded
from kb.profile.simulated.planting import HEALTHY, PLANTS, as_captured, cost_ns, plant, plantable
from kb.profile.simulated.run import last_step_ns
from kb.session.codec import to_bytes

SEED = 5


def test_plants_are_causes_of_the_catalogue(checkout: Path) -> None:
    files = (checkout / "recipes" / "catalogue" / "causes").glob("*.json")
    assert set(PLANTS) <= {json.loads(path.read_text(encoding="utf-8"))["id"] for path in files}


def test_a_healthy_run_computes_nearly_all_the_time() -> None:
    planted = plant("bert-large", chip_file(), SEED, ())
    step = planted.truths[0].steps[-1]
    assert step.computing_ns > 0.97 * step.step_ns
    assert planted.truths[0].planted == ()


IDLE = {
    "host_bound_launch": "launch",
    "stream_bubbles": "queue",
    "dataloader_bound": "input",
    "gc_pause": "gc",
    "io_checkpoint": "io",
    "dynamic_shape_recompile": "compile",
}


@pytest.mark.parametrize(("cause", "idle"), sorted(IDLE.items()))
def test_a_planted_pause_is_the_largest_idle_cause(cause: str, idle: str) -> None:
    step = plant("bert-large", chip_file(), SEED, (cause,)).truths[0].steps[-1]
    assert max(step.idle_ns, key=lambda name: step.idle_ns[name]) == idle
    assert step.idle_ns[idle] > 0.03 * step.step_ns


@pytest.mark.parametrize("cause", ["unfused_attention", "aicpu_operator", "excess_cast", "format_conversion", "intra_kernel_stall"])
def test_what_a_cause_costs_is_positive_and_less_than_the_step(cause: str) -> None:
    planted = plant("bert-large", chip_file(), SEED, (cause,))
    assert 0 < cost_ns(planted, cause) < planted.step_ns


@pytest.mark.parametrize("cause", ["comm_not_overlapped"])
def test_parallel_causes_return_all_ranks(cause: str) -> None:
    base = msgspec.structs.replace(HEALTHY, sequence=64, steps=2, microbatches=1)
    planted = plant("qwen3-0.6b-train", chip_file(), SEED, (cause,), base=base)
    assert len(planted.sessions) == planted.setup.options.world_size > 1
    assert cost_ns(planted, cause, base=base) > 0


def test_two_causes_can_be_planted_and_the_session_does_not_name_them() -> None:
    planted = plant("bert-base", chip_file(), SEED, ("gc_pause", "aicpu_operator"))
    assert planted.truths[0].planted == ("gc_pause", "aicpu_operator")
    assert not any(name in text for text in planted.sessions[0].strings for name in PLANTS)


def test_a_planted_run_is_read_back_as_a_profiler_would_show_it(tmp_path: Path) -> None:
    planted = plant("bert-base", chip_file(), SEED, ("gc_pause",))
    (back,) = as_captured(planted.sessions, tmp_path)
    assert back.meta.options == {}
    assert (back.meta.origin, back.meta.violations) == ("simulated", ())
    np.testing.assert_array_equal(back.tables["kernels"]["duration_ns"], planted.sessions[0].tables["kernels"]["duration_ns"])


def test_equal_seeds_plant_equal_runs_and_others_do_not() -> None:
    one, same, other = (plant("bert-base", chip_file(), seed, ("gc_pause",)) for seed in (1, 1, 2))
    assert to_bytes(one.sessions[0]) == to_bytes(same.sessions[0])
    assert one.step_ns != other.step_ns


def test_a_cause_the_model_cannot_have_is_refused() -> None:
    assert "pipeline_imbalance" not in plantable("bert-base")
    with pytest.raises(UsageError, match="cannot be planted in bert-base") as caught:
        plant("bert-base", chip_file(), SEED, ("pipeline_imbalance",))
    assert caught.value.allowed is not None
    assert "gc_pause" in caught.value.allowed


def test_degraded_captures_lose_what_they_say() -> None:
    session = plant("bert-base", chip_file(), SEED, ()).sessions[0]
    rows = len(session.tables["kernels"])
    lossy = degraded(session, seed=1, lost_share=0.1)
    assert lossy.self_check() == []
    assert 0.8 * rows < len(lossy.tables["kernels"]) < rows
    low = degraded(session, level0=True, without=("host_ops",))
    assert low.self_check() == []
    assert low.meta.capture.level == "Level0"
    assert "host_ops" not in low.tables
    assert "aic_mac_ratio" not in low.tables["kernels"]
    assert (low.tables["kernels"]["op_type"] == -1).all()
    assert {"host_ops", "kernels.op_type"} <= {missing.what for missing in low.meta.missing}
    np.testing.assert_array_equal(low.tables["kernels"]["start_ns"], session.tables["kernels"]["start_ns"])


def test_a_run_that_writes_nothing_down_takes_as_long() -> None:
    planted = plant("resnet50-train", chip_file(), SEED, ("slow_link_or_rank",))
    assert last_step_ns(planted.setup) == planted.step_ns


@pytest.mark.parametrize(("model", "cause"), [("qwen3-0.6b-decode", "low_batch_occupancy"), ("qwen3-0.6b-prefill", "comm_volume_excess")])
def test_where_the_division_of_the_work_is_the_cause_equal_work_is_compared(model: str, cause: str) -> None:
    """A batch of one takes less time than one of 64, and two ranks less than one, but not for what they do."""
    base = msgspec.structs.replace(HEALTHY, batch=64 if "decode" in model else 1, steps=2)
    planted = plant(model, chip_file(), SEED, (cause,), base=base)
    assert 0 < cost_ns(planted, cause, base=base) < planted.step_ns
