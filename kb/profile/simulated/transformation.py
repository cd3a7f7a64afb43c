"""Needless kernels in a graph, as real programs contain them: casts, changes of layout, work done twice."""

from __future__ import annotations

from collections.abc import Iterator

from kb.profile.simulated.graph import CubeOperator, Elementwise, Graph, Operator, Rearrangement, Tensor, tensor
from kb.profile.simulated.options import Options

_FIRST_ID = 10_000_000
"""Values added here are numbered from this on, away from the model's own."""


def transformed(graph: Graph, options: Options) -> Graph:
    """The graph with what ``options`` add beside every so many-th product; the same graph when they add nothing."""
    if not (options.extra_casts or options.layout_conversions or options.duplicates):
        return graph
    operators: list[Operator] = []
    moved = {}
    products, fresh = 0, _FIRST_ID
    for place, operator in enumerate(graph.operators):
        moved[place] = len(operators)
        operators.append(operator)
        if isinstance(operator, CubeOperator):
            products += 1
            for added in _beside(operator, products, options, fresh):
                operators.append(added)
                fresh += 2
    return Graph(tuple(operators), tuple(moved[place] for place in graph.joins if place in moved))


def _beside(operator: CubeOperator, number: int, options: Options, fresh: int) -> Iterator[Operator]:
    result = operator.outputs[0]
    if options.extra_casts and number % options.extra_casts == 0:
        yield from _there_and_back("Cast", result, fresh, "FLOAT")
    if options.layout_conversions and number % options.layout_conversions == 0:
        yield from _there_and_back("TransData", result, fresh + 10, result.dtype)
    if options.duplicates and number % options.duplicates == 0:
        yield operator


def _there_and_back(op_type: str, value: Tensor, fresh: int, dtype: str) -> Iterator[Operator]:
    kind = Elementwise if op_type == "Cast" else Rearrangement
    other = tensor(fresh, value.shape, dtype)
    yield kind(op_type, (value,), (other,))
    yield kind(op_type, (other,), (value,))
