"""Rule: the host launches work more slowly than the device runs it."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.diagnose import wording
from kb.diagnose.exposure import launch_interval_ns
from kb.diagnose.figures import milliseconds, percent
from kb.diagnose.judging import Measured, judged, skipped
from kb.diagnose.rules.stream_bubbles import held_connections, queue_ns
from kb.diagnose.stalls import has_hosts
from kb.diagnose.view import RankView
from kb.domain.finding import Evidence, Judgement
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds
from kb.session.session import Array, Table

CAUSE: Final = "host_bound_launch"
_LONG, _FEW, _MOST = 1.5, 10, 0.5
"""Kernels this many launch intervals long tell, when there are so many of them; a gap behind half of them is the rule."""
_SHALLOW: Final = Text(
    "没有主机事件，而长算子之后也有空隙：可能是下发队列太浅或逐个等待，不是主机慢",
    "no host events, and gaps follow long kernels too: a shallow queue or a wait after each, not a slow host",
)


def host_bound_launch(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge whether launches come late. With host events a launch is late when it ended after the device ran dry;
    without them many gaps of launch size in front of kernels are the sign, at lower confidence.

    Saved at most: the gaps, less what a full queue leaves between two kernels.
    """
    idle, kernels = view.books.idle, view.kernels
    if idle is None or kernels is None:
        return skipped(CAUSE, wording.NO_KERNELS, wording.CAPTURE_KERNELS)
    linked = has_hosts(view)
    if not linked and _after_long_ones(view, kernels, thresholds):
        return skipped(CAUSE, _SHALLOW, wording.CAPTURE_HOST)
    begins, ends = idle.owned.get("launch" if linked else "unknown", (np.empty(0, np.int64),) * 2)
    lengths = ends - begins
    least = thresholds["launch_gap_least"] * 1e3
    most = np.inf if linked else thresholds["launch_gap_longest"] * 1e3
    chosen = (lengths > least) & (lengths <= most) & ~_held(view, ends, thresholds)
    count, exposed = int(chosen.sum()), int(lengths[chosen].sum())
    exposed = min(exposed, _room(view, thresholds, linked=linked))
    frequent = count >= thresholds["launch_gap_frequency"] * len(kernels)
    cited = _evidence(view, ends[chosen], lengths[chosen])
    share = exposed / view.accounting.step_ns if view.accounting.step_ns else 0.0
    middle = float(np.median(lengths[chosen])) if count else 0.0
    message = Text(
        f"主机下发跟不上：{count} 处空隙（共 {len(kernels)} 个任务），中位 {middle / 1e3:.1f} us，合计 {milliseconds(exposed)}"
        f"（占本步 {percent(share)}）",
        f"the host cannot keep up: {count} gaps among {len(kernels)} tasks, middle {middle / 1e3:.1f} us, {milliseconds(exposed)} in all "
        f"({percent(share)} of the step)",
    )
    notes = (
        ()
        if linked
        else (Text("没有主机事件：由空隙的频率和大小推断", "no host events: inferred from how frequent and how long the gaps are"),)
    )
    return judged(
        view,
        thresholds,
        Measured(
            cause=CAUSE,
            exposed_ns=exposed if frequent or linked else 0,
            gain_ns=exposed - int(count * thresholds["dispatch_gap"] * 1e3),
            least=thresholds["host_bound_launch_least_share"],
            message=message,
            evidence=cited,
            observed={"launch_gaps": float(count), "launch_gap_median_ns": middle, "tasks": float(len(kernels))},
            healthy={"launch_gap_median_ns": thresholds["dispatch_gap"] * 1e3},
            notes=notes,
            major=0 if linked else 1,
        ),
    )


def _after_long_ones(view: RankView, kernels: Table, thresholds: Thresholds) -> bool:
    """Whether gaps also follow kernels that run much longer than a launch takes. A slow host gets ahead during those; only
    a queue without room, or a wait after every kernel, leaves a gap behind them."""
    least, most = thresholds["launch_gap_least"] * 1e3, thresholds["launch_gap_longest"] * 1e3
    interval = launch_interval_ns(view, kernels, int(least), int(most))
    starts, ends = kernels["start_ns"], np.maximum.accumulate(kernels["start_ns"] + kernels["duration_ns"])
    gaps = starts[1:] - ends[:-1]
    long = kernels["duration_ns"][:-1] > _LONG * interval
    return bool(interval) and int(long.sum()) >= _FEW and bool((gaps[long] > least).mean() >= _MOST)


def _room(view: RankView, thresholds: Thresholds, *, linked: bool) -> int:
    """Idle time that may count: launches that waited for room in the queue have another cause."""
    if linked:
        return max(0, view.accounting.splits.get("idle", {}).get("launch", 0) - queue_ns(view, thresholds))
    return view.accounting.parts["idle_unknown"] + view.accounting.parts["idle_launch"]


def _held(view: RankView, ends: Array, thresholds: Thresholds) -> Array:
    """Gaps (by their ends) before kernels whose launch waited for room in the queue."""
    kernels = view.kernels
    connections = held_connections(view, thresholds)
    if kernels is None or not len(connections) or "connection_id" not in kernels:
        return np.zeros(len(ends), np.bool_)
    rows = np.minimum(np.searchsorted(kernels["start_ns"], ends), len(kernels) - 1)
    return np.isin(kernels["connection_id"][rows], connections)


def _evidence(view: RankView, ends: Array, lengths: Array) -> tuple[Evidence, ...]:
    """The longest gaps, each by the row of the kernel that ends it."""
    kernels = view.kernels
    if kernels is None or not len(ends):
        return ()
    order = np.argsort(-lengths, kind="stable")[:5]
    rows = np.minimum(np.searchsorted(kernels["start_ns"], ends[order]), len(kernels) - 1)
    return tuple(
        view.evidence("kernels", int(view.books.kernel_rows[row]), "idle before this task", int(length) / 1e3, "us")
        for row, length in zip(rows.tolist(), lengths[order].tolist(), strict=True)
    )
