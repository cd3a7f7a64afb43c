"""Parse an ONNX file field by field. Field numbers are those of the published onnx.proto (ONNX IR specification)."""

from __future__ import annotations

from typing import Final

from kb.errors import MalformedInputError
from kb.profile.simulated.onnx.document import Attribute, Dimension, Node, OnnxGraph, OnnxModel, TensorRef, ValueInfo
from kb.profile.simulated.wire import LENGTH, Data, Field, fields, numbers, signed, single, text

DEEPEST: Final = 8
"""Graphs inside graphs."""
MOST_DIMENSIONS: Final = 16
MOST_VALUES: Final = 4096
"""Numbers of a constant that are kept; larger ones are weights."""
_EXTERNAL: Final = 1
_MODEL_GRAPH, _MODEL_OPSETS, _MODEL_FUNCTIONS, _MODEL_PRODUCER = 7, 8, 25, 2


def parse_model(data: Data, source: str) -> OnnxModel:
    """The model. Raises MalformedInputError for bytes that are no ONNX model."""
    graph: OnnxGraph | None = None
    opset, producer = 0, ""
    functions: set[str] = set()
    for part in fields(data, 0, len(data), source):
        if part.number == _MODEL_GRAPH and part.wire == LENGTH:
            graph = _Parser(data, source).graph(part, 0)
        elif part.number == _MODEL_OPSETS and part.wire == LENGTH:
            opset = max(opset, _opset(data, part, source))
        elif part.number == _MODEL_FUNCTIONS and part.wire == LENGTH:
            functions.update(
                text(data, own) for own in fields(data, part.begin, part.end, source) if own.number == 1 and own.wire == LENGTH
            )
        elif part.number == _MODEL_PRODUCER and part.wire == LENGTH:
            producer = text(data, part)
    if graph is None:
        raise MalformedInputError(f"{source}: no graph in this file", allowed="an ONNX model", do="export the model again")
    return OnnxModel(graph, opset, producer, frozenset(functions))


def _opset(data: Data, part: Field, source: str) -> int:
    """The version of the standard operators; 0 for those of another domain."""
    domain, version = "", 0
    for own in fields(data, part.begin, part.end, source):
        if own.number == 1 and own.wire == LENGTH:
            domain = text(data, own)
        elif own.number == 2 and own.wire != LENGTH:
            version = signed(own.value)
    return version if domain in ("", "ai.onnx") else 0


class _Parser:
    """The messages of one file."""

    def __init__(self, data: Data, source: str) -> None:
        self._data, self._source = data, source

    def _fields(self, part: Field) -> list[Field]:
        return list(fields(self._data, part.begin, part.end, self._source))

    def graph(self, part: Field, depth: int) -> OnnxGraph:
        """A GraphProto."""
        if depth > DEEPEST:
            raise MalformedInputError(f"{self._source}: graphs inside graphs, more than {DEEPEST} deep")
        nodes: list[Node] = []
        initialisers: dict[str, TensorRef] = {}
        inputs: list[ValueInfo] = []
        outputs: list[ValueInfo] = []
        infos: dict[str, ValueInfo] = {}
        name = ""
        for own in self._fields(part):
            if own.wire != LENGTH:
                continue
            if own.number == 1:
                nodes.append(self._node(own, depth))
            elif own.number == 2:
                name = text(self._data, own)
            elif own.number == 5:
                tensor = self._tensor(own)
                initialisers[tensor.name] = tensor
            elif own.number == 11:
                inputs.append(self._info(own))
            elif own.number == 12:
                outputs.append(self._info(own))
            elif own.number == 13:
                info = self._info(own)
                infos[info.name] = info
            elif own.number == 15:
                raise MalformedInputError(f"{self._source}: sparse weights are not supported", do="export the model with dense weights")
        return OnnxGraph(name, tuple(nodes), initialisers, tuple(inputs), tuple(outputs), infos)

    def _node(self, part: Field, depth: int) -> Node:
        lists: dict[int, list[str]] = {1: [], 2: [], 3: [], 4: [], 7: []}
        attributes: dict[str, Attribute] = {}
        for own in self._fields(part):
            if own.wire != LENGTH:
                continue
            if own.number == 5:
                name, value = self._attribute(own, depth)
                if value is not None:
                    attributes[name] = value
            elif own.number in lists:
                lists[own.number].append(text(self._data, own))
        kind, domain, name = ((lists[number] or [""])[-1] for number in (4, 7, 3))
        return Node(kind, domain.removeprefix("ai.onnx"), name, tuple(lists[1]), tuple(lists[2]), attributes)

    def _attribute(self, part: Field, depth: int) -> tuple[str, Attribute | None]:
        name = ""
        value: Attribute | None = None
        integers: list[int] = []
        floats: list[float] = []
        for own in self._fields(part):
            if own.number == 1 and own.wire == LENGTH:
                name = text(self._data, own)
            elif own.number == 2:
                value = single(own.value)
            elif own.number == 3:
                value = signed(own.value)
            elif own.number == 4 and own.wire == LENGTH:
                value = text(self._data, own)
            elif own.number == 5 and own.wire == LENGTH:
                value = self._tensor(own)
            elif own.number == 6 and own.wire == LENGTH:
                value = self.graph(own, depth + 1)
            elif own.number == 7:
                floats += self._floats(own)
            elif own.number == 8:
                integers += numbers(self._data, own, self._source)
        if integers:
            value = tuple(integers)
        elif floats:
            value = tuple(floats)
        return name, value

    def _floats(self, own: Field) -> list[float]:
        if own.wire != LENGTH:
            return [single(own.value)]
        whole = own.end - (own.end - own.begin) % 4
        return [single(int.from_bytes(self._data[place : place + 4], "little")) for place in range(own.begin, whole, 4)]

    def _tensor(self, part: Field) -> TensorRef:
        shape: list[int] = []
        code, name, raw, external = 0, "", None, False
        values: list[float] = []
        for own in self._fields(part):
            if own.number == 1:
                shape += numbers(self._data, own, self._source)
            elif own.number == 2:
                code = own.value
            elif own.number == 8 and own.wire == LENGTH:
                name = text(self._data, own)
            elif own.number == 9 and own.wire == LENGTH:
                raw = own.begin, own.end
            elif own.number == 14:
                external = own.value == _EXTERNAL
            elif own.number == 13 and own.wire == LENGTH:
                external = True
            elif own.number in (4, 5, 7, 11) and len(values) <= MOST_VALUES:
                values += self._values(own)
        self._check(shape, name)
        return TensorRef(name, tuple(shape), code, raw, tuple(values), external)

    def _values(self, own: Field) -> list[float]:
        """Numbers of a typed field; of a large one nothing (it is a weight)."""
        if own.wire == LENGTH and own.end - own.begin > 10 * MOST_VALUES:
            return []
        return self._floats(own) if own.number == 4 else [float(value) for value in numbers(self._data, own, self._source)]

    def _check(self, shape: list[int], name: str) -> None:
        if len(shape) > MOST_DIMENSIONS or any(size < 0 for size in shape):
            raise MalformedInputError(
                f"{self._source}: tensor {name!r} has dimensions {shape[:MOST_DIMENSIONS]}",
                allowed=f"up to {MOST_DIMENSIONS} dimensions, none negative",
            )

    def _info(self, part: Field) -> ValueInfo:
        name, code = "", 0
        shape: tuple[Dimension, ...] | None = None
        for own in self._fields(part):
            if own.number == 1 and own.wire == LENGTH:
                name = text(self._data, own)
            elif own.number == 2 and own.wire == LENGTH:
                for kind in self._fields(own):
                    if kind.number == 1 and kind.wire == LENGTH:
                        code, shape = self._tensor_type(kind)
        return ValueInfo(name, code, shape)

    def _tensor_type(self, part: Field) -> tuple[int, tuple[Dimension, ...] | None]:
        code = 0
        shape: tuple[Dimension, ...] | None = None
        for own in self._fields(part):
            if own.number == 1 and own.wire != LENGTH:
                code = own.value
            elif own.number == 2 and own.wire == LENGTH:
                shape = tuple(self._dimension(size) for size in self._fields(own) if size.number == 1 and size.wire == LENGTH)
        return code, shape

    def _dimension(self, part: Field) -> Dimension:
        for own in self._fields(part):
            if own.number == 1 and own.wire != LENGTH:
                value = signed(own.value)
                return value if value >= 0 else ""
            if own.number == 2 and own.wire == LENGTH:
                return text(self._data, own)
        return ""
