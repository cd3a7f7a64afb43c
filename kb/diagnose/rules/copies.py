"""Rules on copies between host and device, and on operators the host runs between two of them."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.diagnose import wording
from kb.diagnose.figures import milliseconds, percent
from kb.diagnose.idle import fallback_gaps
from kb.diagnose.intervals import clipped, complement, covered_by
from kb.diagnose.judging import Measured, judged, of_table, skipped
from kb.diagnose.launches import held_ns
from kb.diagnose.view import RankView
from kb.domain.finding import Judgement
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds
from kb.session.session import Array

_NO_COPIES: Final = Text("没有采集到主机与设备之间的拷贝", "copies between host and device were not captured")


def h2d_copy(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge copies that nothing else on the device covers, those around a host operator apart. Gaps that a copy
    happens to lie in, while launches or waits hold the kernels up, are not the copy's."""
    copies = view.session.table("copies")
    if copies is None or view.window is None:
        return skipped("h2d_copy", _NO_COPIES, wording.CAPTURE_HOST)
    pairs = _pairs(view)
    starts, ends = clipped(copies["start_ns"], copies["start_ns"] + copies["duration_ns"], view.window)
    lone = covered_by(starts, ends, *pairs) == 0
    paired = int((ends - starts)[~lone].sum())
    held = int(held_ns(view, starts, ends, blocking=True)[lone].sum())
    exposed = max(0, min(view.accounting.parts["copy_exposed"] - paired, held))
    # A device trace often names no direction; between device addresses it would say so.
    kinds = np.isin(copies["kind"], view.session.codes(("h2d", "d2h"))) | (copies["kind"] < 0)
    rows = np.flatnonzero(lone & kinds & (ends > starts))
    share = percent(exposed / view.accounting.step_ns)
    message = Text(
        f"主机与设备之间的拷贝在关键路径上：{len(rows)} 次，暴露 {milliseconds(exposed)}（占本步 {share}）",
        f"copies between host and device lie on the critical path: {len(rows)} copies expose {milliseconds(exposed)} ({share} of the step)",
    )
    return judged(
        view,
        thresholds,
        Measured(
            cause="h2d_copy",
            exposed_ns=exposed if len(rows) else 0,
            gain_ns=exposed,
            least=thresholds["h2d_copy_least_share"],
            message=message,
            evidence=of_table(view, "copies", rows),
            observed={"copies": float(len(rows))},
        ),
    )


def cpu_fallback_op(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge operators that run on the host between a copy down and a copy up with no kernel between."""
    if view.session.table("copies") is None or view.session.table("host_ops") is None or view.window is None:
        return skipped("cpu_fallback_op", _NO_COPIES, wording.CAPTURE_HOST)
    begins, ends = clipped(*_pairs(view), view.window)
    exposed = int(_uncovered(view, begins, ends).sum())
    rows = _rows_inside(view, begins, ends)
    name = _operator(view, begins, ends)
    share = percent(exposed / view.accounting.step_ns)
    count = int((ends > begins).sum())
    message = Text(
        f"算子在主机上执行，前后各有一次拷贝：{name or '?'}，{count} 次，共暴露 {milliseconds(exposed)}（占本步 {share}）",
        f"an operator runs on the host with a copy before and after: {name or '?'}, {count} times, exposing {milliseconds(exposed)} "
        f"({share} of the step)",
    )
    return judged(
        view,
        thresholds,
        Measured(
            cause="cpu_fallback_op",
            exposed_ns=exposed,
            gain_ns=exposed,
            least=thresholds["cpu_fallback_op_least_share"],
            message=message,
            evidence=(*of_table(view, "host_ops", rows, 3), *of_table(view, "copies", _copies_inside(view, begins, ends), 2)),
            observed={"fallbacks": float(count)},
        ),
    )


def _pairs(view: RankView) -> tuple[Array, Array]:
    return fallback_gaps(view.session, view.session.table("host_ops"), view.session.table("kernels"))


def _uncovered(view: RankView, begins: Array, ends: Array) -> Array:
    """Time of each pair that no kernel covers."""
    window, kernels = view.window, view.kernels
    if window is None or kernels is None:
        return ends - begins
    free = complement(kernels["start_ns"], kernels["start_ns"] + kernels["duration_ns"], window)
    return covered_by(begins, ends, *free)


def _rows_inside(view: RankView, begins: Array, ends: Array) -> Array:
    hosts = view.session.tables["host_ops"]
    starts = hosts["start_ns"]
    framework = hosts["layer"] == view.session.code("framework")
    inside = covered_by(starts, starts + hosts["duration_ns"], begins, ends) * 2 > hosts["duration_ns"]
    return np.flatnonzero(framework & inside)


def _copies_inside(view: RankView, begins: Array, ends: Array) -> Array:
    copies = view.session.tables["copies"]
    return np.flatnonzero(covered_by(copies["start_ns"], copies["start_ns"] + copies["duration_ns"], begins, ends) > 0)


def _operator(view: RankView, begins: Array, ends: Array) -> str | None:
    hosts, rows = view.session.tables["host_ops"], _rows_inside(view, begins, ends)
    if not len(rows):
        return None
    return view.session.text(int(hosts["name"][rows[hosts["duration_ns"][rows].argmax()]]))
