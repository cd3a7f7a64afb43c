"""Shapes of what slides a window: convolutions and pools, and of recurrent layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from kb.errors import ContentError
from kb.profile.simulated.onnx.document import Node
from kb.profile.simulated.onnx.values import Value

Made = tuple[tuple[int, ...], str]
Operands = Sequence[Value | None]
_GATES: Final = {"LSTM": 4, "DynamicQuantizeLSTM": 4, "GRU": 3, "RNN": 1}


def _image(node: Node, inputs: Operands) -> Value:
    value = inputs[0] if inputs else None
    if value is None or len(value.shape) < 3:
        raise ContentError(f"{node.label}: needs (images, channels, sizes ..), not {list(value.shape) if value else 'nothing'}")
    return value


def _filter(node: Node, inputs: Operands) -> Value:
    place = 3 if node.op_type == "QLinearConv" else 1
    value = inputs[place] if place < len(inputs) else None
    if value is None:
        raise ContentError(f"{node.label} has no filters", do="check the model with onnx.checker and export it again")
    return value


def conv(node: Node, inputs: Operands) -> list[Made]:
    """A convolution of any number of spatial axes."""
    value, weight = _image(node, inputs), _filter(node, inputs)
    groups = node.integer("group", 1)
    if len(weight.shape) != len(value.shape) or groups < 1 or weight.shape[1] * groups != value.shape[1]:
        raise ContentError(
            f"{node.label}: filters {list(weight.shape)} in {groups} groups for {list(value.shape)}", do="check the input shapes given"
        )
    sizes = windowed(node, value.shape[2:], node.integers("kernel_shape") or weight.shape[2:])
    return [((value.shape[0], weight.shape[0], *sizes), "INT8" if node.op_type == "QLinearConv" else value.dtype)]


def pool(node: Node, inputs: Operands) -> list[Made]:
    """A pool; its second result holds the places of the maxima."""
    value = _image(node, inputs)
    kernel = node.integers("kernel_shape")
    if kernel is None:
        raise ContentError(f"{node.label} has no kernel_shape")
    sizes = windowed(node, value.shape[2:], kernel)
    shape = (*value.shape[:2], *sizes)
    return [(shape, value.dtype), (shape, "INT64")]


def global_pool(node: Node, inputs: Operands) -> list[Made]:
    """One value a channel."""
    value = _image(node, inputs)
    return [((*value.shape[:2], *(1 for _ in value.shape[2:])), value.dtype)]


def windowed(node: Node, sizes: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
    """Positions of a window along each axis. Raises ContentError where it does not fit even once."""
    rank = len(sizes)
    strides = node.integers("strides") or (1,) * rank
    dilations = node.integers("dilations") or (1,) * rank
    pads = node.integers("pads") or (0,) * (2 * rank)
    automatic = node.text("auto_pad", "NOTSET")
    if not len(kernel) == len(strides) == len(dilations) == rank or len(pads) != 2 * rank or min((*strides, *dilations, *kernel)) < 1:
        raise ContentError(f"{node.label}: kernel {list(kernel)}, strides {list(strides)}, pads {list(pads)} for {rank} axes")
    made = []
    for place, size in enumerate(sizes):
        reach = (kernel[place] - 1) * dilations[place] + 1
        if automatic.startswith("SAME"):
            made.append(-(-size // strides[place]))
            continue
        room = size - reach + (0 if automatic == "VALID" else pads[place] + pads[place + rank])
        steps = math.ceil(room / strides[place]) if node.integer("ceil_mode", 0) else room // strides[place]
        if node.integer("ceil_mode", 0) and steps * strides[place] >= size + pads[place]:
            steps -= 1  # a window that would begin in the border behind the image is left out
        made.append(steps + 1)
    if any(size < 1 for size in made):
        raise ContentError(
            f"{node.label}: a window of {list(kernel)} does not fit {list(sizes)}: it would give {made}", do="give a larger input shape"
        )
    return tuple(made)


def conv_transpose(node: Node, inputs: Operands) -> list[Made]:
    """The transpose of a convolution; filters are (in, out / groups, kernel ..)."""
    value, weight = _image(node, inputs), _filter(node, inputs)
    rank = len(value.shape) - 2
    if len(weight.shape) != rank + 2 or weight.shape[0] != value.shape[1]:
        raise ContentError(f"{node.label}: filters {list(weight.shape)} for {list(value.shape)}", do="check the input shapes given")
    kernel = node.integers("kernel_shape") or weight.shape[2:]
    strides = node.integers("strides") or (1,) * rank
    dilations = node.integers("dilations") or (1,) * rank
    pads = node.integers("pads") or (0,) * (2 * rank)
    extra = node.integers("output_padding") or (0,) * rank
    given = node.integers("output_shape")
    if given is not None:
        sizes = given[-rank:]
    elif node.text("auto_pad", "NOTSET").startswith("SAME"):
        sizes = tuple(size * stride for size, stride in zip(value.shape[2:], strides, strict=True))
    else:
        sizes = tuple(
            strides[i] * (value.shape[2 + i] - 1) + extra[i] + (kernel[i] - 1) * dilations[i] + 1 - pads[i] - pads[i + rank]
            for i in range(rank)
        )
    if any(size < 1 for size in sizes):
        raise ContentError(f"{node.label}: it would give {list(sizes)}", do="give a larger input shape")
    return [((value.shape[0], weight.shape[1] * node.integer("group", 1), *sizes), value.dtype)]


def recurrent(node: Node, inputs: Operands) -> list[Made]:
    """All states, the last one, and an LSTM's last cell."""
    value = inputs[0] if inputs else None
    weight = inputs[1] if len(inputs) > 1 else None
    if value is None or weight is None or len(value.shape) != 3 or len(weight.shape) != 3:
        raise ContentError(f"{node.label}: needs a sequence of (steps, batch, width) and weights")
    hidden = node.integer("hidden_size", weight.shape[1] // _GATES[node.op_type])
    steps, batch, _ = value.shape
    directions = weight.shape[0]
    if node.integer("layout", 0):
        batch, steps, _ = value.shape
        return [((batch, steps, directions, hidden), value.dtype), *[((batch, directions, hidden), value.dtype)] * 2]
    return [((steps, directions, batch, hidden), value.dtype), *[((directions, batch, hidden), value.dtype)] * 2]
