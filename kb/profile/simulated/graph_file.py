"""A model as a neutral graph: what every reader of model files returns, what the JSON form holds, and what is simulated.

The JSON schema is ``graph_file.schema.json`` beside this module (a test compares the two).
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from kb.errors import ContentError, MalformedInputError

FORMAT: Final = "kb-graph/1"
MOST_ELEMENTS: Final = 1 << 40
"""Elements of the largest tensor anybody means."""
MOST_PACKED: Final = 64 << 20
"""B of a graph a session may carry."""
Phase = Literal["training", "inference", "prefill", "decode"]
Attribute = int | float | bool | str | tuple[int, ...]


class TensorSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A value: ``dtype`` in Ascend's spelling. ``weight``: lives for the whole run. ``storage`` names the tensor whose
    memory this one is a view of."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "FLOAT16"
    weight: bool = False
    storage: str = ""


class OperatorSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A kernel by the names of its tensors. ``attributes`` may give what shapes alone do not: ``groups`` of a convolution,
    ``heads``, ``queries``, ``keys``, ``width``, ``causal`` of attention, ``batch``, ``m``, ``k``, ``n`` of a product."""

    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    name: str = ""
    attributes: Mapping[str, Attribute] = {}


class GraphFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One step of a model. ``operators`` in launch order; the segment runs ``repeats`` times a step.

    ``streams``: streams the source puts its operators on. ``type`` is the model family (cnn, llm, ..). ``precision``: the element
    type floats are compiled to unless the run says otherwise ("" = as stored). ``views`` counts the operators of the source that
    cost nothing (reshapes, constants). ``left_out`` names what of the source is not in here.
    """

    format: Literal["kb-graph/1"]
    name: str
    type: str = "unknown"
    phase: Phase = "inference"
    batch: int = 1
    repeats: int = 1
    host_work: bool = False
    input_bytes: int = 0
    streams: int = 1
    precision: Literal["", "fp16", "bf16", "fp32"] = ""
    views: int = 0
    left_out: tuple[str, ...] = ()
    tensors: tuple[TensorSpec, ...]
    operators: tuple[OperatorSpec, ...]


def graph_bytes(graph: GraphFile) -> bytes:
    """The JSON form, indented."""
    return msgspec.json.format(msgspec.json.encode(graph), indent=1)


def graph_from(data: bytes, source: str) -> GraphFile:
    """The graph of a JSON file, checked. Raises ContentError naming the field or tensor that does not fit."""
    try:
        graph = msgspec.json.decode(data, type=GraphFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ContentError(
            f"{source} is not a graph: {error}", allowed=f"JSON with format {FORMAT!r}", do="see docs/simulator.md for an example"
        ) from error
    return checked(graph, source)


def checked(graph: GraphFile, source: str) -> GraphFile:
    """``graph`` itself. Raises ContentError for an empty graph, an unknown tensor, an impossible shape, or a cycle."""
    known: dict[str, TensorSpec] = {}
    for spec in graph.tensors:
        if spec.name in known:
            raise ContentError(f"{source}: two tensors are named {spec.name!r}", do="give every tensor its own name")
        known[spec.name] = spec
        _check_shape(spec, source)
    if not graph.operators:
        raise ContentError(f"{source}: no operators", do="a graph needs at least one kernel")
    if min(graph.repeats, graph.batch, graph.streams) < 1 or graph.input_bytes < 0:
        raise ContentError(f"{source}: repeats, batch or input_bytes or streams is impossible", allowed="counts from 1, bytes from 0 up")
    for spec in graph.tensors:
        if spec.storage and (spec.storage not in known or known[spec.storage].storage):
            raise ContentError(
                f"{source}: {spec.name} is a view of {spec.storage!r}, which is no tensor of its own",
                do="name the tensor that owns the memory",
            )
    _check_order(graph, known, source)
    return graph


def _check_shape(spec: TensorSpec, source: str) -> None:
    elements = 1
    for size in spec.shape:
        if size < 1:
            raise ContentError(f"{source}: {spec.name} has dimension {size}", allowed="whole numbers from 1 up", do="give a real shape")
        elements *= size
    if elements > MOST_ELEMENTS:
        raise ContentError(f"{source}: {spec.name} has {elements} elements", allowed=f"up to {MOST_ELEMENTS}")


def _check_order(graph: GraphFile, known: Mapping[str, TensorSpec], source: str) -> None:
    """Every tensor exists, and nobody reads what only a later operator makes (so no cycle either)."""
    makers: dict[str, int] = {}
    for place, operator in enumerate(graph.operators):
        for name in (*operator.inputs, *operator.outputs):
            if name not in known:
                raise ContentError(
                    f"{source}: operator {place} ({operator.op_type}) uses {name!r}, which is no tensor", do="list it in tensors"
                )
        for name in operator.outputs:
            makers.setdefault(name, place)
    for place, operator in enumerate(graph.operators):
        late = next((name for name in operator.inputs if makers.get(name, -1) > place), None)
        if late is not None:
            raise ContentError(
                f"{source}: operator {place} ({operator.op_type}) reads {late!r}, which operator {makers[late]} makes later: "
                "the order is wrong or the graph is cyclic",
                do="list operators in launch order",
            )


def packed(graph: GraphFile) -> str:
    """The graph as short text, for a session to carry."""
    return base64.b85encode(zlib.compress(msgspec.json.encode(graph), 6)).decode()


def unpacked(text: str, source: str) -> GraphFile:
    """The graph back. Raises MalformedInputError for text that is none."""
    try:
        unzip = zlib.decompressobj()
        data = unzip.decompress(base64.b85decode(text), MOST_PACKED)
    except (ValueError, zlib.error) as error:
        raise MalformedInputError(f"{source}: the graph it carries is damaged: {error}", do="collect the model again") from error
    if unzip.unconsumed_tail:
        raise MalformedInputError(f"{source}: the graph it carries is larger than {MOST_PACKED} bytes", do="collect the model again")
    return graph_from(data, source)
