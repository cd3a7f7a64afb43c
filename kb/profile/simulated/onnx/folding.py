"""Numbers of small constants: what the shape arithmetic of exported models computes, worked out before the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from kb.profile.simulated.onnx.document import Node, TensorRef
from kb.profile.simulated.onnx.reading import MOST_VALUES
from kb.profile.simulated.onnx.values import Array, Value, numpy_type

Fold = Callable[[Node, Sequence[Array], tuple[int, ...]], Array]


def _same_axes(node: Node, data: Sequence[Array], _shape: tuple[int, ...]) -> Array:
    return np.transpose(data[0], node.integers("perm"))


def _gathered(node: Node, data: Sequence[Array], _shape: tuple[int, ...]) -> Array:
    return np.take(data[0], data[1].astype(np.int64), axis=node.integer("axis", 0))


def _sliced(node: Node, data: Sequence[Array], _shape: tuple[int, ...]) -> Array:
    starts, ends, axes, steps = (
        [int(number) for number in data[place].reshape(-1)] if place < len(data) else list(node.integers(name) or ())
        for place, name in ((1, "starts"), (2, "ends"), (3, "axes"), (4, "steps"))
    )
    axes = axes or list(range(len(starts)))
    steps = steps or [1] * len(starts)
    cut = [slice(None)] * data[0].ndim
    for begin, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        cut[axis] = slice(begin, end if end > -(1 << 62) else None, step)
    return data[0][tuple(cut)]


def _range(_node: Node, data: Sequence[Array], _shape: tuple[int, ...]) -> Array:
    return np.arange(*(part.reshape(-1)[0] for part in data[:3]))


def _reduced(operation: Any) -> Fold:
    def fold(_node: Node, data: Sequence[Array], shape: tuple[int, ...]) -> Array:
        """Only over everything: what shape arithmetic needs."""
        if int(np.prod(shape)) != 1:
            raise ValueError("partial reductions are left to the run")
        return np.asarray(operation(data[0])).reshape(shape)

    return fold


def _plain(operation: Any) -> Fold:
    return lambda _node, data, _shape: np.asarray(operation(*data))


def _divided(_node: Node, data: Sequence[Array], _shape: tuple[int, ...]) -> Array:
    whole = data[0].dtype.kind in "iu" and data[1].dtype.kind in "iu"
    return np.trunc(data[0] / data[1]).astype(data[0].dtype) if whole else np.asarray(data[0] / data[1])


def _reshaped(_node: Node, data: Sequence[Array], shape: tuple[int, ...]) -> Array:
    return data[0].reshape(shape)


def _expanded(_node: Node, data: Sequence[Array], shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(data[0], shape)


def _tiled(_node: Node, data: Sequence[Array], _shape: tuple[int, ...]) -> Array:
    return np.tile(data[0], data[1].astype(np.int64))


def _filled(node: Node, _data: Sequence[Array], shape: tuple[int, ...]) -> Array:
    value = node.attributes.get("value")
    fill = value.values[0] if isinstance(value, TensorRef) and value.values else 0
    return np.full(shape, fill)


FOLDS: Final[Mapping[str, Fold]] = MappingProxyType(
    {
        "Identity": _reshaped, "Reshape": _reshaped, "Squeeze": _reshaped, "Unsqueeze": _reshaped, "Flatten": _reshaped, "Cast": _reshaped,
        "Gather": _gathered, "Slice": _sliced, "Transpose": _same_axes, "Range": _range, "Expand": _expanded, "Tile": _tiled,
        "ConstantOfShape": _filled, "Div": _divided,
        "Concat": lambda node, data, _shape: np.concatenate(data, axis=node.integer("axis", 0)),
        "Add": _plain(np.add), "Sub": _plain(np.subtract), "Mul": _plain(np.multiply), "Mod": _plain(np.mod), "Pow": _plain(np.power),
        "Min": _plain(np.minimum), "Max": _plain(np.maximum), "Neg": _plain(np.negative), "Abs": _plain(np.abs), "Sqrt": _plain(np.sqrt),
        "Floor": _plain(np.floor), "Ceil": _plain(np.ceil), "Equal": _plain(np.equal), "Less": _plain(np.less),
        "Greater": _plain(np.greater), "GreaterOrEqual": _plain(np.greater_equal), "LessOrEqual": _plain(np.less_equal),
        "Not": _plain(np.logical_not), "And": _plain(np.logical_and), "Or": _plain(np.logical_or), "Where": _plain(np.where),
        "ReduceProd": _reduced(np.prod), "ReduceSum": _reduced(np.sum), "ReduceMax": _reduced(np.max), "ReduceMin": _reduced(np.min),
    }
)  # fmt: skip
"""By operator; others keep only shape and type."""


def folded(node: Node, inputs: Sequence[Value | None], shape: tuple[int, ...], dtype: str) -> Array | None:
    """The numbers of a constant result; None where they are many, or not worked out here."""
    fold = FOLDS.get(node.op_type)
    if fold is None or _count(shape) > MOST_VALUES or node.domain:
        return None
    data = [value.data for value in inputs if value is not None]
    if any(part is None for part in data) or any(value is None for value in inputs):
        return None
    try:
        with np.errstate(all="ignore"):
            found = fold(node, [np.asarray(part) for part in data], shape).astype(numpy_type(dtype))
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    return found if found.shape == shape else None


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
