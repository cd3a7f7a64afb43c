"""Time of single kernels, for comparing the model with measured rows."""

from __future__ import annotations

from kb.profile.simulated.chip import Chip
from kb.profile.simulated.constants import Constants
from kb.profile.simulated.cost import kernel_time
from kb.profile.simulated.graph import Conv2D, FlashAttention, Graph, MatMul, Operator, Tensor, VectorOperator, tensor
from kb.profile.simulated.kernel import KernelTime
from kb.profile.simulated.recognition import operator_of
from kb.profile.simulated.residency import Traffic, kept, traffic
from kb.profile.simulated.rows import KernelRow


def matmul(m: int, k: int, n: int, *, dtype: str = "FLOAT16", out_dtype: str = "FLOAT16") -> MatMul:
    """A (m, k) times (k, n) product."""
    inputs = (tensor(0, (m, k), dtype), tensor(1, (k, n), dtype))
    return MatMul("MatMulV3", inputs, (tensor(2, (m, n), out_dtype),), 1, m, k, n)


def flash_attention(tokens: int, heads: int, width: int, *, dtype: str = "FLOAT16") -> FlashAttention:
    """Self-attention of ``tokens`` over ``heads`` of ``width``, without a mask."""
    q, k, v, out = (tensor(number, (1, tokens, heads * width), dtype) for number in range(4))
    return FlashAttention("FlashAttentionScore", (q, k, v), (out,), heads, tokens, tokens, width)


def predicted_row(row: KernelRow, chip: Chip, constants: Constants) -> KernelTime:
    """A measured kernel alone, from what a profile shows of it. See ``isolated`` for where its operands are."""
    operator = operator_of(row, constants)
    return kernel_time(operator, isolated(operator, chip, constants), chip, constants, blocks=row.blocks)


def isolated(operator: Operator, chip: Chip, constants: Constants) -> Traffic:
    """Bytes a kernel moves when nothing is known about its neighbours.

    What fits the cache together was just made by another kernel. Weights (the right operand of a product that is no
    batch), flat vectors (parameters and gradients) and an optimizer's tensors come from device memory.
    """
    kinetics = constants.kinetics(operator.op_type)
    read = [_touched(operator, tensor, kinetics.gathers) for tensor in operator.inputs]
    written = [tensor.bytes for tensor in operator.outputs]
    stays = kept(float(sum(read) + sum(written)), chip.l2_bytes)
    flat = isinstance(operator, VectorOperator) and operator.inputs and max(len(tensor.shape) for tensor in operator.inputs) == 1
    streams = kinetics.cold or (bool(flat) and kinetics.kind != "copy")
    cold = [1.0 if streams else 1.0 - stays] * len(read)
    if kinetics.kind == "elementwise" and operator.inputs and _accumulates(operator):
        cold[0] = 1.0
    if isinstance(operator, MatMul | Conv2D) and operator.batch == 1 and len(cold) > 1:
        cold[1] = 1.0
    spilled = sum(written) * (1.0 if streams else 1.0 - stays)
    return Traffic(tuple(size * share for size, share in zip(read, cold, strict=True)), int(sum(read)), sum(written), spilled)


def _accumulates(operator: Operator) -> bool:
    """Whether a kernel adds half-width values into a full-width tensor of the same size: a gradient kept over the step."""
    first, *others = operator.inputs
    return any(first.dtype == "FLOAT" and other.dtype in ("DT_BF16", "FLOAT16") and other.shape == first.shape for other in others)


def _touched(operator: Operator, operand: Tensor, gathers: bool) -> float:
    """B of an operand that are read: of a table only what comes out."""
    if gathers and operand is operator.inputs[0]:
        return float(min(operand.bytes, sum(tensor.bytes for tensor in operator.outputs)))
    return float(operand.bytes)


def predicted(operator: Operator, chip: Chip, constants: Constants, *, cold: bool) -> KernelTime:
    """The kernel alone: run over and over on the same operands, or with all of them in device memory (``cold``)."""
    (warm,) = traffic(Graph((operator,)).operators, chip.l2_bytes)
    if cold:
        warm = Traffic(tuple(float(operand.bytes) for operand in operator.inputs), warm.read, warm.written, warm.spilled)
    return kernel_time(operator, warm, chip, constants)
