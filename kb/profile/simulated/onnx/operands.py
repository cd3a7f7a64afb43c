"""Operands of an operator while its result's shape is worked out, and the errors for those that do not fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kb.errors import ContentError
from kb.profile.simulated.onnx.document import Node
from kb.profile.simulated.onnx.values import Value

Shape = tuple[int, ...]
Made = tuple[Shape, str]
Operands = Sequence[Value | None]


def operand(node: Node, inputs: Operands, place: int) -> Value:
    """An operand that must be there."""
    value = inputs[place] if place < len(inputs) else None
    if value is None:
        raise ContentError(f"{node.label} lacks input {place + 1}", do="check the model with onnx.checker and export it again")
    return value


def numbers(node: Node, inputs: Operands, place: int) -> list[int] | None:
    """The whole numbers of an operand that is a small constant; None where it is not given."""
    value = inputs[place] if place < len(inputs) else None
    if value is None:
        return None
    if value.data is None:
        raise ContentError(
            f"{node.label}: input {place + 1} is computed from data, so its result has no fixed shape",
            allowed="shapes known before the run",
            do="simplify the model (constant folding, fixed input shapes) and export it again",
        )
    return [int(number) for number in np.asarray(value.data).reshape(-1).tolist()]


def axis(node: Node, number: int, rank: int) -> int:
    """An axis counted from 0. Raises ContentError where the value has no such axis."""
    if not -rank <= number < max(rank, 1):
        raise ContentError(f"{node.label}: axis {number} of a value with {rank} axes", do="check the model with onnx.checker")
    return number + rank if number < 0 else number


def broadcast_shape(node: Node, shapes: Sequence[Shape]) -> Shape:
    """The shape all stretch to."""
    try:
        return tuple(np.broadcast_shapes(*shapes))
    except ValueError as error:
        raise ContentError(f"{node.label}: {' and '.join(str(list(shape)) for shape in shapes)} do not stretch to one shape") from error


def axes_of(node: Node, inputs: Operands) -> Sequence[int] | None:
    """Axes from the second operand (new models) or the attribute (old ones)."""
    given = numbers(node, inputs, 1) if len(inputs) > 1 else None
    return given if given is not None else node.integers("axes")
