"""The backward pass and the optimizer of a recorded forward pass, as PyTorch on Ascend launches them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kb.profile.simulated.graph import (
    Collective,
    Conv2D,
    Elementwise,
    Embedding,
    FlashAttention,
    LayerNorm,
    MatMul,
    Operator,
    Rearrangement,
    Softmax,
    Tensor,
    VectorOperator,
)
from kb.profile.simulated.models.recording import Recording

GRADIENTS: Final = {
    "SwiGlu": "SwiGluGrad", "Gelu": "GeluGrad", "Swish": "SwishGrad", "Relu": "ReluGrad", "Tanh": "TanhGrad", "Sigmoid": "SigmoidGrad",
    "RotaryPositionEmbedding": "RotaryPositionEmbeddingGrad", "RmsNorm": "RmsNormGrad", "LayerNormV3": "LayerNormGradV3",
    "AddLayerNorm": "LayerNormGradV3", "AddRmsNorm": "RmsNormGrad", "MaxPoolV3": "MaxPoolV3Grad", "AvgPoolV2": "AvgPoolV2Grad",
    "BNTrainingUpdate": "BNTrainingUpdateGrad", "BNTrainingReduce": "BNTrainingReduceGrad", "Erf": "Mul", "Cos": "Mul", "Sin": "Mul",
}  # fmt: skip
PASSED_ON: Final = ("Add", "Sub", "ConcatD", "Slice")
"""Kernels whose gradient is a view or the incoming gradient itself."""


class Gradients:
    """Gradient values by tensor, for one walk back over recorded operators. ``weights`` maps a weight to its gradient."""

    def __init__(self, r: Recording, *, accumulate: bool) -> None:
        self._r = r
        self._accumulate = accumulate
        self._known: dict[int, Tensor] = {}
        self.weights: dict[int, Tensor] = {}

    def begin(self, output: Tensor) -> Tensor:
        """The gradient a backward pass starts with."""
        return self._of(output)

    def walk(self, operators: Sequence[Operator]) -> None:
        """Append the gradient kernels of ``operators``, last first."""
        for operator in reversed(operators):
            self._step(operator)

    def _of(self, x: Tensor) -> Tensor:
        found = self._known.get(x.id)
        if found is None:
            found = self._known[x.id] = self._r.like(x)
        return found

    def _step(self, operator: Operator) -> None:
        out = self._of(operator.outputs[0])
        match operator:
            case MatMul():
                self._product(operator, out)
            case Conv2D():
                self._convolution(operator, out)
            case FlashAttention():
                self._attention(operator, out)
            case Collective():
                self._known[operator.inputs[0].id] = out
                if operator.dimension in ("tp", "ep"):
                    self._r.communicate(operator.action, operator.dimension, f"{operator.tag}.grad", out)
            case Embedding():
                self._weight(
                    operator.inputs[0], self._r.vector("EmbeddingDenseGradV2", self._r.like(out, "FLOAT"), out, operator.inputs[1])
                )
            case Softmax():
                self._r.vector("SoftmaxGrad", self._of(operator.inputs[0]), out, operator.outputs[0])
            case Elementwise() | LayerNorm() | Rearrangement() | VectorOperator():
                self._vector(operator, out)

    def _product(self, operator: MatMul, out: Tensor) -> None:
        left, right = operator.inputs[:2]
        op_type, batch = operator.op_type, operator.batch
        self._r.append(MatMul(op_type, (out, right), (self._of(left),), batch, operator.m, operator.n, operator.k, right_transposed=True))
        made = self._r.like(right) if right.weight else self._of(right)
        self._r.append(MatMul(op_type, (left, out), (made,), batch, operator.k, operator.m, operator.n, transposed=True))
        if right.weight:
            self._weight(right, made)

    def _convolution(self, operator: Conv2D, out: Tensor) -> None:
        x, weight = operator.inputs[:2]
        groups, m, k, n = operator.batch, operator.m, operator.k, operator.n
        if x.id in self._known or x.shape[1] > 3:
            self._r.append(Conv2D("Conv2DBackpropInput", (out, weight), (self._of(x),), groups, m, n, k))
        made = self._r.like(weight, "FLOAT")
        self._r.append(Conv2D("Conv2DBackpropFilter", (x, out), (made,), groups, k, m, n))
        self._weight(weight, made)

    def _attention(self, operator: FlashAttention, out: Tensor) -> None:
        q, k, v = operator.inputs[:3]
        outputs = (self._of(q), self._of(k), self._of(v))
        shape = (operator.heads, operator.queries, operator.keys, operator.width, operator.causal, True)
        self._r.append(FlashAttention("FlashAttentionScoreGrad", (q, k, v, out), outputs, *shape))

    def _vector(self, operator: Operator, out: Tensor) -> None:
        x = operator.inputs[0]
        if operator.op_type in PASSED_ON:
            for source in operator.inputs:
                if not source.weight:
                    self._known.setdefault(source.id, out if source.elements == out.elements else self._r.like(source))
            return
        self._r.vector(GRADIENTS.get(operator.op_type, operator.op_type), self._of(x), out, x)

    def _weight(self, weight: Tensor, made: Tensor) -> None:
        kept = self.weights.get(weight.id)
        if kept is None:
            kept = self.weights[weight.id] = self._r.tensor(*weight.shape, dtype="FLOAT") if self._accumulate else made
        if self._accumulate:
            self._r.append(Elementwise("Add", (kept, made), (kept,)))


def optimize(r: Recording, weights: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Adam with FP32 masters over (weight, gradient): the update of each tensor and the cast back."""
    for weight, gradient in weights:
        flat = (weight.elements,)
        gradient = r.view(gradient, *flat)
        if gradient.dtype != "FLOAT":
            gradient = r.vector("Cast", r.tensor(*flat, dtype="FLOAT"), gradient)
        master, mean, square = (r.tensor(*flat, weight=True, dtype="FLOAT") for _ in range(3))
        r.append(VectorOperator("ApplyAdamWV2", (master, mean, square, gradient), (master, mean, square)))
        if weight.dtype != "FLOAT":
            r.vector("Cast", r.view(weight, *flat), master)
