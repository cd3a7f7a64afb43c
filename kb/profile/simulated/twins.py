"""Which catalogue strategy is which option of the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kb.domain.catalogue import StrategyId
from kb.profile.simulated.options import OptionChange


def _set(option: str, value: int | float | bool | str) -> OptionChange:
    return OptionChange(option=option, how="set", value=value)


def _scale(option: str, value: int | float) -> OptionChange:
    return OptionChange(option=option, how="scale", value=value)


TWINS: Final[Mapping[StrategyId, OptionChange]] = MappingProxyType(
    {
        "use_fused_attention": _set("fused_attention", True),
        "fuse_operators": _set("fused_elementwise", True),
        "lower_precision": _set("precision", "int8"),
        "convert_weight_layout": _set("weight_format_nz", True),
        "avoid_layout_conversion": _set("layout_conversions", 0),
        "tune_recompute": _set("recompute", "none"),
        "move_op_off_aicpu": _set("aicpu_ops", ""),
        "retile_kernel": _set("tile_m", 0),
        "enable_tile_swizzle": _set("swizzle", 12),
        "enable_double_buffer": _set("double_buffer", True),
        "increase_stream_depth": _scale("stream_depth", 2),
        "add_streams": _scale("streams", 2),
        "enable_graph_mode": _set("graph_launch", True),
        "enable_task_queue": _set("task_queue", True),
        "bind_cpu_affinity": _set("affinity", True),
        "cap_cpu_threads": _set("host_scale", 1.0),
        "remove_host_overhead": _scale("host_scale", 0.5),
        "remove_host_sync": _set("host_syncs", 0),
        "bucket_or_generalize_shapes": _set("shape_buckets", 1),
        "disable_jit_compile": _set("jit_compile", False),
        "increase_data_workers": _scale("loader_workers", 2),
        "prefetch_data": _set("prefetch", 4),
        "async_host_io": _set("async_copy", True),
        "schedule_gc": _set("gc_managed", True),
        "async_checkpoint": _set("async_checkpoint", True),
        "reuse_memory": _set("planner", "best_fit"),
        "enable_memory_pool": _set("planner", "pool"),
        "enable_inplace": _set("inplace", True),
        "enable_expandable_allocator": _set("expandable", True),
        "defragment_memory": _set("defragment", True),
        "use_paged_kv": _set("kv_policy", "paged"),
        "tune_kv_block_size": _set("kv_block", 16),
        "increase_batch": _scale("batch", 2),
        "change_tensor_parallel": _scale("tensor_parallel", 2),
        "change_pipeline_parallel": _scale("pipeline_parallel", 2),
        "change_data_parallel": _scale("data_parallel", 2),
        "change_expert_parallel": _scale("expert_parallel", 2),
        "increase_microbatches": _scale("microbatches", 2),
        "rebalance_pipeline_stages": _set("stage_shift", 0),
        "rebalance_experts": _set("expert_skew", 0.0),
        "tune_bucket_size": _scale("bucket_mb", 4),
        "overlap_comm_compute": _set("overlap_comm", True),
        "quantize_before_comm": _set("quantized_comm", True),
        "fix_network_config": _set("link_share", 1.0),
        "improve_cooling": _scale("cooling", 2.0),
        "cap_clock_or_power": _set("clock_cap", 0.9),
    }
)
"""Keys are exactly the catalogue's strategies marked ``simulatable``; a test compares both sides."""
