"""Operators with shapes and dtypes: what a model asks the chip to do, in the order it asks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

# Bytes an element, under the spelling Ascend profiles use.
ELEMENT_BYTES: Final[dict[str, int]] = {
    "FLOAT16": 2, "DT_BF16": 2, "BFLOAT16": 2, "FLOAT": 4, "FLOAT32": 4, "DOUBLE": 8, "INT8": 1, "UINT8": 1, "BOOL": 1, "INT4": 1,
    "INT16": 2, "UINT16": 2, "INT32": 4, "UINT32": 4, "INT64": 8, "UINT64": 8, "COMPLEX64": 8, "COMPLEX128": 16,
}  # fmt: skip
CUBE_EDGE: Final = 16
"""Edge of the block the cube multiplies in a cycle; matrices are padded to it."""


class Tensor(msgspec.Struct, frozen=True):
    """A value of ``bytes`` B. ``id`` is its identity for reuse; weights live for the whole run."""

    id: int
    shape: tuple[int, ...]
    dtype: str
    weight: bool
    bytes: int

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def tensor(identity: int, shape: tuple[int, ...], dtype: str, *, weight: bool = False) -> Tensor:
    """A tensor with its size worked out. Raises KeyError for a dtype without an element size."""
    return Tensor(identity, shape, dtype, weight, math.prod(shape) * ELEMENT_BYTES[dtype])


class Operator(msgspec.Struct, frozen=True):
    """One kernel. ``op_type`` is the Ascend spelling."""

    op_type: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


class CubeOperator(Operator, frozen=True):
    """``batch`` products of (m, k) and (k, n) matrices."""

    batch: int
    m: int
    k: int
    n: int
    transposed: bool = False
    """The left operand lies transposed in memory: (k, m)."""
    right_transposed: bool = False
    """The right operand lies transposed in memory: (n, k)."""
    fractal: bool = False
    """Operands lie in the cube's own block format, so nothing is converted on the way."""

    @property
    def flop(self) -> int:
        """Floating-point operations, two a multiply-add."""
        return 2 * self.batch * self.m * self.k * self.n


class MatMul(CubeOperator, frozen=True):
    """A matrix product, batched or not, with an optional bias that the cube adds for free."""


class Conv2D(CubeOperator, frozen=True):
    """A convolution as the product the cube sees: m output positions, k = kernel x input channels."""


class FlashAttention(Operator, frozen=True):
    """Attention whose scores never reach device memory; ``heads`` counts heads x batch."""

    heads: int
    queries: int
    keys: int
    width: int
    causal: bool = False
    """Only keys up to the query's own place: half the work."""
    backward: bool = False
    """Gradients: five products over the scores instead of two."""
    dropped: bool = False
    """A dropout or full mask is read for every score."""

    @property
    def flop(self) -> float:
        """Floating-point operations of the products."""
        products = 5 if self.backward else 2
        return 2.0 * products * self.heads * self.queries * self.keys * self.width * (0.5 if self.causal else 1.0)


class Collective(Operator, frozen=True):
    """Communication of its input. ``dimension`` is "tp", "pp", "dp" or "ep"; ``tag`` pairs it with the calls of the other
    ranks; ``peer`` is the other stage of a send or receive. A ``blocking`` one holds the next kernel back."""

    action: str
    dimension: str
    tag: str
    blocking: bool = True
    peer: int = -1


class VectorOperator(Operator, frozen=True):
    """Work of the vector cores: moves bytes and passes over elements."""


class Elementwise(VectorOperator, frozen=True):
    """Every output element from the input elements at its place."""


class Softmax(VectorOperator, frozen=True):
    """Row-wise softmax, also with scale and mask fused in."""


class LayerNorm(VectorOperator, frozen=True):
    """Row-wise normalisation, also with a residual or a modulation fused in."""


class Rearrangement(VectorOperator, frozen=True):
    """Transpose, concatenation or slice: bytes move, nothing is computed."""


class Embedding(VectorOperator, frozen=True):
    """A table look-up: reads as many bytes of the table as it writes."""


class Graph(msgspec.Struct, frozen=True):
    """What runs between two points where the host waits for the device. ``operators`` in launch order.

    Before the operators at the places ``joins`` every communication called so far must have ended.
    """

    operators: tuple[Operator, ...]
    joins: tuple[int, ...] = ()

    def weight_bytes(self) -> int:
        """B of all distinct weights."""
        weights = {tensor.id: tensor.bytes for operator in self.operators for tensor in operator.inputs if tensor.weight}
        return sum(weights.values())


class Workload(msgspec.Struct, frozen=True):
    """One step of a model: ``segment`` runs ``repeats`` times, the host waiting after each.

    ``host_work`` says that the host computes between segments (a scheduler); ``left_out`` names what the
    graph does not contain.
    """

    segment: Graph
    repeats: int
    host_work: bool
    left_out: tuple[str, ...] = ()
    phase: Literal["training", "inference", "prefill", "decode"] = "inference"
    input_bytes: int = 0
    """B copied to the device at the begin of a step."""
    names: Mapping[int, str] = {}
    """What the model calls the operator that makes a tensor, by the tensor's id; others are called by their kernel."""


def bytes_read(operator: Operator, tensor: Tensor) -> int:
    """B of ``tensor`` that the kernel reads at least once."""
    if isinstance(operator, Embedding) and tensor.weight:
        return min(tensor.bytes, operator.outputs[0].bytes)
    return tensor.bytes


def padded(size: int) -> int:
    """``size`` rounded up to the cube's edge."""
    return -(-size // CUBE_EDGE) * CUBE_EDGE
