"""Rules on how kernels use the cores: tiles and waves, too little work a call, and units that wait for each other."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.diagnose import wording
from kb.diagnose.figures import milliseconds, percent
from kb.diagnose.judging import Measured, judged, longest, skipped, types_of
from kb.diagnose.kernel_time import fixed_ns, product_floor_ns, taking_turns, wave_use, wave_waste
from kb.diagnose.pipes import Pipes, hbm_rate, pipes
from kb.diagnose.products import products
from kb.diagnose.rules.unfused_elementwise import attention_rows
from kb.diagnose.view import RankView
from kb.domain.catalogue import CauseId
from kb.domain.finding import Judgement, Where
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds
from kb.session.session import Array, Table

_ENGINES: Final = ("AI_CORE", "MIX_AIC", "MIX_AIV")


def suboptimal_tiling(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge large kernels whose blocks do not fill the cores, and large products far from the chip's rate though their
    pipes are busy (small tiles read operands again and again). The loss is the busy part of the idle cores, or the time above
    what good kernels reach of the cube's and the memory's rate, whichever is larger; kernels whose units take turns have
    another cause."""
    kernels = view.kernels
    if kernels is None:
        return skipped("suboptimal_tiling", wording.NO_KERNELS, wording.CAPTURE_KERNELS)
    if not view.typed():
        return skipped("suboptimal_tiling", wording.NO_TYPES, wording.CAPTURE_KERNELS)
    if view.cube_cores is None or "block" not in kernels:
        return skipped("suboptimal_tiling", wording.NO_CHIP, wording.CAPTURE_CHIP)
    busy = pipes(kernels)
    waste = np.fmax(wave_waste(view, kernels, busy, thresholds), _rate_waste(view, kernels, busy, thresholds))
    waste = np.fmax(waste, _reload_waste(view, kernels, thresholds))
    waste[_small_products(view, kernels, thresholds)] = 0.0
    if busy is not None:
        waste[taking_turns(busy, thresholds)] = 0.0
    name = Text("切分或分块不合适", "tiles or core splits do not fit")
    return _wasteful(view, thresholds, "suboptimal_tiling", kernels, waste, name, major=int(busy is None))


def low_batch_occupancy(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge products with so few rows that the cube cannot be filled: what a larger batch would bring."""
    kernels = view.kernels
    if kernels is None or "input_shapes" not in kernels:
        return skipped("low_batch_occupancy", wording.NO_KERNELS if kernels is None else wording.NO_SHAPES, wording.CAPTURE_KERNELS)
    found = products(view, kernels)
    if not len(found.rows) or not np.isfinite(found.cube).any():
        return skipped("low_batch_occupancy", wording.NO_CHIP, wording.CAPTURE_CHIP)
    waste = np.zeros(len(kernels))
    small = _small_products(view, kernels, thresholds)
    place = np.searchsorted(found.rows, small)
    waste[small] = np.maximum(found.duration[place] - np.nan_to_num(found.cube[place]), 0.0)
    every = float(found.duration.sum())
    if every and found.duration[place].sum() < thresholds["small_product_share"] * every:
        waste[:] = 0.0
    return _wasteful(view, thresholds, "low_batch_occupancy", kernels, waste, Text("每次调用的工作太少", "calls with too little work"))


def intra_kernel_stall(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge long kernels of products or of both engines that fill the cores while every pipe is mostly idle, or in which
    computing and moving take turns: units inside wait for each other. With overlap the busiest pipe and the kernel's fixed
    cost would set its time. Kernels that only move or map data have one unit to wait for, and an unfused attention has its
    own cause."""
    kernels = view.kernels
    if kernels is None:
        return skipped("intra_kernel_stall", wording.NO_KERNELS, wording.CAPTURE_KERNELS)
    busy = pipes(kernels)
    if busy is None:
        return skipped("intra_kernel_stall", wording.NO_PIPES, wording.CAPTURE_PIPES)
    long = (kernels["duration_ns"] >= thresholds["stall_kernel_least"] * 1e3) & np.isin(kernels["core"], view.session.codes(_ENGINES))
    long[attention_rows(view, thresholds)] = False
    long[_small_products(view, kernels, thresholds)] = False
    long &= ~view.role(kernels, "decode_attention")
    turns = long & taking_turns(busy, thresholds)
    idle = long & ~turns & (busy.busiest < thresholds["pipe_busy_least"]) & (wave_use(view, kernels) >= thresholds["wave_use_least"])
    reach = np.where(turns, 1.0, thresholds["pipe_reachable"])
    spare = kernels["duration_ns"] * (1.0 - busy.busiest / reach) - fixed_ns(view, kernels, thresholds)
    waste = np.where(turns | idle, np.maximum(spare, 0.0), 0.0)
    name = Text("算子内部各单元互相等待", "units inside kernels wait for each other")
    return _wasteful(view, thresholds, "intra_kernel_stall", kernels, waste, name)


def _wasteful(
    view: RankView, thresholds: Thresholds, cause: CauseId, kernels: Table, waste: Array, name: Text, *, major: int = 0
) -> tuple[Judgement, ...]:
    """``waste`` ns of each kernel; kernels that others cover at the same time cannot cost more than the compute part."""
    waste = np.nan_to_num(waste)
    rows = np.flatnonzero(waste > 0)
    exposed = min(int(waste.sum()), view.accounting.parts["compute"])
    spent = int(kernels["duration_ns"][rows].sum())
    listed = ", ".join(types_of(view, rows)[:6])
    share = percent(exposed / view.accounting.step_ns)
    message = Text(
        f"{name.zh}：{len(rows)} 个算子（{listed}）共 {milliseconds(spent)}，其中 {milliseconds(exposed)} 可避免（占本步 {share}）",
        f"{name.en}: {len(rows)} kernels ({listed}) take {milliseconds(spent)}, "
        f"{milliseconds(exposed)} of it avoidable ({share} of the step)",
    )
    order = rows[np.argsort(-waste[rows], kind="stable")]
    return judged(
        view,
        thresholds,
        Measured(
            cause=cause,
            exposed_ns=exposed,
            gain_ns=exposed,
            least=thresholds[f"{cause}_least_share"],
            message=message,
            evidence=longest(view, order[:20]),
            where=Where(operators=types_of(view, rows)),
            observed={"kernels": float(len(rows)), "kernel_time_ns": float(spent)},
            major=major,
        ),
    )


def _rate_waste(view: RankView, kernels: Table, busy: Pipes | None, thresholds: Thresholds) -> Array:
    """Time of products above what the cube, and the memory for the bytes they really moved, need at a reachable rate."""
    waste = np.zeros(len(kernels))
    found = products(view, kernels)
    if not len(found.rows):
        return waste
    floor = product_floor_ns(view, kernels, thresholds)
    working = np.ones(len(found.rows), np.bool_) if busy is None else ~(busy.busiest[found.rows] < thresholds["pipe_busy_least"])
    slow = (
        np.isfinite(found.cube)
        & working
        & (found.duration >= thresholds["tiling_kernel_least"] * 1e3)
        & (found.duration * thresholds["rate_least"] > floor)
    )
    waste[found.rows] = np.where(slow, found.duration - floor, 0.0)
    return waste


def _reload_waste(view: RankView, kernels: Table, thresholds: Thresholds) -> Array:
    """Convolutions that load all the time while the cube waits, though device memory is not busy: small tiles read the
    same operands from L2 again and again. Their shapes do not tell the work, so the busy cube is the floor."""
    busy, rate = pipes(kernels), hbm_rate(kernels)
    if busy is None or view.soc is None or not np.isfinite(rate).any():
        return np.zeros(len(kernels))
    own = view.role(kernels, "convolution") & (kernels["duration_ns"] >= thresholds["tiling_kernel_least"] * 1e3)
    own &= ~_narrow(view, kernels, int(thresholds["reload_channels_least"]))
    loading = (busy.moves >= thresholds["move_pipe_high"]) & (busy.compute <= thresholds["reload_compute_most"])
    idle_memory = rate < thresholds["bandwidth_share_high"] * view.soc.memory_bandwidth.value
    return np.where(own & loading & idle_memory, kernels["duration_ns"] * (1.0 - busy.compute / thresholds["rate_reachable"]), 0.0)


def _narrow(view: RankView, kernels: Table, least: int) -> Array:
    """Kernels whose weights have fewer than ``least`` outputs: no tile could use what it loads more often."""
    if "input_shapes" not in kernels:
        return np.zeros(len(kernels), np.bool_)
    codes = kernels["input_shapes"]
    few = [code for code in np.unique(codes).tolist() if len(dims := view.operands(code).dims) > 1 and dims[1] and dims[1][0] < least]
    return np.isin(codes, few)


def _small_products(view: RankView, kernels: Table, thresholds: Thresholds) -> Array:
    """Positions of products of so few output rows that reading the weights sets their time: a larger batch is nearly free."""
    found = products(view, kernels)
    idle = found.cube < thresholds["cube_use_small"] * found.duration
    return found.rows[(found.lines <= thresholds["few_rows"]) & idle]
