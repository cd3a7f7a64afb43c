"""Rules on kernels that should not be there, or not as many: AI CPU operators, layout changes, casts, quantisation."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.diagnose import wording
from kb.diagnose.exposure import compute_exposed_ns
from kb.diagnose.figures import milliseconds, percent
from kb.diagnose.judging import Measured, judged, longest, skipped, types_of
from kb.diagnose.operators import matching
from kb.diagnose.products import products
from kb.diagnose.rules.unfused_elementwise import attention_rows
from kb.diagnose.view import RankView
from kb.domain.catalogue import CauseId
from kb.domain.finding import Judgement, Where
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds
from kb.session.session import Array, Table

_SINGLE_GAIN: Final = 0.75
"""A product in half precision runs at four times the rate of a single-precision one."""


def aicpu_operator(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge operators on the control CPU of the device."""
    kernels = view.kernels
    if kernels is None:
        return skipped("aicpu_operator", wording.NO_KERNELS, wording.CAPTURE_KERNELS)
    if not (kernels["core"][~view.communication(kernels)] >= 0).any():
        return skipped("aicpu_operator", wording.NO_TYPES, wording.CAPTURE_KERNELS)
    rows = np.flatnonzero(matching(view.session, kernels["core"], view.classes.cores["ai_cpu"]))
    name = Text("算子在 AI CPU 上执行", "operators run on the AI CPU")
    return _share(view, thresholds, "aicpu_operator", kernels, rows, name)


def format_conversion(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge layout kernels outside attention (a fused attention takes those with it)."""
    kernels = view.kernels
    if kernels is None or not view.typed():
        return skipped("format_conversion", wording.untyped(kernels), wording.CAPTURE_KERNELS)
    rows = _outside(view, thresholds, view.role(kernels, "layout"))
    return _share(view, thresholds, "format_conversion", kernels, rows, Text("格式与布局转换", "layout and format conversions"))


def excess_cast(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge casts outside attention and the loss, which need their precision, and products in single precision where the
    step also has half-precision ones or products are most of it; those not on a CPU, which gains nothing from half."""
    kernels = view.kernels
    if kernels is None or not view.typed():
        return skipped("excess_cast", wording.untyped(kernels), wording.CAPTURE_KERNELS)
    casts = _outside(view, thresholds, view.role(kernels, "cast") & ~_beside_loss(view, kernels))
    cast_ns = compute_exposed_ns(view, kernels, casts)
    found = products(view, kernels)
    halving = "input_dtypes" in kernels and view.session.meta.soc.family != "cpu"
    single = found.rows[found.wide == 4] if halving else found.rows[:0]
    single_ns = compute_exposed_ns(view, kernels, single)
    step = view.accounting.step_ns
    single_counts = single_ns >= thresholds["single_precision_share"] * step
    rows = np.concatenate((casts, single)) if single_counts else casts
    exposed = cast_ns + (single_ns if single_counts else 0)
    gain = cast_ns + (int(single_ns * _SINGLE_GAIN) if single_counts else 0)
    least = thresholds["excess_cast_least_share"]
    message = Text(
        f"精度转换 {len(casts)} 次共 {milliseconds(cast_ns)}（占本步 "
        f"{percent(cast_ns / step)}）；单精度矩阵乘 {len(single)} 次共 {milliseconds(single_ns)}",
        f"{len(casts)} casts take {milliseconds(cast_ns)} ({percent(cast_ns / step)} of the step); {len(single)} products in single "
        f"precision take {milliseconds(single_ns)}",
    )
    measured = Measured(
        cause="excess_cast", exposed_ns=exposed, gain_ns=gain, least=least, message=message, evidence=longest(view, rows),
        where=Where(operators=types_of(view, rows)), observed={"casts": float(len(casts)), "single_products": float(len(single))},
    )  # fmt: skip
    return judged(view, thresholds, measured)


def quantization_dequant_overhead(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge kernels that only quantise or dequantise, against the quantised products they serve."""
    kernels = view.kernels
    if kernels is None or not view.typed():
        return skipped("quantization_dequant_overhead", wording.untyped(kernels), wording.CAPTURE_KERNELS)
    rows = np.flatnonzero(view.role(kernels, "quantise"))
    served = np.flatnonzero(view.role(kernels, "quantised_product"))
    spent, used = (int(kernels["duration_ns"][each].sum()) for each in (rows, served))
    heavy = spent >= thresholds["quantise_to_product"] * used
    name = Text("量化与反量化", "quantising and dequantising")
    return _share(view, thresholds, "quantization_dequant_overhead", kernels, rows if heavy else rows[:0], name)


def _beside_loss(view: RankView, kernels: Table) -> Array:
    """Casts next to a softmax with cross entropy, or its gradient, on their stream: logits are summed in single precision on
    purpose, and the gradient returns from there."""
    order = np.lexsort((kernels["start_ns"], kernels["stream"])) if "stream" in kernels else np.arange(len(kernels))
    loss = view.role(kernels, "loss")[order]
    beside = np.zeros(len(kernels), np.bool_)
    beside[order[:-1]] |= loss[1:]
    beside[order[1:]] |= loss[:-1]
    return beside


def _outside(view: RankView, thresholds: Thresholds, mask: Array) -> Array:
    own = mask.copy()
    own[attention_rows(view, thresholds)] = False
    return np.flatnonzero(own)


def _share(view: RankView, thresholds: Thresholds, cause: CauseId, kernels: Table, rows: Array, name: Text) -> tuple[Judgement, ...]:
    exposed = compute_exposed_ns(view, kernels, rows)
    share = percent(exposed / view.accounting.step_ns)
    types = types_of(view, rows)
    listed = ", ".join(types[:6])
    message = Text(
        f"{name.zh}：{len(rows)} 个算子（{listed}）暴露 {milliseconds(exposed)}，占本步 {share}",
        f"{name.en}: {len(rows)} kernels ({listed}) expose {milliseconds(exposed)}, {share} of the step",
    )
    return judged(
        view,
        thresholds,
        Measured(
            cause=cause,
            exposed_ns=exposed,
            gain_ns=exposed,
            least=thresholds[f"{cause}_least_share"],
            message=message,
            evidence=longest(view, rows),
            where=Where(operators=types),
            observed={"kernels": float(len(rows))},
        ),
    )
