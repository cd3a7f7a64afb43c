"""What a graph compiler does to a model file's kernels: fusion of attention and of elementwise chains, quantised products."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from kb.profile.simulated.constants import Constants
from kb.profile.simulated.graph import CubeOperator, Elementwise, FlashAttention, Graph, MatMul, Operator, Tensor, VectorOperator, tensor
from kb.profile.simulated.options import Options

_FIRST_ID: Final = 20_000_000
_CHAINED: Final = ("elementwise", "activation", "cast")
_FREE_BETWEEN: Final = ("elementwise", "cast", "format", "row")
_LONGEST_GAP: Final = 6
"""Kernels between the first product of an attention and its softmax, or from there to the second product."""


def compiled(graph: Graph, options: Options, constants: Constants) -> Graph:
    """The graph with the fusions and the precision that ``options`` ask for."""
    operators = list(graph.operators)
    if options.fused_attention:
        operators = _attention_fused(operators, constants)
    if options.fused_elementwise:
        operators = _chains_fused(operators, constants)
    if options.precision == "int8":
        operators = _quantised(operators)
    return Graph(tuple(operators))


def _attention_fused(operators: list[Operator], constants: Constants) -> list[Operator]:
    """Product, softmax, product (with scales, masks and casts between) as one kernel, where nobody else reads the scores."""
    readers = _readers(operators)
    made: list[Operator] = []
    place = 0
    while place < len(operators):
        found = _attention_at(operators, place, readers, constants)
        if found is None:
            made.append(operators[place])
            place += 1
        else:
            kernel, place = found
            made.append(kernel)
    return made


def _attention_at(
    operators: Sequence[Operator], place: int, readers: Counter[int], constants: Constants
) -> tuple[FlashAttention, int] | None:
    """The fused kernel that begins at ``place`` and the place after it; None where the pattern does not."""
    first = operators[place]
    if not isinstance(first, MatMul) or any(value.weight for value in first.inputs):
        return None
    flow, normalised = first.outputs[0], False
    extra: list[Tensor] = []
    for step in range(place + 1, min(place + 1 + 2 * _LONGEST_GAP, len(operators))):
        operator = operators[step]
        if flow.id not in {value.id for value in operator.inputs} or readers[flow.id] > 1:
            return None
        if isinstance(operator, MatMul):
            return (_fused(first, operator, flow, extra), step + 1) if normalised and operator.inputs[0].id == flow.id else None
        if constants.kinetics(operator.op_type).kind not in _FREE_BETWEEN or operator.outputs[0].elements != flow.elements:
            return None
        normalised = normalised or "oftmax" in operator.op_type
        extra += [value for value in operator.inputs if value.id != flow.id]
        flow = operator.outputs[0]
    return None


def _fused(first: MatMul, second: MatMul, scores: Tensor, extra: Sequence[Tensor]) -> FlashAttention:
    values = next(value for value in second.inputs if value.id != scores.id)
    masks = tuple(value for value in extra if value.elements > 1)
    return FlashAttention(
        "FlashAttentionScore", (*first.inputs[:2], values, *masks), second.outputs, first.batch, first.m, first.n, first.k
    )


def _readers(operators: Sequence[Operator]) -> Counter[int]:
    return Counter(value.id for operator in operators for value in {value.id: value for value in operator.inputs}.values())


def _chains_fused(operators: list[Operator], constants: Constants) -> list[Operator]:
    """Neighbouring elementwise kernels, each the only reader of the one before, as one; its type is the costliest part's."""
    readers = _readers(operators)
    made: list[Operator] = []
    for operator in operators:
        before = made[-1] if made else None
        if before is not None and _follows(before, operator, readers, constants):
            made[-1] = _joined(before, operator, constants)
        else:
            made.append(operator)
    return made


def _follows(before: Operator, operator: Operator, readers: Counter[int], constants: Constants) -> bool:
    if not (isinstance(before, VectorOperator) and isinstance(operator, Elementwise)) or len(before.outputs) != 1:
        return False
    if constants.kinetics(before.op_type).kind not in _CHAINED or constants.kinetics(operator.op_type).kind not in _CHAINED:
        return False
    result = before.outputs[0]
    return result.id in {value.id for value in operator.inputs} and readers[result.id] == 1


def _joined(before: Operator, operator: Operator, constants: Constants) -> Elementwise:
    inner = before.outputs[0].id
    costliest = max((before.op_type, operator.op_type), key=lambda op_type: constants.kinetics(op_type).passes)
    others = tuple(value for value in operator.inputs if value.id != inner)
    return Elementwise(costliest, (*before.inputs, *others), operator.outputs)


def _quantised(operators: Sequence[Operator]) -> list[Operator]:
    """Products with a weight read INT8 operands; their left one is quantised by a kernel of its own."""
    made: list[Operator] = []
    for place, operator in enumerate(operators):
        if isinstance(operator, CubeOperator) and len(operator.inputs) > 1 and operator.inputs[1].weight:
            x, weight, *rest = operator.inputs
            narrow = tensor(_FIRST_ID + place, x.shape, "INT8")
            made.append(Elementwise("AscendQuantV2", (x,), (narrow,)))
            small = tensor(weight.id, weight.shape, "INT8", weight=True)
            made.append(msgspec.structs.replace(operator, inputs=(narrow, small, *rest)))
        else:
            made.append(operator)
    return made
