"""Read an offline model: header, partitions, operators with shapes and streams, and the graph that is simulated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kb.errors import ContentError, MalformedInputError
from kb.profile.simulated.graph import ELEMENT_BYTES
from kb.profile.simulated.graph_file import FORMAT, GraphFile, OperatorSpec, TensorSpec, checked
from kb.profile.simulated.om.layout import (
    FLOW_SUBMODEL,
    MARK,
    MODEL_DEF,
    UNNAMED,
    Header,
    Partition,
    family_in,
    read_header,
    read_partitions,
)
from kb.profile.simulated.om.model_def import Descriptor, StoredGraph, StoredModel, StoredOperator, read_model_def
from kb.profile.simulated.wire import Data

DEEPEST: Final = 4
"""Models inside flow models."""
_NOT_RUN: Final = ("Data", "RefData", "Const", "Constant", "NetOutput", "AnnData", "Variable", "FileConstant", "NoOp", "End")
_VIEWS: Final = (
    "Reshape",
    "ExpandDims",
    "Squeeze",
    "Unsqueeze",
    "SqueezeV2",
    "UnsqueezeV2",
    "FlattenV2",
    "Flatten",
    "Bitcast",
    "Identity",
    "ReFormat",
)
_CONTROL: Final = (
    "If",
    "While",
    "Case",
    "StatelessIf",
    "StatelessWhile",
    "StatelessCase",
    "For",
    "StreamSwitch",
    "StreamActive",
    "LabelSwitch",
)
_CALLS: Final = ("PartitionedCall", "StatefulPartitionedCall")
_WEIGHTS: Final = ("Const", "Constant", "FileConstant", "Variable")


class OmModel(msgspec.Struct, frozen=True, kw_only=True):
    """What was read. ``models`` are those of a flow model's parts too; ``streams`` the streams operators run on."""

    header: Header
    partitions: tuple[Partition, ...]
    models: tuple[StoredModel, ...]
    source: str

    @property
    def operators(self) -> tuple[StoredOperator, ...]:
        """Operators of all graphs in stored order."""
        return tuple(operator for model in self.models for graph in model.graphs for operator in graph.operators)

    @property
    def streams(self) -> tuple[int, ...]:
        """Stream ids in use."""
        return tuple(sorted({operator.stream for operator in self.operators if operator.stream >= 0}))

    @property
    def graph(self) -> GraphFile:
        """The kernels of the model. Raises ContentError for control flow, missing shapes, or a graph that is cyclic."""
        return _Builder(self).graph()


def read_om(data: Data, source: str) -> OmModel:
    """The model. Offsets and sizes are hostile until checked: raises MalformedInputError for anything out of place."""
    header = read_header(data, 0, len(data), source)
    partitions, models = _read(data, 0, len(data), source, 0)
    if not models:
        raise MalformedInputError(f"{source}: no model definition inside", do="convert the model again")
    return OmModel(header=header, partitions=partitions, models=models, source=source)


def _read(data: Data, begin: int, end: int, source: str, depth: int) -> tuple[tuple[Partition, ...], tuple[StoredModel, ...]]:
    if depth > DEEPEST:
        raise MalformedInputError(f"{source}: models inside models, more than {DEEPEST} deep")
    header = read_header(data, begin, end, source)
    partitions = read_partitions(data, begin, end, header, source)
    models: list[StoredModel] = []
    for part in partitions:
        if part.type == MODEL_DEF and part.end > part.begin:
            models.append(read_model_def(data, part.begin, part.end, source))
        elif part.type == FLOW_SUBMODEL and part.end > part.begin:
            models += _read(data, part.begin, part.end, source, depth + 1)[1]
    return partitions, tuple(models)


class _Builder:
    """The graph of a model while its operators are walked."""

    def __init__(self, model: OmModel) -> None:
        self._model, self._source = model, model.source
        self._tensors: dict[str, TensorSpec] = {}
        self._operators: list[OperatorSpec] = []
        self._views = 0
        self._inputs: list[TensorSpec] = []
        self._streams: set[int] = set()

    def graph(self) -> GraphFile:
        """All of it."""
        for number, model in enumerate(self._model.models):
            called = {graph.name: graph for graph in model.graphs[1:]}
            for graph in model.graphs[:1]:
                self._walk(graph, called, f"m{number}/" if number else "", 0)
        if not self._operators:
            raise ContentError(f"{self._source}: no operator of this model runs on the device", do="give a model with kernels")
        first = next((spec.shape for spec in self._inputs), ())
        made = GraphFile(
            format=FORMAT,
            name=Path(self._source).stem,
            type=family_in(self._model.header) or _family(self._operators),
            batch=first[0] if len(first) > 1 else 1,
            input_bytes=sum(math.prod(spec.shape) * ELEMENT_BYTES[spec.dtype] for spec in self._inputs),
            streams=max(1, len(self._streams)),
            views=self._views,
            tensors=tuple(self._tensors.values()),
            operators=tuple(self._operators),
        )
        return checked(made, self._source)

    def _walk(self, graph: StoredGraph, called: dict[str, StoredGraph], prefix: str, depth: int) -> None:
        if depth > DEEPEST:
            raise ContentError(f"{self._source}: {graph.name} calls itself or nests more than {DEEPEST} graphs")
        for operator in self._ordered(graph):
            label = f"{operator.type} {operator.name!r}"
            if operator.type in _CONTROL:
                raise ContentError(
                    f"{self._source}: {label} is control flow that depends on data",
                    allowed="models whose operators are fixed before the run",
                    do="convert the model without it, or profile it on a device",
                )
            if operator.type in _CALLS:
                for name in operator.subgraphs:
                    if name in called:
                        self._walk(called[name], called, f"{prefix}{operator.name}/", depth + 1)
            elif operator.type in _NOT_RUN:
                self._source_of(operator, prefix, fed=depth == 0)
            else:
                self._kernel(operator, prefix, label)

    def _ordered(self, graph: StoredGraph) -> Iterator[StoredOperator]:
        """Operators after those they read, in stored order where that is one. Raises ContentError for a cycle."""
        by_name = {operator.name: operator for operator in graph.operators}
        done: set[str] = set()
        for root in graph.operators:
            if root.name in done:
                continue
            open_: list[tuple[StoredOperator, Iterator[str]]] = [(root, iter(_makers(root)))]
            inside = {root.name}
            while open_:
                operator, makers = open_[-1]
                maker = next((name for name in makers if name in by_name and name not in done), None)
                if maker is None:
                    open_.pop()
                    inside.discard(operator.name)
                    done.add(operator.name)
                    yield operator
                elif maker in inside:
                    raise ContentError(f"{self._source}: the graph is cyclic: {operator.name} and {maker} wait for each other")
                else:
                    inside.add(maker)
                    open_.append((by_name[maker], iter(_makers(by_name[maker]))))

    def _source_of(self, operator: StoredOperator, prefix: str, *, fed: bool) -> None:
        """Inputs and weights: values nobody makes on the device. Inputs of a called graph are not ``fed`` from the host."""
        self._views += 1
        for number, descriptor in enumerate(operator.output_descriptors):
            if operator.type == "NetOutput" or 0 in _shape(descriptor):
                continue
            spec = self._spec(f"{prefix}{operator.name}:{number}", descriptor, operator, weight=operator.type in _WEIGHTS)
            self._tensors[spec.name] = spec
            if fed and operator.type in ("Data", "AnnData"):
                self._inputs.append(spec)

    def _kernel(self, operator: StoredOperator, prefix: str, label: str) -> None:
        inputs = list(self._operands(operator, prefix))
        outputs = []
        for number, descriptor in enumerate(operator.output_descriptors):
            if 0 in _shape(descriptor):
                continue
            name = f"{prefix}{operator.name}:{number}"
            spec = self._spec(name, descriptor, operator, weight=False)
            if operator.type in _VIEWS and inputs and number == 0:
                owner = self._tensors[inputs[0]]
                spec = msgspec.structs.replace(spec, storage=owner.storage or owner.name, weight=owner.weight)
            if name in self._tensors:
                raise ContentError(f"{self._source}: two operators are named {operator.name!r}")
            self._tensors[name] = spec
            outputs.append(name)
        if operator.type in _VIEWS:
            self._views += 1
            return
        if not outputs and not inputs:
            raise ContentError(f"{self._source}: {label} has no shapes", do="convert the model with fixed input shapes")
        attributes = {name: value for name, value in operator.attributes.items() if name in _READ}
        if operator.stream >= 0:
            self._streams.add(operator.stream)
        name = "" if operator.name.startswith(UNNAMED) and self._model.header.info.startswith(MARK) else operator.name
        self._operators.append(OperatorSpec(operator.type, tuple(inputs), tuple(outputs), name, attributes))

    def _operands(self, operator: StoredOperator, prefix: str) -> Iterator[str]:
        """Operands by name; one whose maker is unknown (a weight inside the operator) is a tensor of its own."""
        sources = [name for name in operator.inputs if name and not name.endswith(":-1")]
        for number, descriptor in enumerate(operator.input_descriptors):
            if 0 in _shape(descriptor):
                continue
            maker = f"{prefix}{sources[number]}" if number < len(sources) else ""
            constant = number < len(operator.constants) and operator.constants[number]
            name = maker if maker in self._tensors else f"{prefix}{operator.name}/in{number}"
            own = self._spec(name, descriptor, operator, weight=constant or not maker)
            stored = self._tensors.get(name)
            if stored is None:
                self._tensors[name] = own
            elif stored.shape != own.shape or stored.dtype != own.dtype:
                name = f"{prefix}{operator.name}/view{number}"
                self._tensors[name] = msgspec.structs.replace(own, name=name, storage=stored.storage or stored.name, weight=stored.weight)
            yield name

    def _spec(self, name: str, descriptor: Descriptor, operator: StoredOperator, *, weight: bool) -> TensorSpec:
        shape = _shape(descriptor)
        if any(size < 0 for size in shape):
            raise ContentError(
                f"{self._source}: {operator.type} {operator.name!r} has a dimension that is only known at run time: {list(shape)}",
                allowed="fixed shapes",
                do="convert the model with fixed input shapes",
            )
        return TensorSpec(name, shape, descriptor.dtype, weight)


_READ: Final = (
    "groups", "head_num", "heads", "queries", "keys", "width", "causal", "backward", "dropped", "batch", "m", "k", "n", "transposed",
    "right_transposed", "fractal", "transpose_x1", "transpose_x2",
)  # fmt: skip


def _shape(descriptor: Descriptor) -> tuple[int, ...]:
    return descriptor.origin if descriptor.origin is not None and all(size > 0 for size in descriptor.origin) else descriptor.shape


def _makers(operator: StoredOperator) -> Sequence[str]:
    return [name.rpartition(":")[0] for name in operator.inputs if ":" in name and not name.endswith(":-1")]


def _family(operators: Sequence[OperatorSpec]) -> str:
    return "cnn" if any("Conv" in operator.op_type for operator in operators) else "unknown"
