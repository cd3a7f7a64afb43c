"""Rules on memory: bandwidth, L2, and the cache of keys and values."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.diagnose import wording
from kb.diagnose.exposure import compute_exposed_ns
from kb.diagnose.figures import milliseconds, percent
from kb.diagnose.judging import Measured, judged, longest, skipped, types_of
from kb.diagnose.pipes import Pipes, hbm_bytes, hbm_rate, pipes
from kb.diagnose.products import products, touched_bytes
from kb.diagnose.rules.unfused_elementwise import attention_rows, chain_rows
from kb.diagnose.view import RankView
from kb.domain.catalogue import CauseId
from kb.domain.finding import Judgement, Where
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds
from kb.session.session import Array, Table

_OTHERS: Final = ("layout", "cast", "decode_attention", "quantise")


def memory_bandwidth_pressure(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge kernels whose moving pipes are busy while the computing ones wait, those apart that a more exact cause claims
    (unfused chains, layout changes, casts, decode attention, products of few rows), and products and attention that read
    every operand once (the least bytes the algorithm needs) or whose misses of L2 were counted (``l2_pressure``)."""
    kernels = view.kernels
    if kernels is None:
        return skipped("memory_bandwidth_pressure", wording.NO_KERNELS, wording.CAPTURE_KERNELS)
    busy = pipes(kernels)
    if busy is None:
        return skipped("memory_bandwidth_pressure", wording.NO_PIPES, wording.CAPTURE_PIPES)
    bound = _bound(view, kernels, busy, thresholds)
    bound[attention_rows(view, thresholds)] = False
    if view.typed():
        bound[chain_rows(view, kernels, thresholds)] = False
        for role in _OTHERS:
            bound &= ~view.role(kernels, role)
    bound &= _streams(view, kernels) | ~(_compulsory(view, kernels, thresholds) | _l2_counted(kernels))
    found = products(view, kernels)
    bound[found.rows[found.lines <= thresholds["few_rows"]]] = False
    rows = np.flatnonzero(bound)
    spare = kernels["duration_ns"][rows] * (1.0 - busy.compute[rows] / busy.moves[rows])
    name = Text("受内存带宽限制的算子", "kernels bound by memory bandwidth")
    return _cost(view, thresholds, "memory_bandwidth_pressure", kernels, rows, int(spare.sum()), name)


def l2_pressure(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge kernels that miss L2 more than healthy ones. At best the healthy rate turns that share of misses into hits."""
    kernels = view.kernels
    if kernels is None or "l2_hit_ratio" not in kernels or not np.isfinite(kernels["l2_hit_ratio"]).any():
        reason = Text("没有采集 L2 命中率", "L2 hit ratios were not captured")
        capture = Text("再采集一次：AiCMetrics.L2Cache", "a second run with AiCMetrics.L2Cache")
        return skipped("l2_pressure", reason, capture)
    hit = kernels["l2_hit_ratio"]
    low = (hit < thresholds["l2_hit_low"]) & ~view.communication(kernels)
    low &= kernels["duration_ns"] >= thresholds["l2_kernel_least"] * 1e3
    low &= ~_streams(view, kernels) & ~_compulsory(view, kernels, thresholds)
    low[attention_rows(view, thresholds)] = False
    rows = np.flatnonzero(low)
    gain = kernels["duration_ns"][rows] * np.maximum(thresholds["l2_hit_healthy"] - hit[rows], 0.0)
    return _cost(
        view, thresholds, "l2_pressure", kernels, rows, int(gain.sum()), Text("L2 命中率低的算子", "kernels with a low L2 hit ratio")
    )


def kv_cache_bandwidth(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge decode attention that spends its time reading the cache. A paged cache is read only where it holds tokens, so it
    counts from a larger share than a padded one."""
    kernels = view.kernels
    if kernels is None or not view.typed():
        return skipped("kv_cache_bandwidth", wording.untyped(kernels), wording.CAPTURE_KERNELS)
    rows = np.flatnonzero(view.role(kernels, "decode_attention"))
    busy = pipes(kernels)
    if busy is not None:
        computing = busy.compute[rows] >= thresholds["decode_compute_most"]
        rows = rows[~computing]
    paged = view.role(kernels, "paged_attention")[rows]
    if int(kernels["duration_ns"][rows[paged]].sum()) < thresholds["paged_share_least"] * view.accounting.step_ns:
        rows = rows[~paged]
    gain = int(kernels["duration_ns"][rows].sum())
    name = Text("解码注意力读取 KV 缓存", "decode attention reading the cache of keys and values")
    return _cost(view, thresholds, "kv_cache_bandwidth", kernels, rows, gain, name)


def _streams(view: RankView, kernels: Table) -> Array:
    """Kernels that touch every byte once and have nothing to reuse: element-wise, layout, casts."""
    once = np.zeros(len(kernels), np.bool_)
    for role in ("elementwise", "layout", "reduction", "norm", "optimizer"):
        once |= view.role(kernels, role)
    return once


def _l2_counted(kernels: Table) -> Array:
    return np.isfinite(kernels["l2_hit_ratio"]) if "l2_hit_ratio" in kernels else np.zeros(len(kernels), np.bool_)


def _bound(view: RankView, kernels: Table, busy: Pipes, thresholds: Thresholds) -> Array:
    moving = (busy.moves >= thresholds["move_pipe_high"]) & (busy.compute <= thresholds["compute_to_move"] * busy.moves)
    rate = hbm_rate(kernels)
    if view.soc is not None and np.isfinite(rate).any():
        peak = view.soc.memory_bandwidth.value
        moving &= ~(rate < thresholds["bandwidth_share_high"] * peak)
    return np.asarray(moving & ~view.communication(kernels))


def _compulsory(view: RankView, kernels: Table, thresholds: Thresholds) -> Array:
    """Kernels whose misses are the first touch of their operands: no order of access would avoid them. By the bytes
    counted, else because the memory needs about as long for the operands of a product."""
    if "hbm_read_bytes" in kernels and "hbm_write_bytes" in kernels:
        needed = touched_bytes(view, kernels, np.arange(len(kernels)))
        return np.asarray(hbm_bytes(kernels) <= thresholds["traffic_excess"] * needed)
    found = products(view, kernels)
    first = np.zeros(len(kernels), np.bool_)
    first[found.rows] = (found.memory >= thresholds["memory_floor_share"] * found.duration) | (found.lines <= thresholds["few_rows"])
    return first


def _cost(
    view: RankView, thresholds: Thresholds, cause: CauseId, kernels: Table, rows: Array, gain: int, name: Text
) -> tuple[Judgement, ...]:
    exposed = compute_exposed_ns(view, kernels, rows)
    share = percent(exposed / view.accounting.step_ns)
    listed = ", ".join(types_of(view, rows)[:6])
    message = Text(
        f"{name.zh}：{len(rows)} 个（{listed}），暴露 {milliseconds(exposed)}（占本步 {share}），最多可省 {milliseconds(gain)}",
        f"{name.en}: {len(rows)} ({listed}) expose {milliseconds(exposed)} ({share} of the step), at most {milliseconds(gain)} to save",
    )
    return judged(
        view,
        thresholds,
        Measured(
            cause=cause,
            exposed_ns=exposed,
            gain_ns=gain,
            least=thresholds[f"{cause}_least_share"],
            message=message,
            evidence=longest(view, rows),
            where=Where(operators=types_of(view, rows)),
            observed={"kernels": float(len(rows))},
        ),
    )
