"""Rule: forward kernels run again during the backward pass."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.diagnose import wording
from kb.diagnose.figures import milliseconds, percent
from kb.diagnose.judging import Measured, judged, longest, skipped, types_of
from kb.diagnose.view import RankView
from kb.domain.finding import Judgement, Where
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds
from kb.session.session import Array, Table

CAUSE: Final = "recompute_overhead"
_PAIRS: Final = (("fused_attention", True), ("norm", True), ("softmax", False))


def recompute_overhead(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge recomputation from the number of forward kernels for each gradient kernel of the same kind: one without,
    two with full recomputation. The cost is that surplus of the kernels that repeat a sequence of the forward pass."""
    kernels = view.kernels
    if kernels is None or not view.typed():
        return skipped(CAUSE, wording.untyped(kernels), wording.CAPTURE_KERNELS)
    gradient = view.role(kernels, "gradient") | view.role(kernels, "softmax_grad")
    ratio = _ratio(view, kernels, gradient)
    if ratio is None:
        reason = Text(
            "没有可与反向配对的前向算子（不是训练，或看不出反向）", "no forward kernel can be paired with its gradient: not a training step"
        )
        return skipped(CAUSE, reason)
    repeated = _repeated(view, kernels, gradient)
    spent = int(kernels["duration_ns"][repeated].sum())
    surplus = max(0.0, 1.0 - 1.0 / ratio)
    cost = int(spent * surplus) if ratio >= thresholds["recompute_ratio"] else 0
    share = percent(cost / view.accounting.step_ns)
    message = Text(
        f"反向中重算前向：每个反向算子对应 {ratio:.2f} 个前向算子，重算约 {milliseconds(cost)}（占本步 {share}）",
        f"the backward pass recomputes the forward one: {ratio:.2f} forward kernels for each gradient, about {milliseconds(cost)} "
        f"({share} of the step)",
    )
    return judged(
        view,
        thresholds,
        Measured(
            cause=CAUSE,
            exposed_ns=cost,
            gain_ns=cost,
            least=thresholds["recompute_overhead_least_share"],
            message=message,
            evidence=longest(view, repeated),
            where=Where(operators=types_of(view, repeated)),
            observed={"forward_per_gradient": ratio},
            healthy={"forward_per_gradient": 1.0},
        ),
    )


def _ratio(view: RankView, kernels: Table, gradient: Array) -> float | None:
    """Forward over gradient kernels of the first kind that has both."""
    for role, own_gradient in _PAIRS:
        mask = view.role(kernels, role)
        grads = _count(view, kernels, f"{role}_grad") if not own_gradient else int((mask & gradient).sum()) or _grads(view, kernels, role)
        forwards = int((mask & ~gradient).sum())
        if forwards and grads:
            return forwards / grads
    return None


def _count(view: RankView, kernels: Table, role: str) -> int:
    return int(view.role(kernels, role).sum())


def _grads(view: RankView, kernels: Table, role: str) -> int:
    """Gradient kernels of normalisations, whose types the role itself does not match."""
    if role != "norm":
        return 0
    texts = np.array(["Norm" in text and "Grad" in text for text in (*view.session.strings, "")])
    return int(texts[kernels["op_type"]].sum())


def _repeated(view: RankView, kernels: Table, gradient: Array) -> Array:
    """Positions of compute kernels that belong to a pair of neighbours seen twice before the first gradient kernel."""
    order = np.flatnonzero(~view.communication(kernels))
    first = np.flatnonzero(gradient[order])
    if not len(first) or first[0] < 2:
        return order[:0]
    shapes = kernels["input_shapes"] if "input_shapes" in kernels else np.full(len(kernels), -1)
    signature = kernels["op_type"][order].astype(np.int64) * (len(view.session.strings) + 1) + shapes[order]
    _, codes = np.unique(signature, return_inverse=True)
    pairs = codes[:-1].astype(np.int64) * (int(codes.max()) + 1) + codes[1:]
    # Layers repeat; a pair seen once is a border, for example the first product of the backward pass.
    known, times = np.unique(pairs[: first[0] - 1], return_counts=True)
    seen = np.isin(pairs, known[times >= 2])
    own = np.zeros(len(order), np.bool_)
    own[:-1] |= seen
    own[1:] |= seen
    return order[own & ~gradient[order]]
