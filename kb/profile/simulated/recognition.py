"""What a measured kernel did: an operator of the cost model from its type, shapes and dtypes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from kb.profile.simulated.constants import Constants, Kinetics
from kb.profile.simulated.graph import Conv2D, FlashAttention, MatMul, Operator, Tensor, VectorOperator, tensor
from kb.profile.simulated.rows import KernelRow, Shape

FRACTAL_EDGES: Final = (8, 16, 32)
HEAD_WIDTHS: Final = (128, 64, 80, 96, 72, 40, 32)
WIDEST_HEAD: Final = 256


def operator_of(row: KernelRow, constants: Constants) -> Operator:
    """The operator of a row. Shapes a product or attention cannot have fall back to the bytes they move."""
    kinetics = constants.kinetics(row.op_type)
    found: Operator | None = None
    if kinetics.kind == "matmul":
        found = product(row)
    elif kinetics.kind == "convolution":
        found = convolution(row)
    elif kinetics.kind == "attention":
        found = attention(row)
    return found or vector(row, kinetics)


def _operands(row: KernelRow) -> tuple[Tensor, ...]:
    dtypes = (*row.dtypes, *(("FLOAT",) * len(row.shapes)))
    return tuple(tensor(number, shape, dtypes[number]) for number, shape in enumerate(row.shapes))


def _output(shape: Shape, dtype: str, number: int = 1000) -> Tensor:
    return tensor(number, shape, dtype)


def is_fractal(shape: Shape) -> bool:
    """Whether a shape is a matrix in blocks, ``(.., columns / c, rows / 16, 16, c)``."""
    return len(shape) >= 4 and shape[-2] == 16 and shape[-1] in FRACTAL_EDGES


def matrix(shape: Shape) -> tuple[int, int, int]:
    """(batch, rows, columns) of an operand in either layout."""
    if is_fractal(shape):
        return math.prod(shape[:-4]), shape[-3] * shape[-2], shape[-4] * shape[-1]
    return math.prod(shape[:-2]), shape[-2], shape[-1]


def product(row: KernelRow) -> MatMul | None:
    """A matrix product whose two operands may lie transposed: the axis they share is the one summed over.

    Where several agree, the plain reading is taken; leading dimensions beyond a plain matrix on the right fold into
    the rows.
    """
    operands = [operand for operand in _operands(row) if len(operand.shape) >= 2]
    if len(operands) < 2:
        return None
    left, right = operands[0], operands[1]
    batch, rows, columns = matrix(left.shape)
    other_batch, other_rows, other_columns = matrix(right.shape)
    if batch != other_batch and other_batch == 1:
        rows, batch = rows * batch, 1
    read = _shared_axis((rows, columns), (other_rows, other_columns))
    if read is None:
        return None
    transposed, right_transposed = read
    m, k = (columns, rows) if transposed else (rows, columns)
    n = other_rows if right_transposed else other_columns
    batch = max(batch, other_batch)
    out = _output((batch, m, n), "INT32" if left.dtype == "INT8" else left.dtype)
    rest = tuple(operand for operand in operands[2:] if operand.elements > max(m, n))
    fractal = is_fractal(left.shape)
    return MatMul(row.op_type, (left, right, *rest), (out,), batch, m, k, n, transposed, right_transposed, fractal)


def _shared_axis(left: tuple[int, int], right: tuple[int, int]) -> tuple[bool, bool] | None:
    """(left transposed, right transposed), plain first, exact before padded to the cube's edge; None where nothing fits."""
    for exact in (True, False):
        for transposed, right_transposed in ((False, False), (False, True), (True, False), (True, True)):
            a, b = left[0 if transposed else 1], right[1 if right_transposed else 0]
            if a == b or (not exact and abs(a - b) < 16):
                return transposed, right_transposed
    return None


def convolution(row: KernelRow) -> Conv2D | None:
    """A convolution, its data gradient or its weight gradient as the product the cube sees.

    The output's size is not in a row: strides are those usual for the kernel's size (1, but 2 for 7 x 7 and 4 for
    11 x 11), and a weight gradient's kernel is 7 x 7 on images, 3 x 3 between equal channels, else 1 x 1.
    """
    maps = [(operand, planes(operand.shape)) for operand in _operands(row) if len(operand.shape) >= 4]
    filters = [operand for operand in _operands(row) if len(operand.shape) == 4 and is_fractal(operand.shape)]
    images = [(operand, plane) for operand, plane in maps if operand not in filters]
    if not filters and len(images) == 2 and "Filter" not in row.op_type:
        filters = [images.pop(0 if "Input" in row.op_type else 1)[0]]
    if not images or any(0 in operand.shape for operand in (*filters, *(image for image, _ in images))):
        return None  # an empty operand leaves nothing to multiply
    first, (count, channels, height, width) = images[0]
    if filters:
        weight = filters[0]
        area, wide = _filter(weight, channels, backward="Input" in row.op_type)
        stride = {49: 2, 121: 4}.get(area, 1) if "Input" not in row.op_type else 1
        positions = count * math.ceil(height / stride) * math.ceil(width / stride)
        return Conv2D(row.op_type, (first, weight), (_output((positions, wide), first.dtype),), 1, positions, area * channels, wide)
    second, (_, wide, out_height, out_width) = images[-1]
    close = out_height == height and max(channels, wide) < 4 * min(channels, wide)
    area = 49 if channels <= 16 else 9 if channels == wide or close else 1
    out = _output((area * channels, wide), "FLOAT")
    return Conv2D(row.op_type, (first, second), (out,), 1, area * channels, count * out_height * out_width, wide)


def planes(shape: Shape) -> Shape:
    """(images, channels, height, width) of a feature map in 5-D blocks or plain."""
    if len(shape) == 5:
        return shape[0], shape[1] * shape[4], shape[2], shape[3]
    return shape[0], shape[1], shape[-2], shape[-1]


def _filter(weight: Tensor, channels: int, *, backward: bool) -> tuple[int, int]:
    """(kernel area, channels on its other side) of a filter beside a map of ``channels``."""
    if not is_fractal(weight.shape):
        out, into, *kernel = weight.shape
        return math.prod(kernel), into if backward else out
    depth, blocks, edge, inner = weight.shape
    if not backward:
        return max(1, round(depth * inner / channels)) if depth * inner >= channels else 1, blocks * edge
    total = depth * inner
    area = next((size for size in (121, 49, 25, 9, 1) if depth % size == 0 and (depth // size) * inner >= 16), 1)
    return area, total // area


def attention(row: KernelRow) -> FlashAttention | None:
    """Fused attention, forward or backward, in any of the usual layouts.

    The number of heads of a three-dimensional layout is not in a row: the usual widest head that divides is taken. A
    compressed 2048 x 2048 mask means causal attention; a byte per eight scores means dropout.
    """
    operands = _operands(row)
    wide = [operand for operand in operands if len(operand.shape) in (3, 4) and operand.elements > 1]
    if len(wide) < 2:
        return None
    query, key = wide[0], wide[1]
    value = wide[2] if len(wide) > 2 else key
    batch, heads, queries, width = _sizes(query.shape)
    _, _, keys, _ = _sizes(key.shape) if len(key.shape) == len(query.shape) else (batch, heads, key.elements // width, width)
    causal = any(operand.shape == (2048, 2048) for operand in operands) and queries > 1
    scores = batch * heads * queries * keys
    dropped = any(scores // 8 <= operand.elements <= scores // 8 + 4096 and operand.dtype == "UINT8" for operand in operands)
    return FlashAttention(
        row.op_type,
        (query, key, value),
        (_output(query.shape, query.dtype),),
        batch * heads,
        queries,
        keys,
        width,
        causal=causal,
        backward="Grad" in row.op_type or "Backward" in row.op_type,
        dropped=dropped,
    )


def _sizes(shape: Shape) -> tuple[int, int, int, int]:
    """(batch, heads, tokens, head width) of BNSD, BSND, BSH, SBH or TND."""
    if len(shape) == 4:
        batch, second, third, width = shape
        return (batch, second, third, width) if second <= third or third == 1 else (batch, third, second, width)
    first, second, hidden = shape
    if hidden <= WIDEST_HEAD:
        return 1, second, first, hidden
    width = next((size for size in HEAD_WIDTHS if hidden % size == 0), hidden)
    return (second, hidden // width, first, width) if first > second else (first, hidden // width, second, width)


def vector(row: KernelRow, kinetics: Kinetics) -> VectorOperator:
    """A kernel of the vector cores; its output follows from the kind."""
    operands = _operands(row)
    if kinetics.kind in ("fill", "random"):
        largest = _largest(operands)
        return VectorOperator(row.op_type, (), (_output(largest.shape, largest.dtype),) if largest else ())
    return VectorOperator(row.op_type, operands, _outputs(row.op_type, operands, kinetics))


def _largest(operands: Sequence[Tensor]) -> Tensor | None:
    return max(operands, key=lambda operand: operand.elements, default=None)


def _outputs(op_type: str, operands: tuple[Tensor, ...], kinetics: Kinetics) -> tuple[Tensor, ...]:
    largest = _largest(operands)
    if largest is None:
        return ()
    match kinetics.kind:
        case "cast":
            return (_output(largest.shape, _cast(largest.dtype)),)
        case "reduction" | "sorting":
            return (_output(largest.shape[:-1], largest.dtype),)
        case "optimizer":
            return _updated(op_type, operands)
        case "move" if "Concat" in op_type or "Pack" in op_type or "Stack" in op_type:
            return tuple(_output(operand.shape, operand.dtype, 1000 + number) for number, operand in enumerate(operands))
        case "index":
            return (_gathered(op_type, operands),)
        case "pool":
            return (_output(operands[0].shape, operands[0].dtype),)
        case "slice":
            return (_output((largest.elements // 2,), largest.dtype),)
        case "elementwise":
            return (_output(_broadcast(operands), largest.dtype),)
    if op_type.startswith(("SwiGlu", "Swiglu", "GeGlu", "Swi")) and "Grad" not in op_type:
        return (_output((largest.elements // 2,), largest.dtype),)
    return (_output(largest.shape, largest.dtype),)


def _broadcast(operands: tuple[Tensor, ...]) -> Shape:
    """The shape all operands stretch to; the largest one's where they do not."""
    ranks = max(len(operand.shape) for operand in operands)
    lined = [(1,) * (ranks - len(operand.shape)) + operand.shape for operand in operands]
    shape = tuple(max(sizes) for sizes in zip(*lined, strict=True))
    fits = all(size in (1, wanted) for sizes in lined for size, wanted in zip(sizes, shape, strict=True))
    return shape if fits else max(operands, key=lambda operand: operand.elements).shape


def _cast(dtype: str) -> str:
    return {"FLOAT": "FLOAT16", "FLOAT16": "FLOAT", "DT_BF16": "FLOAT", "INT64": "INT32", "INT32": "FLOAT", "BOOL": "FLOAT"}.get(
        dtype, dtype
    )


def _updated(op_type: str, operands: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """What an optimizer writes: of operands of equal size all but the gradient; a list kernel writes its first list."""
    if op_type.startswith("Foreach"):
        lists = 2 if any(word in op_type for word in ("List", "Add", "Sub", "Div", "Lerp", "Addc")) and "Scalar" not in op_type else 1
        return tuple(
            _output(operand.shape, operand.dtype, 1000 + number) for number, operand in enumerate(operands[: len(operands) // lists])
        )
    largest = _largest(operands)
    same = [operand for operand in operands if largest and operand.elements == largest.elements]
    return tuple(_output(operand.shape, operand.dtype, 1000 + number) for number, operand in enumerate(same[: max(1, len(same) - 1)]))


def _gathered(op_type: str, operands: tuple[Tensor, ...]) -> Tensor:
    """The rows that indices pick out of a table; a gradient is as large as what is scattered."""
    table = operands[0]
    if "Grad" in op_type or len(operands) < 2 or not table.shape:
        return _output(table.shape, table.dtype)
    picks = max(operand.elements for operand in operands[1:]) if "Index" in op_type else operands[1].elements
    width = math.prod(table.shape[1:]) if "Gather" in op_type or "Embedding" in op_type else 1
    return _output((picks, width), table.dtype)
