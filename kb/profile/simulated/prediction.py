"""Time of single kernels, for comparing the model with measured rows."""

from __future__ import annotations

from kb.profile.simulated.chip import Chip
from kb.profile.simulated.constants import Constants
from kb.profile.simulated.cost import kernel_time
from kb.profile.simulated.graph import FlashAttention, Graph, MatMul, Operator, tensor
from kb.profile.simulated.kernel import KernelTime
from kb.profile.simulated.residency import Traffic, traffic


def matmul(m: int, k: int, n: int, *, dtype: str = "FLOAT16", out_dtype: str = "FLOAT16") -> MatMul:
    """A (m, k) times (k, n) product."""
    inputs = (tensor(0, (m, k), dtype), tensor(1, (k, n), dtype))
    return MatMul("MatMulV3", inputs, (tensor(2, (m, n), out_dtype),), 1, m, k, n)


def flash_attention(tokens: int, heads: int, width: int, *, dtype: str = "FLOAT16") -> FlashAttention:
    """Self-attention of ``tokens`` over ``heads`` of ``width``, without a mask."""
    q, k, v, out = (tensor(number, (1, tokens, heads * width), dtype) for number in range(4))
    return FlashAttention("FlashAttentionScore", (q, k, v), (out,), heads, tokens, tokens, width)


def predicted(operator: Operator, chip: Chip, constants: Constants, *, cold: bool) -> KernelTime:
    """The kernel alone: run over and over on the same operands, or with all of them in device memory (``cold``)."""
    (warm,) = traffic(Graph((operator,)).operators, chip.l2_bytes)
    if cold:
        warm = Traffic(tuple(float(operand.bytes) for operand in operator.inputs), warm.read, warm.written, warm.spilled)
    return kernel_time(operator, warm, chip, constants)
