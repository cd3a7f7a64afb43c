"""The graph of an offline model as stored: operators with descriptors, and their messages as bytes.

Field numbers are those of the public `ge_ir.proto` (GE's intermediate representation).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from kb.errors import MalformedInputError
from kb.profile.simulated.graph_file import Attribute
from kb.profile.simulated.wire import LENGTH, Data, Field, bytes_field, fields, number_field, numbers, packed_field, signed, single, text

DTYPES: Final[Mapping[int, str]] = {
    1: "FLOAT", 2: "FLOAT16", 3: "INT8", 4: "UINT8", 5: "INT16", 6: "UINT16", 7: "INT32", 8: "INT64", 9: "UINT32", 10: "UINT64",
    11: "BOOL", 12: "DOUBLE", 16: "COMPLEX64", 17: "COMPLEX128", 18: "INT8", 19: "INT16", 20: "INT32", 21: "UINT8", 22: "UINT16",
    27: "DT_BF16", 29: "INT4",
}  # fmt: skip
"""GE's element types in the profiler's spelling."""
CODES: Final[Mapping[str, int]] = {name: code for code, name in reversed(list(DTYPES.items()))} | {"FLOAT32": 1, "BFLOAT16": 27}
MOST_DIMENSIONS: Final = 64
MOST_OPERATORS: Final = 1_000_000


class Descriptor(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor of an operator. ``origin`` is its shape before the compiler changed the layout (None = not stored)."""

    shape: tuple[int, ...]
    dtype: str = "FLOAT"
    layout: str = "ND"
    origin: tuple[int, ...] | None = None


class StoredOperator(msgspec.Struct, frozen=True, kw_only=True):
    """One operator: ``inputs`` as ``name:index`` of who makes them ("" = none); ``stream`` -1 = not assigned."""

    name: str
    type: str
    inputs: tuple[str, ...] = ()
    attributes: Mapping[str, Attribute] = {}
    stream: int = -1
    constants: tuple[bool, ...] = ()
    input_descriptors: tuple[Descriptor, ...] = ()
    output_descriptors: tuple[Descriptor, ...] = ()
    workspace_bytes: tuple[int, ...] = ()
    subgraphs: tuple[str, ...] = ()


class StoredGraph(msgspec.Struct, frozen=True):
    """One graph of the model; the first is the root."""

    name: str
    operators: tuple[StoredOperator, ...]


class StoredModel(msgspec.Struct, frozen=True):
    """All graphs."""

    name: str
    graphs: tuple[StoredGraph, ...]


def read_model_def(data: Data, begin: int, end: int, source: str) -> StoredModel:
    """The model at ``begin`` to ``end``. Raises MalformedInputError for bytes that are none."""
    reader = _Reader(data, source)
    name, graphs = "", []
    for part in fields(data, begin, end, source):
        if part.number == 1 and part.wire == LENGTH:
            name = text(data, part)
        elif part.number == 7 and part.wire == LENGTH:
            graphs.append(reader.graph(part))
    return StoredModel(name, tuple(graphs))


class _Reader:
    """The messages of one file."""

    def __init__(self, data: Data, source: str) -> None:
        self._data, self._source = data, source

    def graph(self, part: Field) -> StoredGraph:
        """A GraphDef."""
        name, operators = "", []
        for own in fields(self._data, part.begin, part.end, self._source):
            if own.number == 1 and own.wire == LENGTH:
                name = text(self._data, own)
            elif own.number == 6 and own.wire == LENGTH:
                operators.append(self._operator(own))
            if len(operators) > MOST_OPERATORS:
                raise MalformedInputError(f"{self._source}: more than {MOST_OPERATORS} operators")
        return StoredGraph(name, tuple(operators))

    def _operator(self, part: Field) -> StoredOperator:
        texts: dict[int, list[str]] = {1: [], 2: [], 5: [], 35: []}
        integers: dict[int, list[int]] = {22: [], 31: [], 32: []}
        descriptors: dict[int, list[Descriptor]] = {33: [], 34: []}
        attributes: dict[str, Attribute] = {}
        for own in fields(self._data, part.begin, part.end, self._source):
            if own.number in texts and own.wire == LENGTH:
                texts[own.number].append(text(self._data, own))
            elif own.number in integers:
                integers[own.number] += numbers(self._data, own, self._source)
            elif own.number in descriptors and own.wire == LENGTH:
                descriptors[own.number].append(self._descriptor(own))
            elif own.number == 10 and own.wire == LENGTH:
                name, value = self._entry(own)
                if value is not None:
                    attributes[name] = value
        return StoredOperator(
            name=(texts[1] or [""])[-1],
            type=(texts[2] or [""])[-1],
            inputs=tuple(texts[5]),
            attributes=attributes,
            stream=(integers[22] or [-1])[-1],
            constants=tuple(bool(value) for value in integers[32]),
            input_descriptors=tuple(descriptors[33]),
            output_descriptors=tuple(descriptors[34]),
            workspace_bytes=tuple(integers[31]),
            subgraphs=tuple(texts[35]),
        )

    def _descriptor(self, part: Field) -> Descriptor:
        shape: list[int] = []
        dtype, layout = "FLOAT", "ND"
        origin: tuple[int, ...] | None = None
        for own in fields(self._data, part.begin, part.end, self._source):
            if own.number == 2 and own.wire != LENGTH:
                dtype = DTYPES.get(own.value, "FLOAT")
            elif own.number == 3 and own.wire == LENGTH:
                for size in fields(self._data, own.begin, own.end, self._source):
                    shape += numbers(self._data, size, self._source) if size.number == 1 else []
            elif own.number == 4 and own.wire == LENGTH:
                layout = text(self._data, own)
            elif own.number == 5 and own.wire == LENGTH:
                name, value = self._entry(own)
                origin = value if name == "origin_shape" and isinstance(value, tuple) else origin
        if len(shape) > MOST_DIMENSIONS:
            raise MalformedInputError(f"{self._source}: a tensor of {len(shape)} dimensions", allowed=f"up to {MOST_DIMENSIONS}")
        return Descriptor(shape=tuple(shape), dtype=dtype, layout=layout, origin=origin)

    def _entry(self, part: Field) -> tuple[str, Attribute | None]:
        """An entry of an attribute map: its name and a number, text or list of integers; None for what nobody here reads."""
        name = ""
        value: Attribute | None = None
        for own in fields(self._data, part.begin, part.end, self._source):
            if own.number == 1 and own.wire == LENGTH:
                name = text(self._data, own)
            elif own.number == 2 and own.wire == LENGTH:
                value = self._value(own)
        return name, value

    def _value(self, part: Field) -> Attribute | None:
        for own in fields(self._data, part.begin, part.end, self._source):
            if own.number == 2 and own.wire == LENGTH:
                return text(self._data, own)
            if own.number in (3, 15) and own.wire != LENGTH:
                return signed(own.value)
            if own.number == 4 and own.wire != LENGTH:
                return single(own.value)
            if own.number == 5 and own.wire != LENGTH:
                return bool(own.value)
            if own.number == 1 and own.wire == LENGTH:
                return self._integers(own)
        return None

    def _integers(self, part: Field) -> tuple[int, ...]:
        found: list[int] = []
        for own in fields(self._data, part.begin, part.end, self._source):
            if own.number == 3:
                found += numbers(self._data, own, self._source)
        return tuple(found)


def model_def_bytes(model: StoredModel) -> bytes:
    """The message of a model."""
    return bytes_field(1, model.name) + number_field(2, 1) + b"".join(bytes_field(7, _graph_bytes(graph)) for graph in model.graphs)


def _graph_bytes(graph: StoredGraph) -> bytes:
    return bytes_field(1, graph.name) + b"".join(
        bytes_field(6, _operator_bytes(operator, number)) for number, operator in enumerate(graph.operators)
    )


def _operator_bytes(operator: StoredOperator, number: int) -> bytes:
    parts = [bytes_field(1, operator.name), bytes_field(2, operator.type)]
    parts += [bytes_field(5, name) for name in operator.inputs]
    parts += [bytes_field(10, _entry_bytes(name, value)) for name, value in operator.attributes.items()]
    parts += [number_field(21, number), number_field(22, operator.stream)]
    if operator.workspace_bytes:
        parts.append(packed_field(31, operator.workspace_bytes))
    if operator.constants:
        parts.append(packed_field(32, map(int, operator.constants)))
    parts += [bytes_field(33, _descriptor_bytes(descriptor)) for descriptor in operator.input_descriptors]
    parts += [bytes_field(34, _descriptor_bytes(descriptor)) for descriptor in operator.output_descriptors]
    parts += [bytes_field(35, name) for name in operator.subgraphs]
    return b"".join(parts)


def _descriptor_bytes(descriptor: Descriptor) -> bytes:
    parts = [
        number_field(2, CODES.get(descriptor.dtype, 1)),
        bytes_field(3, packed_field(1, descriptor.shape)),
        bytes_field(4, descriptor.layout),
    ]
    if descriptor.origin is not None:
        parts.append(bytes_field(5, _entry_bytes("origin_shape", descriptor.origin)))
    return b"".join(parts)


def _entry_bytes(name: str, value: Attribute) -> bytes:
    if isinstance(value, bool):
        payload = number_field(5, int(value))
    elif isinstance(value, int):
        payload = number_field(3, value)
    elif isinstance(value, str):
        payload = bytes_field(2, value)
    elif isinstance(value, tuple):
        payload = bytes_field(1, packed_field(3, value) + number_field(20, 2))
    else:
        payload = bytes_field(2, repr(value))
    return bytes_field(1, name) + bytes_field(2, payload)
