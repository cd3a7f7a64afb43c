"""Rules on the hardware's own state: the clock, and kernels slowed by communication beside them."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.diagnose import wording
from kb.diagnose.clocks import clock_names, clock_rows, kernel_clocks_mhz, rated_clock_mhz, seen_clock_mhz
from kb.diagnose.cluster_judging import communicates
from kb.diagnose.figures import milliseconds, percent
from kb.diagnose.intervals import covered_by
from kb.diagnose.judging import Measured, judged, longest, skipped, types_of
from kb.diagnose.pipes import hbm_rate, pipes
from kb.diagnose.view import RankView
from kb.domain.finding import Evidence, Judgement, Where
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds
from kb.session.session import Array, Table

_NO_CLOCK: Final = Text(
    "没有采集到时钟：既没有频率采样，也没有周期计数", "the clock was not captured: neither frequency samples nor cycle counts"
)
_NO_RATED: Final = Text("芯片的额定频率未知", "the rated clock of the chip is unknown")
_UNPLACED: Final = Text("采集到了通信，但没有它在时间上的位置", "communication was captured, but not where it lies in time")


def thermal_throttling(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge the clock during the step against the rated one (the catalogue's, else the highest seen in the capture).
    Only kernels bound by computing lose: their time times the missing part of the clock."""
    kernels = view.kernels
    if kernels is None:
        return skipped("thermal_throttling", wording.NO_KERNELS, wording.CAPTURE_KERNELS)
    clocks = kernel_clocks_mhz(view, kernels)
    rated, seen = rated_clock_mhz(view), seen_clock_mhz(view, kernels)
    if seen is None:
        return skipped(
            "thermal_throttling",
            _NO_CLOCK,
            Text("采集时打开 AI Core 频率，或用 PipeUtilization", "capture the AI Core clock, or PipeUtilization"),
        )
    if rated is None:
        rated = _highest(view, clocks)
    if rated is None:
        return skipped("thermal_throttling", _NO_RATED, wording.CAPTURE_CHIP)
    drop = max(0.0, 1.0 - seen / rated)
    rows = _computing(view, kernels, thresholds)
    spent = int(kernels["duration_ns"][rows].sum())
    cost = int(spent * drop) if drop >= thresholds["clock_drop"] else 0
    message = Text(
        f"时钟下降：本步 {seen:.0f} MHz，额定 {rated:.0f} MHz；计算型算子因此多花 "
        f"{milliseconds(cost)}（占本步 {percent(cost / view.accounting.step_ns)}）",
        f"the clock is low: {seen:.0f} MHz in this step, rated {rated:.0f} MHz; computing kernels take {milliseconds(cost)} longer "
        f"({percent(cost / view.accounting.step_ns)} of the step)",
    )
    measured = Measured(
        cause="thermal_throttling", exposed_ns=cost, gain_ns=cost, least=thresholds["thermal_throttling_least_share"], message=message,
        evidence=(*_samples(view), *longest(view, rows, 3)), observed={"clock_mhz": seen}, healthy={"clock_mhz": rated},
        minor=0 if view.soc else 1,
    )  # fmt: skip
    return judged(view, thresholds, measured)


def overlap_contention(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge whether kernels take longer beside communication than the same kernels (type and shapes) alone."""
    kernels = view.kernels
    if kernels is None:
        return skipped("overlap_contention", wording.NO_KERNELS, wording.CAPTURE_KERNELS)
    talks = view.communication(kernels)
    spans = _communication(view, kernels, talks)
    if not len(spans[0]):
        return skipped("overlap_contention", _UNPLACED if communicates(view) else wording.NO_COMM, wording.CAPTURE_COMM)
    starts, durations = kernels["start_ns"], kernels["duration_ns"]
    beside = covered_by(starts, starts + durations, *spans) / np.maximum(durations, 1)
    both = ~talks & (beside >= thresholds["overlap_most"])
    alone = ~talks & (beside <= thresholds["overlap_least"])
    alone_ns = _median_alone(view, kernels, alone)
    paired = both & np.isfinite(alone_ns)
    if not paired.any():
        reason = Text("没有同一算子既与通信重叠又单独运行", "no kernel runs both beside communication and alone")
        return skipped("overlap_contention", reason)
    spent, expected = float(durations[paired].sum()), float(alone_ns[paired].sum())
    ratio = spent / expected if expected else 1.0
    cost = int(max(0.0, spent - expected)) if ratio >= thresholds["contention_ratio"] else 0
    rows = np.flatnonzero(paired & (durations > alone_ns))
    message = Text(
        f"与通信重叠的算子变慢：{int(paired.sum())} 个，是单独运行时的 {ratio:.2f} 倍，多花 {milliseconds(cost)}",
        f"kernels slow down beside communication: {int(paired.sum())} of them "
        f"take {ratio:.2f} times as long as alone, {milliseconds(cost)} more",
    )
    measured = Measured(
        cause="overlap_contention", exposed_ns=cost, gain_ns=cost, least=thresholds["overlap_contention_least_share"], message=message,
        evidence=longest(view, rows), where=Where(operators=types_of(view, rows)), observed={"beside_over_alone": ratio},
        healthy={"beside_over_alone": 1.0},
    )  # fmt: skip
    return judged(view, thresholds, measured)


def _samples(view: RankView) -> tuple[Evidence, ...]:
    rows = clock_rows(view)
    if not len(rows):
        return ()
    values = view.session.tables["counters"]["value"]
    lowest = rows[np.argsort(values[rows], kind="stable")[:3]]
    return tuple(view.evidence("counters", row, "AI Core clock sample", float(values[row]), "MHz") for row in lowest.tolist())


def _highest(view: RankView, clocks: Array) -> float | None:
    counters = view.session.table("counters")
    every = counters["value"][clock_names(view)[counters["name"]]] if counters is not None else np.empty(0)
    return float(every.max()) if len(every) else float(np.nanquantile(clocks, 0.95)) if np.isfinite(clocks).any() else None


def _computing(view: RankView, kernels: Table, thresholds: Thresholds) -> Array:
    """Kernels whose time follows the clock: all but those that device memory, with a clock of its own, sets. By the bytes
    counted, else because they hardly compute."""
    own, rate, busy = ~view.communication(kernels), hbm_rate(kernels), pipes(kernels)
    if view.soc is not None and np.isfinite(rate).any():
        own &= ~(rate >= thresholds["bandwidth_share_high"] * view.soc.memory_bandwidth.value)
    elif busy is not None:
        own &= ~(busy.compute < thresholds["reload_compute_most"] * busy.moves)
    return np.flatnonzero(own)


def _communication(view: RankView, kernels: Table, talks: Array) -> tuple[Array, Array]:
    if talks.any():
        return kernels["start_ns"][talks], (kernels["start_ns"] + kernels["duration_ns"])[talks]
    ops = view.comm_ops
    if ops is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    placed = ops["start_ns"] >= 0
    return ops["start_ns"][placed], (ops["start_ns"] + ops["duration_ns"])[placed]


def _median_alone(view: RankView, kernels: Table, alone: Array) -> Array:
    """For each kernel the median duration of equal kernels (type, shapes) that ran alone, NaN where none did."""
    names = kernels["op_type"].astype(np.int64)
    key = np.where(names >= 0, names, kernels["name"].astype(np.int64))
    for column in ("input_shapes", "output_shapes"):
        if column in kernels:
            key = key * (len(view.session.strings) + 1) + kernels[column]
    _, group = np.unique(key, return_inverse=True)
    medians = np.full(int(group.max()) + 1, np.nan)
    order = np.flatnonzero(alone)[np.argsort(group[alone], kind="stable")]
    edges = np.flatnonzero(np.diff(group[order], prepend=-1))
    for begin, end in zip(edges.tolist(), [*edges[1:].tolist(), len(order)], strict=True):
        rows = order[begin:end]
        medians[group[rows[0]]] = float(np.median(kernels["duration_ns"][rows]))
    return medians[group]
