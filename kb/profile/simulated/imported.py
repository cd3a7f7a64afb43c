"""A graph file as a model of the simulator, and a built-in model as a graph file."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from kb.errors import ContentError, UsageError
from kb.profile.simulated.compilation import compiled
from kb.profile.simulated.constants import Constants, load_constants
from kb.profile.simulated.graph import ELEMENT_BYTES, Collective, CubeOperator, FlashAttention, Graph, Operator, Tensor, Workload, tensor
from kb.profile.simulated.graph_file import FORMAT, Attribute, GraphFile, OperatorSpec, TensorSpec
from kb.profile.simulated.layout import Seat
from kb.profile.simulated.lowering import lowered
from kb.profile.simulated.models.names import ModelEntry
from kb.profile.simulated.options import Options

_FLOATS: Final = ("FLOAT", "FLOAT32", "FLOAT16", "DT_BF16", "BFLOAT16", "DOUBLE")
_TYPES: Final = {"fp16": "FLOAT16", "bf16": "DT_BF16", "fp32": "FLOAT"}


def entry_of(graph: GraphFile) -> ModelEntry:
    """The model a simulation asks for; it runs on one rank."""
    return ModelEntry(graph.type, partial(_workload, graph))


def _workload(graph: GraphFile, options: Options, _seat: Seat) -> Workload:
    return workload_of(graph, options, load_constants())


def workload_of(graph: GraphFile, options: Options, constants: Constants) -> Workload:
    """One step of the graph as ``options`` compile it.

    Raises UsageError for another batch than the file's (shapes are fixed in it), ContentError for shapes that do not fit.
    """
    if options.batch != graph.batch:
        raise UsageError(
            f"{graph.name} has batch {graph.batch}, not {options.batch}",
            allowed=f"batch = {graph.batch}",
            do="collect the model again with other input shapes",
        )
    tensors = _tensors(graph, _TYPES.get(options.precision or graph.precision))
    operators = tuple(
        lowered(
            spec.op_type,
            [tensors[name] for name in spec.inputs],
            [tensors[name] for name in spec.outputs],
            spec.attributes,
            constants,
            f"{graph.name}: operator {place}{f' ({spec.name})' if spec.name else ''}",
        )
        for place, spec in enumerate(graph.operators)
    )
    return Workload(
        compiled(Graph(operators), options, constants),
        graph.repeats,
        graph.host_work,
        graph.left_out,
        phase=graph.phase,
        input_bytes=graph.input_bytes,
        names={tensors[spec.outputs[0]].id: spec.name for spec in graph.operators if spec.name and spec.outputs},
    )


def _tensors(graph: GraphFile, floats: str | None) -> dict[str, Tensor]:
    """Tensors by name; weights get negative identities, as in the built-in models. ``floats`` = the type of all floats."""
    owners: dict[str, int] = {}
    for number, spec in enumerate((spec for spec in graph.tensors if not spec.storage), start=1):
        owners[spec.name] = -number if spec.weight else number
    weights = {spec.name for spec in graph.tensors if spec.weight and not spec.storage}
    made = {}
    for spec in graph.tensors:
        dtype = floats if floats and spec.dtype in _FLOATS else spec.dtype
        if dtype not in ELEMENT_BYTES:
            raise ContentError(f"{graph.name}: {spec.name} has element type {dtype!r}", allowed=", ".join(ELEMENT_BYTES))
        owner = spec.storage or spec.name
        made[spec.name] = tensor(owners[owner], spec.shape, dtype, weight=owner in weights)
    return made


def graph_of(workload: Workload, *, name: str, family: str, batch: int) -> GraphFile:
    """A built-in model as a file. Raises UsageError when its ranks communicate: a graph file is one rank's."""
    names = _Names()
    specs = [_operator(operator, names) for operator in workload.segment.operators]
    return GraphFile(
        format=FORMAT,
        name=name,
        type=family,
        phase=workload.phase,
        batch=batch,
        repeats=workload.repeats,
        host_work=workload.host_work,
        input_bytes=workload.input_bytes,
        left_out=workload.left_out,
        tensors=tuple(names.specs.values()),
        operators=tuple(specs),
    )


class _Names:
    """Names of tensors by identity, shape and type: the first is the owner of the memory, others are views of it."""

    def __init__(self) -> None:
        self.specs: dict[tuple[int, tuple[int, ...], str], TensorSpec] = {}
        self._owners: dict[int, str] = {}
        self._views = 0

    def name(self, value: Tensor) -> str:
        """The name of a tensor, new or known."""
        key = (value.id, value.shape, value.dtype)
        found = self.specs.get(key)
        if found is None:
            owner = self._owners.get(value.id, "")
            own = f"w{-value.id}" if value.weight else f"t{value.id}"
            if owner:
                self._views += 1
                own = f"{owner}v{self._views}"
            found = self.specs[key] = TensorSpec(own, value.shape, value.dtype, value.weight, owner)
            self._owners.setdefault(value.id, found.name)
        return found.name

    def all(self, values: Iterable[Tensor]) -> tuple[str, ...]:
        """Names in order."""
        return tuple(map(self.name, values))


def _operator(operator: Operator, names: _Names) -> OperatorSpec:
    attributes: dict[str, Attribute] = {}
    match operator:
        case Collective():
            raise UsageError("a graph file holds one rank's kernels, not communication", do="leave every parallel degree at 1")
        case CubeOperator():
            attributes = {name: getattr(operator, name) for name in ("batch", "m", "k", "n")}
            attributes |= {name: True for name in ("transposed", "right_transposed", "fractal") if getattr(operator, name)}
        case FlashAttention():
            attributes = {name: getattr(operator, name) for name in ("heads", "queries", "keys", "width")}
            attributes |= {name: True for name in ("causal", "backward", "dropped") if getattr(operator, name)}
        case _:
            pass
    return OperatorSpec(operator.op_type, names.all(operator.inputs), names.all(operator.outputs), attributes=attributes)


def operator_coverage(graph: GraphFile, constants: Constants) -> tuple[int, int, tuple[str, ...]]:
    """(operators of the source that are costed or free, all operators of the source, types costed by their bytes alone)."""
    unknown = [spec.op_type for spec in graph.operators if constants.kinetics(spec.op_type).kind == "unknown"]
    total = len(graph.operators) + graph.views
    return total - len(unknown), total, tuple(sorted(set(unknown)))
