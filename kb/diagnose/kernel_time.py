"""What the time of a kernel is made of: its fixed cost, its waves, its pipes, and the least a product needs."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.diagnose.clocks import clock_share
from kb.diagnose.pipes import Pipes, hbm_bytes, hbm_rate
from kb.diagnose.products import products
from kb.diagnose.view import RankView
from kb.domain.thresholds import Thresholds
from kb.session.session import Array, Table

_CUBE: Final = ("AI_CORE", "MIX_AIC")
_VECTOR: Final = ("AI_VECTOR_CORE", "MIX_AIV")
_CONVERTING: Final = ("aiv_vec_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio")


def fixed_ns(view: RankView, kernels: Table, thresholds: Thresholds) -> Array:
    """What a kernel takes however little it does, ns: more for a fused attention, which starts both engines and sets up its
    own schedule."""
    fixed = np.full(len(kernels), thresholds["product_fixed"] * 1e3)
    fixed[view.role(kernels, "fused_attention")] = thresholds["attention_fixed"] * 1e3
    return fixed


def taking_turns(busy: Pipes, thresholds: Thresholds) -> Array:
    """Kernels whose computing and moving pipes hardly overlap, none of them busy enough to be the limit."""
    both = np.minimum(busy.compute, busy.moves) >= thresholds["alternating_least"]
    return np.asarray(
        both & (busy.compute + busy.moves <= thresholds["alternating_sum"]) & (busy.busiest <= thresholds["alternating_most"])
    )


def wave_use(view: RankView, kernels: Table) -> Array:
    """Share (0..1) of the core-time of all waves that a kernel's blocks fill; NaN-free, 1 where unknown."""
    use = np.ones(len(kernels))
    if "block" not in kernels:
        return use
    for cores, names in ((view.cube_cores, _CUBE), (view.vector_cores, _VECTOR)):
        if not cores:
            continue
        own = np.isin(kernels["core"], view.session.codes(names)) & (kernels["block"] > 0)
        blocks = kernels["block"][own]
        use[own] = blocks / (np.ceil(blocks / cores) * cores)
    return use


def wave_waste(view: RankView, kernels: Table, busy: Pipes | None, thresholds: Thresholds) -> Array:
    """What filling every wave would save, ns: the work of the busiest pipe spread over all cores. The fixed cost stays, and
    so does what the memory and the cube need for the whole."""
    use = wave_use(view, kernels)
    duration = kernels["duration_ns"].astype(np.float64)
    poor = (duration >= thresholds["tiling_kernel_least"] * 1e3) & (use < thresholds["wave_use_least"]) & ~view.communication(kernels)
    work = np.maximum(duration - fixed_ns(view, kernels, thresholds), 0.0)
    if busy is not None:
        work = np.fmin(work, duration * np.where(np.isfinite(busy.busiest), busy.busiest, 1.0))
    room = duration - _memory_floor_ns(view, kernels, thresholds)
    found = products(view, kernels)
    room[found.rows] = np.fmin(room[found.rows], found.duration - product_floor_ns(view, kernels, thresholds))
    return np.where(poor, np.maximum(np.fmin(work * (1.0 - use), room), 0.0), 0.0)


def product_floor_ns(view: RankView, kernels: Table, thresholds: Thresholds) -> Array:
    """ns that good kernels would take for the products (in the order of ``products``): the cube's time, or the memory's for
    the operands or for the bytes counted, at the reachable rate and the clock seen, with the fixed cost and the vector cores' conversion of
    operands the cube cannot read."""
    found = products(view, kernels)
    counted = _memory_floor_ns(view, kernels, thresholds)[found.rows]
    cube = found.cube / clock_share(view, kernels)
    need = np.fmax(np.fmax(cube, found.memory) / thresholds["rate_reachable"], counted)
    return np.asarray(need + thresholds["product_fixed"] * 1e3 + _converting_ns(view, kernels)[found.rows])


def _memory_floor_ns(view: RankView, kernels: Table, thresholds: Thresholds) -> Array:
    """ns the memory needs for the bytes it was counted to move; 0 where nothing was counted."""
    if view.soc is None or not np.isfinite(hbm_rate(kernels)).any():
        return np.zeros(len(kernels))
    return np.asarray(np.nan_to_num(hbm_bytes(kernels)) / (view.soc.memory_bandwidth.value * thresholds["rate_reachable"]))


def _converting_ns(view: RankView, kernels: Table) -> Array:
    """Time the vector cores work inside kernels of both engines."""
    mixed = kernels["core"] == view.session.code("MIX_AIC")
    ratios = [np.nan_to_num(kernels[name]) for name in _CONVERTING if name in kernels]
    return np.where(mixed, kernels["duration_ns"] * np.max(ratios, axis=0), 0.0) if ratios else np.zeros(len(kernels))
