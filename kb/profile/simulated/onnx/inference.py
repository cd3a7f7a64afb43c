"""Shapes of every value of a model, and which operators are left to run on the device."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from kb.errors import ContentError, UsageError
from kb.profile.simulated.graph_file import MOST_ELEMENTS
from kb.profile.simulated.onnx.binding import Binder, Given
from kb.profile.simulated.onnx.document import Node, OnnxGraph, OnnxModel, TensorRef, ValueInfo
from kb.profile.simulated.onnx.folding import folded
from kb.profile.simulated.onnx.ordering import ordered
from kb.profile.simulated.onnx.shape_rules import RULES
from kb.profile.simulated.onnx.values import DTYPES, STRING, Array, Value, constant_of, numpy_type
from kb.profile.simulated.wire import Data

VIEWS: Final = ("view", "reshape", "flatten", "squeeze", "unsqueeze", "shape", "size", "constant_of_shape")
_LOOPS: Final = ("Loop", "Scan", "SequenceMap")
_SEQUENCES: Final = "Sequence"


class Translation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of ``operators.json``: Ascend's name, the shape rule, the type of the result ("" = as the rule says), and how
    many leading operands are data (-1 = all)."""

    ascend: str
    shape: str
    out: str = ""
    data: int = -1


def translations() -> Mapping[str, Translation]:
    """The table of operators. It is package data: a missing file is a broken installation and raises OSError."""
    return msgspec.json.decode((Path(__file__).parent / "operators.json").read_bytes(), type=dict[str, Translation])


@dataclass(frozen=True, slots=True)
class Resolved:
    """An operator that runs on the device, with its operands (None = left out) and results by name."""

    node: Node
    translation: Translation | None
    inputs: tuple[tuple[str, Value] | None, ...]
    outputs: tuple[tuple[str, Value], ...]


@dataclass(slots=True)
class Inferred:
    """The model with shapes. ``steps`` run on the device; ``free`` operators cost nothing there."""

    steps: list[Resolved] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    free: int = 0


def inferred(model: OnnxModel, data: Data, given: Given, source: str) -> Inferred:
    """Work through the model. Raises UsageError for missing input sizes, ContentError for what cannot be simulated."""
    return _Inference(model, data, given, source).run()


class _Inference:
    """One walk over a model."""

    def __init__(self, model: OnnxModel, data: Data, given: Given, source: str) -> None:
        self._model, self._data, self._given, self._source = model, data, given, source
        fed = [info for info in model.graph.inputs if info.name not in model.graph.initialisers]
        self._fed = fed
        self._binder = Binder(given, fed, source)
        self._table = translations()
        self._found = Inferred()

    def run(self) -> Inferred:
        """All of it."""
        self._bind()
        self._walk(self._model.graph)
        return self._found

    def _bind(self) -> None:
        missing = []
        for place, info in enumerate(self._fed):
            if info.code == STRING:
                raise ContentError(f"{self._source}: input {info.name} holds text, which no device computes with")
            shape = self._binder.shape(info, place)
            if shape is None:
                missing.append(info)
                continue
            self._found.values[info.name] = self._input(info, shape)
            self._found.inputs.append(info.name)
        if missing:
            raise self._binder.unbound(missing)
        self._binder.unused()
        strange = sorted(set(self._given.values) - {info.name for info in self._fed})
        if strange:
            raise UsageError(f"{self._source}: no input {strange[0]!r}", allowed=", ".join(info.name for info in self._fed))

    def _input(self, info: ValueInfo, shape: tuple[int, ...]) -> Value:
        dtype = DTYPES.get(info.code, "FLOAT")
        numbers = self._given.values.get(info.name)
        if numbers is None:
            return Value(shape, dtype, owner=info.name)
        if len(numbers) != math.prod(shape):
            raise UsageError(f"{self._source}: input {info.name} holds {math.prod(shape)} numbers, not {len(numbers)}")
        return Value(shape, dtype, constant=True, data=np.array(numbers).reshape(shape).astype(numpy_type(dtype)), owner=info.name)

    def _walk(self, graph: OnnxGraph) -> None:
        for name, ref in graph.initialisers.items():
            self._found.values[name] = named(constant_of(ref, self._data), name)
        for node in ordered(graph.nodes, self._source):
            self._node(node, graph)

    def _node(self, node: Node, graph: OnnxGraph) -> None:
        if node.op_type in _LOOPS or node.op_type.startswith(_SEQUENCES) or node.op_type.startswith("Optional"):
            raise ContentError(
                f"{self._source}: {node.label} is control flow that depends on data",
                allowed="graphs whose operators and shapes are fixed before the run",
                do="export the model with the loop unrolled, or profile it on a device",
            )
        if node.op_type in self._model.functions:
            raise ContentError(
                f"{self._source}: {node.label} is a function the model defines itself", do="inline functions (onnx.inliner) and try again"
            )
        if node.op_type == "If":
            self._branch(node)
            return
        if node.op_type == "Constant":
            self._constant(node)
            return
        self._operator(node, graph)

    def _branch(self, node: Node) -> None:
        """The branch that a known condition takes, in place of the conditional."""
        condition = self._value(node.inputs[0]) if node.inputs else None
        if condition is None or condition.data is None or condition.data.size != 1:
            raise ContentError(
                f"{self._source}: {node.label} is control flow that depends on data",
                allowed="conditions known from shapes and from inputs whose values are given",
                do="give the value of the input it tests (--value NAME=NUMBER), or export the model without it",
            )
        branch = node.attributes.get("then_branch" if bool(condition.data.reshape(-1)[0]) else "else_branch")
        if not isinstance(branch, OnnxGraph) or len(branch.outputs) < len(node.outputs):
            raise ContentError(f"{self._source}: {node.label} lacks a branch", do="check the model with onnx.checker")
        self._found.free += 1
        self._walk(branch)
        for outer, inner in zip(node.outputs, branch.outputs, strict=False):
            value = self._value(inner.name)
            if value is None:
                raise ContentError(f"{self._source}: {node.label}: its branch never makes {inner.name!r}")
            self._found.values[outer] = value

    def _constant(self, node: Node) -> None:
        self._found.free += 1
        ref = node.attributes.get("value")
        if isinstance(ref, TensorRef):
            value = constant_of(ref, self._data)
        else:
            number = next(
                (node.attributes[name] for name in ("value_int", "value_ints", "value_float", "value_floats") if name in node.attributes), 0
            )
            numbers = np.array(number if isinstance(number, int | float | tuple) else 0)
            value = Value(numbers.shape, "INT64" if numbers.dtype.kind == "i" else "FLOAT", constant=True, data=numbers)
        for name in node.outputs[:1]:
            self._found.values[name] = named(value, name)

    def _value(self, name: str) -> Value | None:
        return self._found.values.get(name) if name else None

    def _operator(self, node: Node, graph: OnnxGraph) -> None:
        for name in filter(None, node.inputs):
            if name not in self._found.values:
                raise ContentError(
                    f"{self._source}: {node.label} reads {name!r}, which nothing makes", do="check the model with onnx.checker"
                )
        inputs = [self._value(name) for name in node.inputs]
        translation = self._table.get(node.op_type) if node.domain in ("", "com.microsoft", "ai.onnx.contrib") else None
        made = list(self._made(node, inputs, translation, graph))
        constant = translation is not None and translation.shape != "random" and all(value is None or value.constant for value in inputs)
        rule = translation.shape if translation else ""
        outputs = [self._result(node, inputs, name, shape, dtype, rule, constant) for name, shape, dtype in made]
        self._found.values.update(outputs)
        if constant or rule in VIEWS or all(value.elements == 0 for _, value in outputs):
            self._found.free += 1
            return
        operands = tuple((name, value) if value is not None else None for name, value in zip(node.inputs, inputs, strict=True))
        self._found.steps.append(Resolved(node, translation, operands, tuple(outputs)))

    def _result(
        self, node: Node, inputs: Sequence[Value | None], name: str, shape: tuple[int, ...], dtype: str, rule: str, constant: bool
    ) -> tuple[str, Value]:
        data: Array | None = None
        if rule == "shape" and inputs[0] is not None:
            rank = len(inputs[0].shape)
            data = np.array(inputs[0].shape[slice(node.integer("start", 0), node.integer("end", rank))], dtype=np.int64)
        elif rule == "size" and inputs[0] is not None:
            data = np.array(inputs[0].elements)
        elif rule == "constant_of_shape":
            data = self._filled(node, shape)
            dtype = self._fill_type(node)
        elif constant:
            data = folded(node, inputs, shape, dtype)
        view = rule in VIEWS and inputs and inputs[0] is not None and rule not in ("shape", "size", "constant_of_shape")
        owner = inputs[0].owner if view and inputs[0] is not None else name
        return name, Value(shape, dtype, constant or data is not None, data, owner)

    def _fill_type(self, node: Node) -> str:
        ref = node.attributes.get("value")
        return DTYPES.get(ref.code, "FLOAT") if isinstance(ref, TensorRef) else "FLOAT"

    def _filled(self, node: Node, shape: tuple[int, ...]) -> Array | None:
        if math.prod(shape) > 4096:
            return None
        ref = node.attributes.get("value")
        fill = constant_of(ref, self._data).data if isinstance(ref, TensorRef) else None
        return np.full(shape, fill.reshape(-1)[0] if fill is not None and fill.size else 0)

    def _made(
        self, node: Node, inputs: Sequence[Value | None], translation: Translation | None, graph: OnnxGraph
    ) -> Iterator[tuple[str, tuple[int, ...], str]]:
        """(name, shape, type) of each result, by the rule, else as the file declares."""
        rule = RULES.get(translation.shape) if translation else None
        try:
            results = rule(node, inputs) if rule else []
        except ContentError as error:
            raise ContentError(f"{self._source}: {error.what}", allowed=error.allowed, do=error.do) from error
        for place, name in enumerate(node.outputs):
            if not name:
                continue
            if place < len(results):
                shape, dtype = results[place]
                dtype = translation.out if translation and translation.out and place == 0 else dtype
            else:
                shape, dtype = self._declared(node, name, graph)
            if any(size < 0 for size in shape) or math.prod(shape) > MOST_ELEMENTS:
                raise ContentError(f"{self._source}: {node.label} would give a value of {list(shape)}", do="check the input shapes given")
            yield name, shape, dtype

    def _declared(self, node: Node, name: str, graph: OnnxGraph) -> tuple[tuple[int, ...], str]:
        info = graph.infos.get(name) or next((own for own in graph.outputs if own.name == name), None)
        sizes = [self._binder.dimension(size) for size in info.shape] if info is not None and info.shape is not None else [None]
        known = tuple(size for size in sizes if size is not None)
        if info is None or len(known) < len(sizes):
            raise ContentError(
                f"{self._source}: the shape of {name!r} is unknown: {node.label} has no shape rule and the file declares none",
                allowed="standard operators, or a value_info with every size",
                do="run shape inference when exporting, or fix the sizes",
            )
        return known, DTYPES.get(info.code, "FLOAT")


def named(value: Value, name: str) -> Value:
    """The value under a name of its own."""
    return Value(value.shape, value.dtype, value.constant, value.data, name)
