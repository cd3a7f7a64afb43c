"""Shapes and types of an operator's results from its operands: one function a rule, as the ONNX operator specification says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from kb.errors import ContentError
from kb.profile.simulated.onnx import moves
from kb.profile.simulated.onnx.document import Node
from kb.profile.simulated.onnx.operands import Made, Operands, Shape, axes_of, axis, broadcast_shape, numbers, operand
from kb.profile.simulated.onnx.values import DTYPES, Array
from kb.profile.simulated.onnx.windows import conv, conv_transpose, global_pool, pool, recurrent


def same(node: Node, inputs: Operands) -> list[Made]:
    """As the first operand."""
    value = operand(node, inputs, 0)
    return [(value.shape, value.dtype)]


def view(node: Node, inputs: Operands) -> list[Made]:
    """The same memory; a dropout's mask is a second result."""
    value = operand(node, inputs, 0)
    return [(value.shape, value.dtype), (value.shape, "BOOL")]


def normalised(node: Node, inputs: Operands) -> list[Made]:
    """As the first operand; mean and deviation of each row, and for the fused forms the sum with the residual."""
    value = operand(node, inputs, 0)
    rank = len(value.shape)
    cut = axis(node, node.integer("axis", -1), rank)
    rows = (*value.shape[:cut], *(1 for _ in value.shape[cut:]))
    return [(value.shape, value.dtype), (rows, "FLOAT"), (rows, "FLOAT"), (value.shape, value.dtype)]


def batch_norm(node: Node, inputs: Operands) -> list[Made]:
    """As the first operand; statistics of each channel in training."""
    value = operand(node, inputs, 0)
    return [(value.shape, value.dtype), *[(value.shape[1:2], "FLOAT")] * 4]


def broadcast(node: Node, inputs: Operands) -> list[Made]:
    """All operands stretched to one shape."""
    values = [value for value in inputs if value is not None]
    return [(broadcast_shape(node, [value.shape for value in values]), operand(node, inputs, 0).dtype)]


def where(node: Node, inputs: Operands) -> list[Made]:
    """As broadcast, of the type of the second."""
    return [(broadcast(node, inputs)[0][0], operand(node, inputs, 1).dtype)]


def reduce(node: Node, inputs: Operands) -> list[Made]:
    """Axes summed away."""
    value = operand(node, inputs, 0)
    given = axes_of(node, inputs)
    if not given:
        if node.integer("noop_with_empty_axes", 0):
            return [(value.shape, value.dtype)]
        given = range(len(value.shape))
    gone = {axis(node, number, len(value.shape)) for number in given}
    keep = node.integer("keepdims", 1)
    kept = [1 if place in gone else size for place, size in enumerate(value.shape) if keep or place not in gone]
    return [(tuple(kept), value.dtype)]


def arg(node: Node, inputs: Operands) -> list[Made]:
    """The place of an extreme along one axis."""
    value = operand(node, inputs, 0)
    gone = axis(node, node.integer("axis", 0), len(value.shape))
    keep = node.integer("keepdims", 1)
    return [(tuple(1 if place == gone else size for place, size in enumerate(value.shape) if keep or place != gone), "INT64")]


def matmul(node: Node, inputs: Operands) -> list[Made]:
    """As numpy's product."""
    left, right = operand(node, inputs, 0), operand(node, inputs, 1)
    return [(_product(node, left.shape, right.shape), left.dtype)]


def qmatmul(node: Node, inputs: Operands) -> list[Made]:
    """The same with scales and zero points between."""
    left, right = operand(node, inputs, 0), operand(node, inputs, 3)
    return [(_product(node, left.shape, right.shape), "INT8")]


def _product(node: Node, left: Shape, right: Shape) -> Shape:
    a = (1, *left) if len(left) == 1 else left
    b = (*right, 1) if len(right) == 1 else right
    if len(a) < 2 or len(b) < 2 or a[-1] != b[-2]:
        raise ContentError(f"{node.label}: {list(left)} times {list(right)}", do="check the input shapes given")
    made = (*broadcast_shape(node, [a[:-2], b[:-2]]), a[-2], b[-1])
    if len(left) == 1:
        made = (*made[:-2], made[-1])
    return made[:-1] if len(right) == 1 else made


def gemm(node: Node, inputs: Operands) -> list[Made]:
    """A product of matrices that may lie transposed."""
    left, right = operand(node, inputs, 0), operand(node, inputs, 1)
    if len(left.shape) != 2 or len(right.shape) != 2:
        raise ContentError(f"{node.label}: {list(left.shape)} times {list(right.shape)} are no two matrices")
    a = left.shape[::-1] if node.integer("transA", 0) else left.shape
    b = right.shape[::-1] if node.integer("transB", 0) else right.shape
    return [(_product(node, a, b), left.dtype)]


def einsum(node: Node, inputs: Operands) -> list[Made]:
    """Sizes of the letters of the result."""
    equation = node.text("equation").replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if not arrow or "." in equation or len(terms) != len(inputs):
        raise ContentError(f"{node.label}: the equation {equation!r} has no plain form", allowed="letters and an arrow, as in bij,bjk->bik")
    sizes: dict[str, int] = {}
    for place, term in enumerate(terms):
        shape = operand(node, inputs, place).shape
        if len(shape) != len(term):
            raise ContentError(f"{node.label}: {term!r} for {list(shape)}")
        sizes.update(zip(term, shape, strict=True))
    return [(tuple(sizes.get(letter, 1) for letter in result), operand(node, inputs, 0).dtype)]


def cast(node: Node, inputs: Operands) -> list[Made]:
    """Another type."""
    return [(operand(node, inputs, 0).shape, DTYPES.get(node.integer("to", 1), "FLOAT"))]


def cast_like(node: Node, inputs: Operands) -> list[Made]:
    """The type of the second operand."""
    return [(operand(node, inputs, 0).shape, operand(node, inputs, 1).dtype)]


def shape_(node: Node, inputs: Operands) -> list[Made]:
    """The number of axes."""
    rank = len(operand(node, inputs, 0).shape)
    return [((len(range(rank)[slice(node.integer("start", 0), node.integer("end", rank))]),), "INT64")]


def size(_node: Node, _inputs: Operands) -> list[Made]:
    """A scalar."""
    return [((), "INT64")]


def constant_of_shape(node: Node, inputs: Operands) -> list[Made]:
    """The shape its operand spells."""
    return [(tuple(numbers(node, inputs, 0) or ()), "FLOAT")]


def range_(node: Node, inputs: Operands) -> list[Made]:
    """Evenly spaced numbers."""
    begin, end, step = (_one(node, inputs, place) for place in range(3))
    if step == 0:
        raise ContentError(f"{node.label}: a range of step 0")
    return [((max(0, math.ceil((end - begin) / step)),), operand(node, inputs, 0).dtype)]


def _one(node: Node, inputs: Operands, place: int) -> float:
    numbers(node, inputs, place)
    data: Array | None = operand(node, inputs, place).data
    if data is None or data.size != 1:
        raise ContentError(f"{node.label}: input {place + 1} is no single number")
    return float(data.reshape(-1)[0])


def random(node: Node, _inputs: Operands) -> list[Made]:
    """The shape of an attribute."""
    return [(node.integers("shape") or (), DTYPES.get(node.integer("dtype", 1), "FLOAT"))]


def dynamic_quant(node: Node, inputs: Operands) -> list[Made]:
    """Quantised values, a scale and a zero point."""
    return [(operand(node, inputs, 0).shape, "UINT8"), ((), "FLOAT"), ((), "UINT8")]


def grid_sample(node: Node, inputs: Operands) -> list[Made]:
    """One sample a point of the grid."""
    value, grid = operand(node, inputs, 0), operand(node, inputs, 1)
    return [((*value.shape[:2], *grid.shape[1:-1]), value.dtype)]


def roi_align(node: Node, inputs: Operands) -> list[Made]:
    """A small map for every region."""
    value, regions = operand(node, inputs, 0), operand(node, inputs, 1)
    return [((regions.shape[0], value.shape[1], node.integer("output_height", 1), node.integer("output_width", 1)), value.dtype)]


def embedding(node: Node, inputs: Operands) -> list[Made]:
    """Rows of a table for each token, normalised; and the length of each sequence."""
    tokens, table = operand(node, inputs, 0), operand(node, inputs, 2)
    return [((*tokens.shape, table.shape[-1]), table.dtype), (tokens.shape[:1], "INT32"), ((*tokens.shape, table.shape[-1]), table.dtype)]


def attention(node: Node, inputs: Operands) -> list[Made]:
    """As the query, with the width of the values; ONNX Runtime's own form brings the weights of all three instead."""
    query = operand(node, inputs, 0)
    if packed_attention(node):
        return [((*query.shape[:-1], operand(node, inputs, 1).shape[-1] // 3), query.dtype)]
    value = inputs[2] if len(inputs) > 2 else None
    if value is None or not value.shape:
        return [(query.shape, query.dtype)]
    heads, groups = node.integer("q_num_heads", 1), node.integer("kv_num_heads", 1)
    width = value.shape[-1] * heads // max(1, groups) if len(query.shape) == 3 else value.shape[-1]
    return [((*query.shape[:-1], width), query.dtype)]


def packed_attention(node: Node) -> bool:
    """Whether an attention multiplies its one input by the weights of queries, keys and values first."""
    return node.domain == "com.microsoft" and node.op_type == "Attention"


RULES: Final[Mapping[str, Callable[[Node, Operands], list[Made]]]] = MappingProxyType(
    {
        "view": view,
        "normalised": normalised,
        "batch_norm": batch_norm,
        "same": same,
        "broadcast": broadcast,
        "where": where,
        "reshape": moves.reshape,
        "flatten": moves.flatten,
        "squeeze": moves.squeeze,
        "unsqueeze": moves.unsqueeze,
        "reduce": reduce,
        "arg": arg,
        "matmul": matmul,
        "qmatmul": qmatmul,
        "gemm": gemm,
        "einsum": einsum,
        "conv": conv,
        "qconv": conv,
        "conv_transpose": conv_transpose,
        "pool": pool,
        "global_pool": global_pool,
        "resize": moves.resize,
        "concat": moves.concat,
        "split": moves.split,
        "slice": moves.slice_,
        "gather": moves.gather,
        "gather_elements": moves.gather_elements,
        "gather_nd": moves.gather_nd,
        "transpose": moves.transpose,
        "pad": moves.pad,
        "expand": moves.expand,
        "tile": moves.tile,
        "cast": cast,
        "cast_like": cast_like,
        "shape": shape_,
        "size": size,
        "constant_of_shape": constant_of_shape,
        "range": range_,
        "random": random,
        "one_hot": moves.one_hot,
        "top_k": moves.top_k,
        "depth_to_space": moves.depth_to_space,
        "space_to_depth": moves.space_to_depth,
        "recurrent": recurrent,
        "dynamic_quant": dynamic_quant,
        "grid_sample": grid_sample,
        "roi_align": roi_align,
        "attention": attention,
        "embedding": embedding,
    }
)
"""By the name ``operators.json`` gives. "declared" has none: its results depend on data, so the file must state them."""
