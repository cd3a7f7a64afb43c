"""Operators of an ONNX model as the kernels a graph compiler makes of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from kb.errors import ContentError, MalformedInputError
from kb.profile.simulated.graph import ELEMENT_BYTES
from kb.profile.simulated.graph_file import FORMAT, Attribute, GraphFile, OperatorSpec, TensorSpec, checked
from kb.profile.simulated.onnx.binding import NOTHING, Given
from kb.profile.simulated.onnx.inference import Inferred, Resolved, inferred
from kb.profile.simulated.onnx.reading import parse_model
from kb.profile.simulated.onnx.shape_rules import packed_attention
from kb.profile.simulated.onnx.values import Value
from kb.profile.simulated.wire import Data

_MOST_STEPS: Final = 1024
"""Steps of a recurrent layer with kernels of their own; longer ones share them."""


def graph_of_onnx(data: Data, source: str, given: Given = NOTHING) -> GraphFile:
    """The model as one step on the device. Floats are compiled to FP16 unless the run says otherwise, as the vendor's compiler
    does for inference; batch normalisation behind a convolution is folded into it.

    Raises MalformedInputError for bytes that are no model, UsageError for missing sizes, ContentError for a model that cannot
    be simulated (control flow on data, unknown shapes, cycles).
    """
    try:
        model = parse_model(data, source)
    except RecursionError as error:
        raise MalformedInputError(f"{source}: graphs nested too deeply") from error
    found = inferred(model, data, given, source)
    builder = _Builder(found)
    for step in found.steps:
        builder.add(step)
    if not builder.operators:
        raise ContentError(f"{source}: nothing is left to run: every result is known before", do="give the model an input")
    first = found.values[found.inputs[0]].shape if found.inputs else ()
    graph = GraphFile(
        format=FORMAT,
        name=Path(source).stem,
        type=_family(builder.operators),
        batch=first[0] if len(first) > 1 else 1,
        input_bytes=sum(math.prod(found.values[name].shape) * ELEMENT_BYTES[found.values[name].dtype] for name in found.inputs),
        precision="fp16",
        views=found.free + builder.folded,
        left_out=(),
        tensors=tuple(builder.tensors.values()),
        operators=tuple(builder.operators),
    )
    return checked(graph, source)


def _family(operators: Sequence[OperatorSpec]) -> str:
    types = {operator.op_type for operator in operators}
    if any("Conv" in op_type for op_type in types):
        return "cnn"
    return "encoder" if "SoftmaxV2" in types or "FlashAttentionScore" in types else "unknown"


class _Builder:
    """Kernels and tensors of a graph while they are collected."""

    def __init__(self, found: Inferred) -> None:
        self._found = found
        self.tensors: dict[str, TensorSpec] = {}
        self.operators: list[OperatorSpec] = []
        self.folded = 0
        self._readers = Counter(name for step in found.steps for name in {entry[1].owner for entry in step.inputs if entry is not None})
        self._stored: dict[str, str] = {}

    def add(self, step: Resolved) -> None:
        """The kernels of one operator."""
        if self._folds(step):
            self.folded += 1
            return
        rule = step.translation.shape if step.translation else ""
        special: dict[str, Callable[[Resolved], None]] = {"recurrent": self._recurrent, "gemm": self._product, "matmul": self._product}
        special.get(rule, self._plain)(step)

    def _folds(self, step: Resolved) -> bool:
        """Whether a batch normalisation goes into the convolution before it: the only reader of its result."""
        if step.node.op_type != "BatchNormalization" or not self.operators or step.inputs[0] is None:
            return False
        before, own = self.operators[-1], self._tensor(step.inputs[0])
        if "Conv" not in before.op_type or before.outputs[0] != own or self._readers[step.inputs[0][1].owner] != 1:
            return False
        self._stored[step.outputs[0][1].owner] = own
        return True

    def _tensor(self, entry: tuple[str, Value]) -> str:
        """The tensor of a value: itself, or a view of the memory it shares."""
        name, value = entry
        owner = self._stored.get(value.owner, value.owner)
        shape = value.shape
        if owner not in self.tensors:
            base = self._found.values.get(owner, value)
            shown = base if base.elements == value.elements else value
            self.tensors[owner] = TensorSpec(owner, shown.shape, shown.dtype, value.constant and owner not in self._found.inputs)
        stored = self.tensors[owner]
        if stored.shape == shape and stored.dtype == value.dtype:
            return owner
        view = name if name != owner else f"{owner}'"
        if view not in self.tensors:
            self.tensors[view] = TensorSpec(view, shape, value.dtype, stored.weight, owner)
        return view

    def _operands(self, step: Resolved) -> list[str]:
        limit = step.translation.data if step.translation and step.translation.data >= 0 else len(step.inputs)
        return [self._tensor(entry) for entry in step.inputs[:limit] if entry is not None and entry[1].elements > 0]

    def _results(self, step: Resolved) -> tuple[str, ...]:
        return tuple(self._tensor(entry) for entry in step.outputs if entry[1].elements > 0)

    def _plain(self, step: Resolved) -> None:
        op_type = step.translation.ascend if step.translation else step.node.op_type
        attributes: dict[str, Attribute] = {}
        if "Conv" in op_type:
            attributes["groups"] = max(1, step.node.integer("group", 1))
        if step.node.op_type == "QLinearConv":
            self._emit(step, op_type, self._picked(step, (0, 3)), attributes)
            return
        if step.node.op_type == "QLinearMatMul":
            self._emit(step, op_type, self._picked(step, (0, 3)), attributes)
            return
        if step.node.op_type == "Resize" and step.node.text("mode", "nearest") == "nearest":
            op_type = "ResizeNearestNeighborV2"
        if packed_attention(step.node):
            self._packed_attention(step)
            return
        if op_type == "FlashAttentionScore":
            attributes |= self._heads(step)
        if step.node.op_type == "Einsum":
            self._einsum(step)
            return
        self._emit(step, op_type, self._operands(step), attributes)

    def _packed_attention(self, step: Resolved) -> None:
        """The product with the weights of queries, keys and values, then attention over its result."""
        x, weight = step.inputs[0], step.inputs[1]
        if x is None or weight is None:
            raise ContentError(f"{step.node.label} lacks its weights", do="check the model")
        batch, tokens, hidden = x[1].shape
        wide = weight[1].shape[-1]
        heads = max(1, step.node.integer("num_heads", 1))
        joined = self._own(f"{step.outputs[0][0]}/qkv", (batch, tokens, wide), x[1].dtype)
        product: dict[str, Attribute] = {"batch": 1, "m": batch * tokens, "k": hidden, "n": wide}
        self.operators.append(OperatorSpec("MatMulV3", (self._tensor(x), self._tensor(weight)), (joined,), step.node.name, product))
        sizes: dict[str, Attribute] = {"heads": batch * heads, "queries": tokens, "keys": tokens, "width": max(1, wide // 3 // heads)}
        parts = [self._own(f"{joined}/{part}", (batch, tokens, wide // 3), x[1].dtype, owner=joined) for part in "qkv"]
        self._emit(step, "FlashAttentionScore", parts, sizes)

    def _picked(self, step: Resolved, places: Sequence[int]) -> list[str]:
        entries = [step.inputs[place] for place in places if place < len(step.inputs)]
        return [self._tensor(entry) for entry in entries if entry is not None]

    def _heads(self, step: Resolved) -> dict[str, Attribute]:
        heads = step.node.integer("num_heads", 0) or step.node.integer("q_num_heads", 0)
        return {"heads": heads} if heads else {}

    def _emit(self, step: Resolved, op_type: str, operands: Sequence[str], attributes: dict[str, Attribute]) -> None:
        self.operators.append(OperatorSpec(op_type, tuple(operands), self._results(step), step.node.name, attributes))

    def _product(self, step: Resolved) -> None:
        """A product of matrices; with a batch on the right it is a batched one."""
        left, right = step.inputs[0], step.inputs[1]
        if left is None or right is None:
            return
        transposed = bool(step.node.integer("transA", 0))
        batched = len(right[1].shape) > 2 and math.prod(right[1].shape[:-2]) > 1
        k = left[1].shape[0] if transposed else left[1].shape[-1]
        out = step.outputs[0][1]
        n = right[1].shape[-2 if step.node.integer("transB", 0) else -1] if len(right[1].shape) > 1 else 1
        rows = max(1, out.elements // n)
        batch = math.prod(out.shape[:-2]) if batched else 1
        sizes: dict[str, Attribute] = {"batch": batch, "m": max(1, rows // batch), "k": k, "n": n}
        flags = {
            name: True for name, here in (("transposed", transposed), ("right_transposed", bool(step.node.integer("transB", 0)))) if here
        }
        base = step.translation.ascend if step.translation else "MatMulV3"
        op_type = "BatchMatMulV3" if batched and base == "MatMulV3" else base
        places = [entry for entry in step.inputs[:3] if entry is not None and entry[1].elements > 0]
        self._emit(step, op_type, [self._tensor(entry) for entry in places], {**sizes, **flags})

    def _einsum(self, step: Resolved) -> None:
        """A contraction of two operands as the batched product it is; of one or many operands by the bytes it moves."""
        terms, _, result = step.node.text("equation").replace(" ", "").partition("->")
        first, *others = terms.split(",")
        if len(others) != 1 or step.inputs[0] is None or step.inputs[1] is None:
            self._emit(step, "Einsum", self._operands(step), {})
            return
        second = others[0]
        sizes = dict(zip(first, step.inputs[0][1].shape, strict=False)) | dict(zip(second, step.inputs[1][1].shape, strict=False))

        def extent(letters: set[str]) -> int:
            return math.prod(sizes[letter] for letter in letters)

        a, b, out = set(first), set(second), set(result)
        extents: dict[str, Attribute] = {
            "batch": extent(a & b & out),
            "m": extent((a - b) & out),
            "k": extent((a & b) - out),
            "n": extent((b - a) & out),
        }
        self._emit(step, "BatchMatMulV3", self._operands(step), extents)

    def _recurrent(self, step: Resolved) -> None:
        """The product over all steps, then for every step its own small product and the gates."""
        x, weight, again = (step.inputs[place] for place in range(3))
        if x is None or weight is None or again is None:
            raise ContentError(f"{step.node.label} lacks its weights", do="check the model with onnx.checker")
        directions, gates, width = weight[1].shape
        if step.node.op_type == "DynamicQuantizeLSTM":  # its weights lie the other way round
            gates, width = width, gates
        first, second, _ = x[1].shape
        steps, batch = (second, first) if step.node.integer("layout", 0) else (first, second)
        hidden = step.outputs[0][1].shape[-1]
        base = step.node.outputs[0] or step.outputs[0][0]
        floats = x[1].dtype
        all_gates = self._own(f"{base}/gates", (steps * batch, directions * gates), floats)
        product: dict[str, Attribute] = {"batch": directions, "m": steps * batch, "k": width, "n": gates}
        self.operators.append(OperatorSpec("MatMulV3", (self._tensor(x), self._tensor(weight)), (all_gates,), step.node.name, product))
        count = min(steps, _MOST_STEPS)
        each = -(-steps // count)
        state = self._own(f"{base}/state0", (directions * batch, hidden), floats)
        for number in range(count):
            part = self._own(f"{base}/part{number}", (directions * batch * each, gates), floats)
            inner: dict[str, Attribute] = {"batch": directions * each, "m": batch, "k": hidden, "n": gates}
            self.operators.append(OperatorSpec("MatMulV3", (state, self._tensor(again)), (part,), step.node.name, inner))
            last = number + 1 == count
            state = self._own(f"{base}/state{number + 1}", (directions * batch, hidden), floats)
            results = (state, *self._results(step)) if last else (state,)
            op_type = step.translation.ascend if step.translation else "DynamicRNN"
            self.operators.append(OperatorSpec(f"{op_type}SigmoidTanh", (part, all_gates), results, step.node.name))

    def _own(self, name: str, shape: tuple[int, ...], dtype: str, *, owner: str = "") -> str:
        self.tensors[name] = TensorSpec(name, shape, dtype, storage=owner)
        return name
