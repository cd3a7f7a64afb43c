"""What a simulated run can vary, as typed values, and a change to it."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from kb.errors import UsageError

Setting = int | float | bool | str | None
Precision = Literal["", "fp16", "bf16", "fp32", "int8"]
Recompute = Literal["none", "selective", "full"]
Planner = Literal["none", "first_fit", "best_fit", "pool"]
KvPolicy = Literal["padded", "paged"]
CaptureMode = Literal["none", "level0", "level1", "level2"]

_COUNTS: Final = (
    "stream_depth", "streams", "batch", "denoise_steps", "steps", "tensor_parallel", "pipeline_parallel", "data_parallel",
    "expert_parallel", "microbatches", "loader_workers", "kv_block", "tile_k",
)  # fmt: skip
_AMOUNTS: Final = (
    "noise", "loader_ms", "gc_ms", "checkpoint_ms", "expert_skew", "host_syncs", "dynamic_shapes", "shape_buckets", "swizzle", "tile_m",
    "sample_s", "ambient_c",
    "tile_n", "stage_shift", "prefetch", "extra_casts", "layout_conversions", "duplicates", "context", "workspace_mb",
)  # fmt: skip
_RATIOS: Final = ("host_scale", "cooling", "link_share", "slow_rank_share", "bucket_mb", "clock_cap")


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a run; each one moves the physics. JSON scalars, so that a session can keep them.

    **Graph.** ``fused_attention``: scores stay on chip. ``fused_elementwise``: chains of elementwise kernels, and those
    beside a normalisation, become one kernel. ``precision``: element type ("" = the model's own). ``weight_format_nz``:
    weights lie in the cube's block format. ``extra_casts``, ``layout_conversions``, ``duplicates``: needless kernels beside
    every so many-th product (0 = none). ``recompute``: activations made again in the backward pass. ``aicpu_ops``: operator
    types, split by commas, that run on the AI CPU.
    **Kernels.** ``tile_m`` x ``tile_n`` x ``tile_k``, ``swizzle``, ``double_buffer``: see ``tiling.Tiling``.
    **Launch.** ``stream_depth``: launched kernels that may be unfinished before the host blocks. ``streams``: independent
    kernels on so many streams. ``graph_launch``: one launch submits a segment. ``task_queue``: launches are prepared on a
    second thread. ``affinity``: host threads are bound. ``host_scale``: host time over the usual. ``host_syncs``: host waits a
    segment. ``dynamic_shapes``: new input shapes a step; ``shape_buckets``: at most so many are compiled (0 = every one);
    ``jit_compile``: operators are compiled for each shape.
    **Input and host events.** ``loader_ms`` a batch and worker, ``loader_workers``, ``prefetch`` batches (0 = the
    training loop makes its own). ``pinned`` and
    ``async_copy``: input copies. ``gc_ms``: collector pause a step unless ``gc_managed``. ``checkpoint_ms`` a step unless
    ``async_checkpoint``.
    **Memory.** ``planner`` of the activation arena, ``inplace``, ``expandable`` segments, ``defragment``, ``workspace_mb`` extra.
    **Serving.** ``context``: tokens in the cache (0 = the model's own), ``kv_policy``, ``kv_block`` tokens.
    **Parallel.** ``tensor_parallel``, ``pipeline_parallel``, ``data_parallel``, ``expert_parallel``, ``microbatches``;
    ``stage_shift``: layers moved from the first stage to the last; ``bucket_mb``, ``overlap_comm``, ``quantized_comm``;
    ``expert_skew``: share of extra load on the busiest expert rank; ``link_share``: bandwidth of the slowest link over the
    others'; ``slow_rank_share``: speed of the last rank over the others'.
    **Hardware.** ``cooling``: thermal conductance over the usual; ``clock_cap``: highest clock over the nominal; ``ambient_c``: °C
    around the chip (0 = the usual); ``sample_s``: seconds from one recorded step to the next while the chip runs on and its clock
    follows its temperature (0 = steps follow each other at the clock a long run settles at).
    **Run.** ``batch``, ``sequence`` (None = the model's own), ``denoise_steps``, ``steps`` (the first a warm-up), ``noise`` (1 =
    as measured), ``capture``: the profiler's own overhead, ``with_stack``: it also records Python frames.
    """

    fused_attention: bool = False
    fused_elementwise: bool = False
    precision: Precision = ""
    weight_format_nz: bool = False
    extra_casts: int = 0
    layout_conversions: int = 0
    duplicates: int = 0
    recompute: Recompute = "none"
    aicpu_ops: str = ""
    tile_m: int = 0
    tile_n: int = 0
    tile_k: int = 64
    swizzle: int = 0
    double_buffer: bool = True
    stream_depth: int = 2
    streams: int = 1
    graph_launch: bool = False
    task_queue: bool = False
    affinity: bool = False
    host_scale: float = 1.0
    host_syncs: int = 0
    dynamic_shapes: int = 0
    shape_buckets: int = 0
    jit_compile: bool = False
    loader_ms: float = 0.0
    loader_workers: int = 1
    prefetch: int = 2
    pinned: bool = True
    async_copy: bool = False
    gc_ms: float = 0.0
    gc_managed: bool = False
    checkpoint_ms: float = 0.0
    async_checkpoint: bool = False
    planner: Planner = "first_fit"
    inplace: bool = False
    expandable: bool = False
    defragment: bool = False
    workspace_mb: float = 0.0
    context: int = 0
    kv_policy: KvPolicy = "padded"
    kv_block: int = 128
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    data_parallel: int = 1
    expert_parallel: int = 1
    microbatches: int = 4
    stage_shift: int = 0
    bucket_mb: float = 25.0
    overlap_comm: bool = False
    quantized_comm: bool = False
    expert_skew: float = 0.0
    link_share: float = 1.0
    slow_rank_share: float = 1.0
    cooling: float = 1.0
    clock_cap: float = 1.0
    ambient_c: float = 0.0
    sample_s: float = 0.0
    batch: int = 1
    sequence: int | None = None
    denoise_steps: int = 4
    steps: int = 5
    noise: float = 1.0
    capture: CaptureMode = "none"
    with_stack: bool = False

    @property
    def world_size(self) -> int:
        """Ranks of the job; experts are spread over data-parallel ranks."""
        return self.tensor_parallel * self.pipeline_parallel * self.data_parallel


def checked(options: Options) -> Options:
    """``options`` itself. Raises UsageError for a count below one, a negative amount, a ratio that is not positive, or an
    impossible parallel degree."""
    counts: dict[str, int] = {name: getattr(options, name) for name in _COUNTS}
    if options.sequence is not None:
        counts["sequence"] = options.sequence
    wrong = [f"{name} = {value}" for name, value in counts.items() if value < 1]
    wrong += [f"{name} = {getattr(options, name)}" for name in _AMOUNTS if not getattr(options, name) >= 0]
    wrong += [f"{name} = {getattr(options, name)}" for name in _RATIOS if not getattr(options, name) > 0]
    wrong += [f"{name} = {getattr(options, name)}" for name in ("link_share", "slow_rank_share", "clock_cap") if getattr(options, name) > 1]
    if wrong:
        raise UsageError(
            f"impossible options: {', '.join(wrong)}",
            allowed="counts from 1, amounts from 0 up, ratios above 0; link_share, slow_rank_share and clock_cap up to 1",
        )
    if options.data_parallel % options.expert_parallel:
        raise UsageError(
            f"impossible options: expert_parallel = {options.expert_parallel} does not divide data_parallel = {options.data_parallel}",
            allowed="a divisor of data_parallel: experts are spread over data-parallel ranks",
        )
    return options


class OptionChange(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy's twin: one option ``set`` to ``value`` or multiplied by it (``scale``)."""

    option: str
    how: Literal["set", "scale"]
    value: int | float | bool | str

    def apply(self, options: Options) -> Options:
        """The changed options; equal to ``options`` when the change is already in place."""
        before = getattr(options, self.option)
        if self.how == "scale":
            changed = before * self.value
            return msgspec.structs.replace(options, **{self.option: type(before)(changed)})
        return msgspec.structs.replace(options, **{self.option: self.value})
