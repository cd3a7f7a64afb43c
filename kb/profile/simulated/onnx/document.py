"""An ONNX model as parsed: names, attributes and shapes, weights only as places in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Dimension = int | str
"""A size, or the name of a symbolic one ("" = unnamed)."""


@dataclass(frozen=True, slots=True)
class TensorRef:
    """An initialiser or constant: ``code`` is ONNX's element type. ``raw`` is where its bytes lie in the file; ``values``
    are numbers stored in fields of their own. ``external``: the data lies in another file and is never read."""

    name: str
    shape: tuple[int, ...]
    code: int
    raw: tuple[int, int] | None = None
    values: tuple[float, ...] = ()
    external: bool = False


@dataclass(frozen=True, slots=True)
class ValueInfo:
    """A declared value: element type code (0 = none) and dimensions (None = no shape given)."""

    name: str
    code: int
    shape: tuple[Dimension, ...] | None


@dataclass(frozen=True, slots=True)
class Node:
    """One operator."""

    op_type: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"{self.op_type} {self.name!r}" if self.name else f"{self.op_type} that makes {', '.join(self.outputs[:2])!r}"

    def integer(self, name: str, default: int) -> int:
        """An integer attribute."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, int) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        """A list of integers; None where it is not given."""
        value = self.attributes.get(name)
        return tuple(int(item) for item in value) if isinstance(value, tuple) else None

    def text(self, name: str, default: str = "") -> str:
        """A text attribute."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, str) else default


@dataclass(frozen=True, slots=True)
class OnnxGraph:
    """A graph or the branch of a conditional."""

    name: str
    nodes: tuple[Node, ...]
    initialisers: Mapping[str, TensorRef]
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    infos: Mapping[str, ValueInfo]


Attribute = int | float | str | tuple[int, ...] | tuple[float, ...] | TensorRef | OnnxGraph


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """The whole file. ``functions`` are operators the model defines itself."""

    graph: OnnxGraph
    opset: int
    producer: str
    functions: frozenset[str] = field(default_factory=frozenset)
