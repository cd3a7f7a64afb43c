"""Operators of a model file as kernels of the cost model: sizes of products from the shapes around them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kb.errors import ContentError
from kb.profile.simulated.constants import Constants
from kb.profile.simulated.graph import (
    Conv2D,
    Elementwise,
    Embedding,
    FlashAttention,
    LayerNorm,
    MatMul,
    Operator,
    Rearrangement,
    Softmax,
    Tensor,
    VectorOperator,
)
from kb.profile.simulated.graph_file import Attribute
from kb.profile.simulated.recognition import is_fractal, operator_of
from kb.profile.simulated.rows import KernelRow

Attributes = Mapping[str, Attribute]
_BLOCKED_RANK: Final = 5
_LOOK_UPS: Final = ("Gather", "Embedding", "Lookup")
_VECTOR: Final[Mapping[str, type[VectorOperator]]] = {
    "elementwise": Elementwise,
    "activation": Elementwise,
    "cast": Elementwise,
    "format": Rearrangement,
    "slice": Rearrangement,
    "move": Rearrangement,
    "index": Embedding,
}


def lowered(
    op_type: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], attributes: Attributes, constants: Constants, place: str
) -> Operator:
    """The kernel. Raises ContentError (naming ``place``) when a product's shapes cannot belong together."""
    kind = constants.kinetics(op_type).kind
    made: Operator | None = None
    if kind in ("matmul", "convolution", "attention") and outputs and len(inputs) > 1:
        if any(_blocked(tensor.shape) for tensor in inputs[:2]):
            made = _from_blocks(op_type, inputs, outputs, constants)
        elif kind == "matmul":
            made = product(op_type, inputs, outputs, attributes, place)
        elif kind == "convolution":
            made = convolution(op_type, inputs, outputs, attributes, place)
        else:
            made = attention(op_type, inputs, outputs, attributes, constants)
    if made is not None:
        return made
    if kind == "row":
        return (Softmax if "oftmax" in op_type else LayerNorm)(op_type, tuple(inputs), tuple(outputs))
    made_as = _VECTOR.get(kind, VectorOperator)
    if made_as is Embedding and not any(word in op_type for word in _LOOK_UPS):
        made_as = VectorOperator
    return made_as(op_type, tuple(inputs), tuple(outputs))


def _blocked(shape: tuple[int, ...]) -> bool:
    """Whether a tensor lies in the cube's blocks (a feature map of five axes, or a matrix of blocks of 16)."""
    return is_fractal(shape) or (len(shape) == _BLOCKED_RANK and shape[-1] in (8, 16, 32))


def _from_blocks(op_type: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], constants: Constants) -> Operator | None:
    """The kernel as it is recognised in a profile, on the tensors given."""
    row = KernelRow("", op_type, tuple(tensor.shape for tensor in inputs), tuple(tensor.dtype for tensor in inputs), 0, 0.0)
    seen = operator_of(row, constants)
    return None if isinstance(seen, VectorOperator) else msgspec.structs.replace(seen, inputs=tuple(inputs), outputs=tuple(outputs))


def product(op_type: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], attributes: Attributes, place: str) -> MatMul:
    """A matrix product: rows and columns of its result, and the axis summed over from the left operand's size."""
    left, right, out = inputs[0], inputs[1], outputs[0]
    plain = _given(attributes, ("batch", "m", "k", "n"))
    if plain is None:
        batched = len(right.shape) > 2 and math.prod(right.shape[:-2]) > 1
        n = out.shape[-1] if out.shape else 1
        rows = max(1, out.elements // n)
        m = out.shape[-2] if batched and len(out.shape) > 1 else rows
        batch = max(1, rows // m)
        k = left.elements // max(1, rows)
        if batched and left.elements < rows:
            k = right.elements // max(1, batch * n)
        shared = right.elements in (k * n, batch * k * n) or right.elements * batch % max(1, k * n) == 0
        if k < 1 or not shared:
            raise ContentError(
                f"{place}: {op_type} of {_shapes(inputs[:2])} cannot give {list(out.shape)}", do="check the shapes of this operator"
            )
        plain = batch, m, k, n
    batch, m, k, n = plain
    return MatMul(
        op_type,
        tuple(inputs),
        tuple(outputs),
        batch,
        m,
        k,
        n,
        bool(attributes.get("transposed", attributes.get("transpose_x1", False))),
        bool(attributes.get("right_transposed", attributes.get("transpose_x2", False))),
        bool(attributes.get("fractal", False)),
    )


def convolution(op_type: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], attributes: Attributes, place: str) -> Conv2D:
    """A convolution (or its transpose) of any number of spatial axes; filters are (out, in / groups, kernel..)."""
    given = _given(attributes, ("batch", "m", "k", "n"))
    if given is not None:
        return Conv2D(op_type, tuple(inputs), tuple(outputs), *given)
    x, weight, out = inputs[0], inputs[1], outputs[0]
    if len(x.shape) < 3 or len(weight.shape) != len(x.shape) or len(out.shape) != len(x.shape):
        raise ContentError(
            f"{place}: {op_type} of {_shapes(inputs[:2])} cannot give {list(out.shape)}",
            do="feature maps are (images, channels, height, width)",
        )
    kernel = math.prod(weight.shape[2:])
    if "ranspose" in op_type:
        groups = max(1, x.shape[1] // weight.shape[0]) if weight.shape[0] < x.shape[1] else int(_number(attributes, "groups", 1))
        m, k, n = x.shape[0] * math.prod(x.shape[2:]), x.shape[1] // groups, weight.shape[1] * kernel
    else:
        groups = max(1, x.shape[1] // weight.shape[1])
        m, k, n = out.shape[0] * math.prod(out.shape[2:]), weight.shape[1] * kernel, max(1, weight.shape[0] // groups)
        if x.shape[1] != groups * weight.shape[1]:
            raise ContentError(
                f"{place}: {op_type} of {x.shape[1]} channels with filters of {weight.shape[1]}", do="channels are groups x filter depth"
            )
    return Conv2D(op_type, tuple(inputs), tuple(outputs), groups, max(1, m), max(1, k), max(1, n))


def attention(
    op_type: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], attributes: Attributes, constants: Constants
) -> FlashAttention | None:
    """Fused attention; sizes as given, else read from the layout as a profile's reader would."""
    flags = {name: bool(attributes.get(name, False)) for name in ("causal", "backward", "dropped")}
    given = _given(attributes, ("heads", "queries", "keys", "width"))
    if given is not None:
        return FlashAttention(op_type, tuple(inputs), tuple(outputs), *given, **flags)
    row = KernelRow("", op_type, tuple(tensor.shape for tensor in inputs), tuple(tensor.dtype for tensor in inputs), 0, 0.0)
    seen = operator_of(row, constants)
    if not isinstance(seen, FlashAttention):
        return None
    heads = int(_number(attributes, "heads", 0) or _number(attributes, "head_num", 0))
    if heads and len(inputs[0].shape) == 3:  # (batch, tokens, hidden) leaves the number of heads open
        batch, queries, hidden = inputs[0].shape
        return FlashAttention(
            op_type, tuple(inputs), tuple(outputs), batch * heads, queries, inputs[1].shape[1], max(1, hidden // heads), **flags
        )
    return msgspec.structs.replace(seen, inputs=tuple(inputs), outputs=tuple(outputs), causal=seen.causal or flags["causal"])


def _given(attributes: Attributes, names: tuple[str, str, str, str]) -> tuple[int, int, int, int] | None:
    first, second, third, fourth = (int(_number(attributes, name, 0)) for name in names)
    return (first, second, third, fourth) if min(first, second, third, fourth) > 0 else None


def _number(attributes: Attributes, name: str, default: float) -> float:
    value = attributes.get(name, default)
    return value if isinstance(value, int | float) else default


def _shapes(tensors: Sequence[Tensor]) -> str:
    return " and ".join(str(list(tensor.shape)) for tensor in tensors)
