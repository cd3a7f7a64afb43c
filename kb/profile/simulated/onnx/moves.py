"""Shapes of what only rearranges: views, joins, cuts, picks, borders, resizing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kb.errors import ContentError
from kb.profile.simulated.onnx.document import Node
from kb.profile.simulated.onnx.operands import Made, Operands, axes_of, axis, broadcast_shape, numbers, operand


def reshape(node: Node, inputs: Operands) -> list[Made]:
    """The shape given by the second operand; 0 copies a size, -1 takes the rest."""
    value = operand(node, inputs, 0)
    wanted = numbers(node, inputs, 1)
    if wanted is None:
        wanted = list(node.integers("shape") or ())
    keep_zero = node.integer("allowzero", 0)
    sizes = [value.shape[place] if size == 0 and not keep_zero and place < len(value.shape) else size for place, size in enumerate(wanted)]
    known = math.prod(size for size in sizes if size != -1)
    if sizes.count(-1) == 1 and known > 0:
        sizes[sizes.index(-1)] = value.elements // known
    if math.prod(sizes) != value.elements or any(size < 0 for size in sizes):
        raise ContentError(f"{node.label}: {list(value.shape)} cannot become {wanted}", do="check the input shapes given")
    return [(tuple(sizes), value.dtype)]


def flatten(node: Node, inputs: Operands) -> list[Made]:
    """Two axes."""
    value = operand(node, inputs, 0)
    number = node.integer("axis", 1)
    cut = len(value.shape) if number == len(value.shape) else axis(node, number, len(value.shape))
    return [((math.prod(value.shape[:cut]), math.prod(value.shape[cut:])), value.dtype)]


def squeeze(node: Node, inputs: Operands) -> list[Made]:
    """Axes of size 1 gone."""
    value = operand(node, inputs, 0)
    given = axes_of(node, inputs)
    gone = {axis(node, number, len(value.shape)) for number in given} if given is not None else None
    kept = [size for place, size in enumerate(value.shape) if (place not in gone if gone is not None else size != 1)]
    if math.prod(kept) != value.elements:
        raise ContentError(f"{node.label}: an axis of {list(value.shape)} that shall go is not 1")
    return [(tuple(kept), value.dtype)]


def unsqueeze(node: Node, inputs: Operands) -> list[Made]:
    """New axes of size 1."""
    value = operand(node, inputs, 0)
    given = axes_of(node, inputs) or ()
    rank = len(value.shape) + len(given)
    fresh = {axis(node, number, rank) for number in given}
    old = iter(value.shape)
    return [(tuple(1 if place in fresh else next(old, 1) for place in range(rank)), value.dtype)]


def concat(node: Node, inputs: Operands) -> list[Made]:
    """Sizes along one axis added up."""
    values = [value for value in inputs if value is not None]
    first = operand(node, inputs, 0)
    along = axis(node, node.integer("axis", 1), len(first.shape))
    for value in values:
        same_rank = len(value.shape) == len(first.shape)
        if not same_rank or any(a != b for place, (a, b) in enumerate(zip(value.shape, first.shape, strict=True)) if place != along):
            raise ContentError(f"{node.label}: {list(first.shape)} and {list(value.shape)} do not join along axis {along}")
    total = sum(value.shape[along] for value in values)
    return [((*first.shape[:along], total, *first.shape[along + 1 :]), first.dtype)]


def split(node: Node, inputs: Operands) -> list[Made]:
    """Parts along one axis."""
    value = operand(node, inputs, 0)
    along = axis(node, node.integer("axis", 0), len(value.shape))
    given = numbers(node, inputs, 1) if len(inputs) > 1 else None
    sizes: Sequence[int] | None = given if given is not None else node.integers("split")
    if sizes is None:
        count = max(1, node.integer("num_outputs", len(node.outputs)))
        part = -(-value.shape[along] // count)
        sizes = [max(0, min(part, value.shape[along] - part * number)) for number in range(count)]
    return [((*value.shape[:along], size, *value.shape[along + 1 :]), value.dtype) for size in sizes]


def slice_(node: Node, inputs: Operands) -> list[Made]:
    """Ranges of some axes."""
    value = operand(node, inputs, 0)
    starts = numbers(node, inputs, 1) or list(node.integers("starts") or ())
    ends = numbers(node, inputs, 2) or list(node.integers("ends") or ())
    axes = numbers(node, inputs, 3) or list(node.integers("axes") or range(len(starts)))
    steps = numbers(node, inputs, 4) or [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise ContentError(f"{node.label}: starts, ends, axes and steps do not belong together")
    shape = list(value.shape)
    for begin, end, number, step in zip(starts, ends, axes, steps, strict=True):
        place = axis(node, number, len(shape))
        shape[place] = len(range(*slice(begin, end, step).indices(shape[place])))
    return [(tuple(shape), value.dtype)]


def gather(node: Node, inputs: Operands) -> list[Made]:
    """Picks along one axis."""
    value, picks = operand(node, inputs, 0), operand(node, inputs, 1)
    along = axis(node, node.integer("axis", 0), len(value.shape))
    return [((*value.shape[:along], *picks.shape, *value.shape[along + 1 :]), value.dtype)]


def gather_elements(node: Node, inputs: Operands) -> list[Made]:
    """One pick a place."""
    return [(operand(node, inputs, 1).shape, operand(node, inputs, 0).dtype)]


def gather_nd(node: Node, inputs: Operands) -> list[Made]:
    """Picks by whole places."""
    value, picks = operand(node, inputs, 0), operand(node, inputs, 1)
    batch = node.integer("batch_dims", 0)
    if not picks.shape:
        raise ContentError(f"{node.label}: its places are a single number")
    return [((*picks.shape[:-1], *value.shape[batch + picks.shape[-1] :]), value.dtype)]


def transpose(node: Node, inputs: Operands) -> list[Made]:
    """Axes in another order."""
    value = operand(node, inputs, 0)
    order = node.integers("perm") or tuple(reversed(range(len(value.shape))))
    if sorted(order) != list(range(len(value.shape))):
        raise ContentError(f"{node.label}: order {list(order)} for {list(value.shape)}")
    return [(tuple(value.shape[place] for place in order), value.dtype)]


def pad(node: Node, inputs: Operands) -> list[Made]:
    """Borders added."""
    value = operand(node, inputs, 0)
    pads = numbers(node, inputs, 1) if len(inputs) > 1 else None
    pads = pads if pads is not None else list(node.integers("pads") or node.integers("paddings") or ())
    given = numbers(node, inputs, 3) if len(inputs) > 3 else None
    axes = [axis(node, number, len(value.shape)) for number in given] if given is not None else list(range(len(value.shape)))
    if len(pads) != 2 * len(axes):
        raise ContentError(f"{node.label}: {len(pads)} borders for {len(axes)} axes")
    shape = list(value.shape)
    for number, place in enumerate(axes):
        shape[place] += pads[number] + pads[number + len(axes)]
    return [(tuple(shape), value.dtype)]


def expand(node: Node, inputs: Operands) -> list[Made]:
    """Stretched to a shape."""
    value = operand(node, inputs, 0)
    return [(broadcast_shape(node, [value.shape, tuple(numbers(node, inputs, 1) or ())]), value.dtype)]


def tile(node: Node, inputs: Operands) -> list[Made]:
    """Repeated along its axes."""
    value = operand(node, inputs, 0)
    repeats = numbers(node, inputs, 1) or []
    if len(repeats) != len(value.shape):
        raise ContentError(f"{node.label}: {len(repeats)} repeats for {list(value.shape)}")
    return [(tuple(size * times for size, times in zip(value.shape, repeats, strict=True)), value.dtype)]


def one_hot(node: Node, inputs: Operands) -> list[Made]:
    """A new axis of a given depth."""
    value = operand(node, inputs, 0)
    depth = (numbers(node, inputs, 1) or [1])[0]
    along = axis(node, node.integer("axis", -1), len(value.shape) + 1)
    return [((*value.shape[:along], depth, *value.shape[along:]), operand(node, inputs, 2).dtype)]


def top_k(node: Node, inputs: Operands) -> list[Made]:
    """The first k along one axis, and their places."""
    value = operand(node, inputs, 0)
    given = numbers(node, inputs, 1) if len(inputs) > 1 else None
    count = given[0] if given else node.integer("k", 1)
    along = axis(node, node.integer("axis", -1), len(value.shape))
    shape = (*value.shape[:along], count, *value.shape[along + 1 :])
    return [(shape, value.dtype), (shape, "INT64")]


def depth_to_space(node: Node, inputs: Operands) -> list[Made]:
    """Channels become positions."""
    n, c, h, w, block = _planes(node, inputs)
    return [((n, c // (block * block), h * block, w * block), operand(node, inputs, 0).dtype)]


def space_to_depth(node: Node, inputs: Operands) -> list[Made]:
    """Positions become channels."""
    n, c, h, w, block = _planes(node, inputs)
    return [((n, c * block * block, h // block, w // block), operand(node, inputs, 0).dtype)]


def _planes(node: Node, inputs: Operands) -> tuple[int, int, int, int, int]:
    value = operand(node, inputs, 0)
    if len(value.shape) != 4 or node.integer("blocksize", 0) < 1:
        raise ContentError(f"{node.label}: needs four axes and a block size, not {list(value.shape)}")
    n, c, h, w = value.shape
    return n, c, h, w, node.integer("blocksize", 1)


def resize(node: Node, inputs: Operands) -> list[Made]:
    """Sizes given, or scales of the old ones."""
    value = operand(node, inputs, 0)
    given = numbers(node, inputs, 3) if len(inputs) > 3 else None
    axes = [axis(node, number, len(value.shape)) for number in node.integers("axes") or range(len(value.shape))]
    shape = list(value.shape)
    if given:
        if len(given) != len(axes):
            raise ContentError(f"{node.label}: {len(given)} sizes for {len(axes)} axes")
        for place, size in zip(axes, _fitted(node, [shape[place] for place in axes], given), strict=True):
            shape[place] = size
        return [(tuple(shape), value.dtype)]
    scales = _scales(node, inputs)
    if len(scales) != len(axes):
        raise ContentError(f"{node.label}: {len(scales)} scales for {len(axes)} axes")
    for place, scale in zip(axes, scales, strict=True):
        shape[place] = math.floor(shape[place] * scale)
    return [(tuple(shape), value.dtype)]


def _fitted(node: Node, old: Sequence[int], wanted: Sequence[int]) -> Sequence[int]:
    """Sizes asked for, or those of one common scale where the proportions are kept."""
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch" or 0 in old:
        return wanted
    pick = min if policy == "not_larger" else max
    scale = pick(size / before for size, before in zip(wanted, old, strict=True))
    return [math.floor(before * scale + 0.5) for before in old]


def _scales(node: Node, inputs: Operands) -> list[float]:
    attribute = node.attributes.get("scales")
    if isinstance(attribute, tuple):
        return [float(item) for item in attribute]
    for place in (2, 1):
        value = inputs[place] if place < len(inputs) else None
        if value is not None and value.elements and (place == 2 or len(inputs) == 2):
            numbers(node, inputs, place)
            return [float(item) for item in np.asarray(value.data).reshape(-1).tolist()]
    raise ContentError(f"{node.label}: neither sizes nor scales")
