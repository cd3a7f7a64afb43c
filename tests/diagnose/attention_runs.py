"""Kernel sequences of attention, as eager PyTorch on an NPU launches them."""

from __future__ import annotations

from typing import Any

from diagnose.factories import Kernel

HEADS, ROWS, WIDTH = 8, 512, 64
Q = f"{HEADS},{ROWS},{WIDTH}"
K_T = f"{HEADS},{WIDTH},{ROWS}"
S = f"{HEADS},{ROWS},{ROWS}"
FLOPS = 2 * HEADS * ROWS * ROWS * WIDTH


def product(inputs: str, outputs: str, duration: int = 200, **more: Any) -> Kernel:
    return Kernel(op_type="BatchMatMulV3", core="AI_CORE", inputs=inputs, outputs=outputs, duration=duration, **more)


def over_scores(op_type: str, duration: int = 300) -> Kernel:
    return Kernel(op_type=op_type, inputs=S, outputs=S, duration=duration)


def forward(**counters: Any) -> list[Kernel]:
    """Q K^T, scale, mask, softmax, P V."""
    middle = [over_scores("Muls"), over_scores("Add"), over_scores("SoftmaxV2", 500)]
    return [product(f"{Q};{K_T}", S, **counters), *middle, product(f"{S};{Q}", Q, **counters)]


def backward() -> list[Kernel]:
    """dV, dP, softmax gradient, scale, dQ, transpose, dK."""
    return [
        product(f"{S};{Q}", Q),
        product(f"{Q};{K_T}", S),
        over_scores("SoftmaxGrad"),
        over_scores("Muls"),
        product(f"{S};{Q}", Q),
        over_scores("Transpose"),
        product(f"{S};{Q}", Q),
    ]


def projection() -> list[Kernel]:
    return [
        Kernel(op_type="MatMulV3", core="AI_CORE", inputs="512,512;512,512", outputs="512,512", duration=150),
        Kernel(op_type="LayerNormV3", inputs="512,512", outputs="512,512", duration=50),
    ]


def without_shapes(kernels: list[Kernel]) -> list[Kernel]:
    return [Kernel(op_type=kernel.op_type, core=kernel.core, duration=kernel.duration) for kernel in kernels]
