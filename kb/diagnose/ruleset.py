"""The rules, in one visible list."""

from __future__ import annotations

from typing import Final

import msgspec

from kb.diagnose.rules.collective_cost import comm_not_overlapped, comm_volume_excess
from kb.diagnose.rules.copies import cpu_fallback_op, h2d_copy
from kb.diagnose.rules.cube_use import intra_kernel_stall, low_batch_occupancy, suboptimal_tiling
from kb.diagnose.rules.hardware import overlap_contention, thermal_throttling
from kb.diagnose.rules.host_bound_launch import host_bound_launch
from kb.diagnose.rules.host_stalls import (
    dataloader_bound,
    dynamic_shape_recompile,
    gc_pause,
    io_checkpoint,
    synchronization_stall,
)
from kb.diagnose.rules.kernel_shares import aicpu_operator, excess_cast, format_conversion, quantization_dequant_overhead
from kb.diagnose.rules.memory_fragmentation import memory_fragmentation
from kb.diagnose.rules.memory_pressure import kv_cache_bandwidth, l2_pressure, memory_bandwidth_pressure
from kb.diagnose.rules.parallel_layout import microbatch_count, moe_imbalance
from kb.diagnose.rules.pipeline_imbalance import pipeline_imbalance
from kb.diagnose.rules.recompute_overhead import recompute_overhead
from kb.diagnose.rules.slow_link_or_rank import slow_link_or_rank
from kb.diagnose.rules.stream_bubbles import stream_bubbles
from kb.diagnose.rules.unfused_attention import unfused_attention
from kb.diagnose.rules.unfused_elementwise import unfused_elementwise
from kb.domain.catalogue import CauseId
from kb.domain.protocols import AnyRule, RuleKind


class RuleEntry(msgspec.Struct, frozen=True):
    """A rule, what it is shown, and the causes it is responsible for: it judges each of them every time."""

    rule: AnyRule
    kind: RuleKind
    causes: tuple[CauseId, ...]


RULES: Final[tuple[RuleEntry, ...]] = (
    RuleEntry(unfused_attention, "rank", ("unfused_attention",)),
    RuleEntry(unfused_elementwise, "rank", ("unfused_elementwise",)),
    RuleEntry(dataloader_bound, "rank", ("dataloader_bound",)),
    RuleEntry(host_bound_launch, "rank", ("host_bound_launch",)),
    RuleEntry(stream_bubbles, "rank", ("stream_bubbles",)),
    RuleEntry(synchronization_stall, "rank", ("synchronization_stall",)),
    RuleEntry(gc_pause, "rank", ("gc_pause",)),
    RuleEntry(io_checkpoint, "rank", ("io_checkpoint",)),
    RuleEntry(dynamic_shape_recompile, "rank", ("dynamic_shape_recompile",)),
    RuleEntry(memory_fragmentation, "rank", ("memory_fragmentation",)),
    RuleEntry(h2d_copy, "rank", ("h2d_copy",)),
    RuleEntry(cpu_fallback_op, "rank", ("cpu_fallback_op",)),
    RuleEntry(aicpu_operator, "rank", ("aicpu_operator",)),
    RuleEntry(format_conversion, "rank", ("format_conversion",)),
    RuleEntry(excess_cast, "rank", ("excess_cast",)),
    RuleEntry(quantization_dequant_overhead, "rank", ("quantization_dequant_overhead",)),
    RuleEntry(suboptimal_tiling, "rank", ("suboptimal_tiling",)),
    RuleEntry(low_batch_occupancy, "rank", ("low_batch_occupancy",)),
    RuleEntry(intra_kernel_stall, "rank", ("intra_kernel_stall",)),
    RuleEntry(recompute_overhead, "rank", ("recompute_overhead",)),
    RuleEntry(kv_cache_bandwidth, "rank", ("kv_cache_bandwidth",)),
    RuleEntry(memory_bandwidth_pressure, "rank", ("memory_bandwidth_pressure",)),
    RuleEntry(l2_pressure, "rank", ("l2_pressure",)),
    RuleEntry(thermal_throttling, "rank", ("thermal_throttling",)),
    RuleEntry(overlap_contention, "rank", ("overlap_contention",)),
    RuleEntry(pipeline_imbalance, "cluster", ("pipeline_imbalance",)),
    RuleEntry(microbatch_count, "cluster", ("microbatch_count",)),
    RuleEntry(comm_not_overlapped, "cluster", ("comm_not_overlapped",)),
    RuleEntry(comm_volume_excess, "cluster", ("comm_volume_excess",)),
    RuleEntry(slow_link_or_rank, "cluster", ("slow_link_or_rank",)),
    RuleEntry(moe_imbalance, "cluster", ("moe_imbalance",)),
)
