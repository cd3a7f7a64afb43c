"""Catalogue strategies and simulator options name each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from simulated.chips import chip_file

from kb.profile.simulated.options import Options
from kb.profile.simulated.run import Setup, simulate
from kb.profile.simulated.twins import TWINS


def test_simulatable_strategies_are_exactly_the_twins(checkout: Path) -> None:
    files = sorted((checkout / "recipes" / "catalogue" / "strategies").glob("*.json"))
    assert files
    entries = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    assert {entry["id"] for entry in entries if entry.get("simulatable", False)} == set(TWINS)


UNTUNED = Options(
    layout_conversions=2, recompute="full", aicpu_ops="Add", tile_m=64, tile_n=64, double_buffer=False, host_scale=3.0, host_syncs=4,
    jit_compile=True, prefetch=0, stage_shift=3, expert_skew=0.5, link_share=0.5, dynamic_shapes=2,
)  # fmt: skip
"""A run that every strategy can still change."""


@pytest.mark.parametrize("strategy", sorted(TWINS))
def test_a_twin_changes_one_option_of_an_untuned_run(strategy: str) -> None:
    after = TWINS[strategy].apply(UNTUNED)
    changed = [name for name in Options.__struct_fields__ if getattr(UNTUNED, name) != getattr(after, name)]
    assert changed == [TWINS[strategy].option]
    assert type(getattr(after, changed[0])) is type(getattr(Options(), changed[0]))


@pytest.mark.parametrize("strategy", sorted(name for name, change in TWINS.items() if change.how == "set"))
def test_setting_twice_changes_nothing(strategy: str) -> None:
    once = TWINS[strategy].apply(UNTUNED)
    assert TWINS[strategy].apply(once) == once


# A strategy, the model and the setting it helps in, and what must get better: the step, memory, or memory traffic.
CASES: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("use_fused_attention", "bert-base", {"sequence": 512}, "step"),
    ("fuse_operators", "bert-base", {"batch": 32}, "step"),
    ("lower_precision", "qwen3-0.6b-prefill", {"batch": 4}, "step"),
    ("avoid_layout_conversion", "bert-base", {"layout_conversions": 1}, "step"),
    ("tune_recompute", "qwen3-0.6b-train", {"recompute": "full", "sequence": 512, "microbatches": 1, "stream_depth": 64}, "step"),
    ("move_op_off_aicpu", "bert-base", {"aicpu_ops": "LayerNormV3"}, "step"),
    ("retile_kernel", "bert-base", {"tile_m": 16, "tile_n": 16, "batch": 32, "stream_depth": 64}, "step"),
    ("enable_double_buffer", "bert-base", {"double_buffer": False, "batch": 32, "stream_depth": 64}, "step"),
    ("increase_stream_depth", "bert-base", {"stream_depth": 1}, "step"),
    ("enable_graph_mode", "bert-base", {}, "step"),
    ("enable_task_queue", "bert-base", {"stream_depth": 64}, "step"),
    ("bind_cpu_affinity", "bert-base", {"stream_depth": 64}, "step"),
    ("cap_cpu_threads", "bert-base", {"host_scale": 4.0}, "step"),
    ("remove_host_overhead", "bert-base", {}, "step"),
    ("remove_host_sync", "bert-base", {"host_syncs": 8, "stream_depth": 64}, "step"),
    ("disable_jit_compile", "bert-base", {"jit_compile": True, "dynamic_shapes": 2}, "step"),
    ("bucket_or_generalize_shapes", "bert-base", {"jit_compile": True, "dynamic_shapes": 2}, "step"),
    ("increase_data_workers", "bert-base", {"loader_ms": 30.0}, "step"),
    ("prefetch_data", "bert-base", {"loader_ms": 3.0, "prefetch": 0}, "step"),
    ("async_host_io", "resnet50", {"batch": 16}, "step"),
    ("schedule_gc", "bert-base", {"gc_ms": 5.0}, "step"),
    ("async_checkpoint", "bert-base", {"checkpoint_ms": 5.0}, "step"),
    ("use_paged_kv", "qwen3-0.6b-decode", {"fused_attention": True, "batch": 8, "context": 8192, "graph_launch": True}, "step"),
    ("improve_cooling", "sd3", {"cooling": 0.25, "denoise_steps": 1, "sequence": 1024, "stream_depth": 64}, "step"),
    ("enable_inplace", "bert-base", {"batch": 8}, "peak"),
    ("defragment_memory", "bert-base", {"planner": "pool", "batch": 8}, "reserved"),
    ("enable_expandable_allocator", "bert-base", {"planner": "pool", "batch": 8}, "reserved"),
    ("reuse_memory", "bert-base", {"planner": "none", "batch": 8}, "reserved"),
    ("enable_memory_pool", "bert-base", {"planner": "none", "batch": 8}, "reserved"),
    ("enable_tile_swizzle", "llama3-8b-prefill", {"sequence": 4096, "fused_attention": True, "stream_depth": 64}, "traffic"),
)


@pytest.mark.parametrize(("strategy", "model", "settings", "better"), CASES)
def test_a_strategy_helps_where_its_cause_is(strategy: str, model: str, settings: dict[str, Any], better: str) -> None:
    options = msgspec.convert({"steps": 2, "noise": 0.0, **settings}, Options)
    before, after = (figure(model, each, better) for each in (options, TWINS[strategy].apply(options)))
    assert after < before


def figure(model: str, options: Options, which: str) -> float:
    _, truth = simulate(Setup(model=model, soc=chip_file(), options=options))
    step = float(truth.steps[-1].step_ns)
    return {"step": step, "peak": truth.peak_bytes, "reserved": truth.reserved_bytes, "traffic": truth.hbm_bytes}[which]
