"""Whether two profiles show the same model: the shapes of its weights, which no scheduling, fusion or clock changes."""

from __future__ import annotations

import numpy as np

from kb.domain.text import Text
from kb.session.session import Session

_PRODUCTS = ("MatMul", "Conv2D")
LEAST_SHAPES = 3
"""Fewer distinct weights do not tell models apart."""
LEAST_SHARED = 0.3
"""Share of the smaller set of weight shapes that both profiles must have."""


def weights_of(session: Session) -> frozenset[tuple[int, ...]]:
    """Shapes of the right operands of plain products and convolutions, each with its dimensions in order of size; batched
    products have activations on both sides and are left out. Empty where the capture has no shapes."""
    kernels = session.table("kernels")
    if kernels is None or "input_shapes" not in kernels:
        return frozenset()
    pairs = np.unique(np.stack([kernels["op_type"], kernels["input_shapes"]], axis=1), axis=0).tolist()
    found = set()
    for op_type, shapes in pairs:
        name, operands = session.text(op_type) or "", (session.text(shapes) or "").strip('"').split(";")
        if any(word in name for word in _PRODUCTS) and "Batch" not in name and len(operands) > 1:
            sizes = [int(word) for word in operands[1].split(",") if word.strip().isdigit()]
            if len(sizes) > 1:
                found.add(tuple(sorted(sizes)))
    return frozenset(found)


def other_model(before: Session, after: Session) -> Text | None:
    """Why ``after`` is not a profile of the model of ``before``; None when nothing speaks against it."""
    first, second = weights_of(before), weights_of(after)
    if min(len(first), len(second)) < LEAST_SHAPES:
        return None
    shared = len(first & second) / min(len(first), len(second))
    if shared >= LEAST_SHARED:
        return None
    figures = f"{len(first & second)} / {min(len(first), len(second))}"
    return Text(
        f"权重形状不同：两次采集只有 {figures} 种相同，不是同一个模型",
        f"other weights: of the weight shapes only {figures} are in both profiles, so this is another model",
    )
