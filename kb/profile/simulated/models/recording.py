"""Writes down the kernels of a model in launch order."""

from __future__ import annotations

import math

from kb.profile.simulated.graph import (
    Collective,
    Conv2D,
    Elementwise,
    Embedding,
    FlashAttention,
    Graph,
    LayerNorm,
    MatMul,
    Operator,
    Rearrangement,
    Softmax,
    Tensor,
    VectorOperator,
    tensor,
)

Shape = tuple[int, ...]


class Recording:
    """Collects operators of one graph; every method appends one kernel and returns its output.

    Activations and weights have the ``dtype`` given; shapes are the ones a profile of the model shows.
    """

    def __init__(self, dtype: str = "FLOAT16", *, fractal: bool = False, quantized: bool = False) -> None:
        self.dtype = dtype
        self.fractal = fractal
        self.quantized = quantized
        self._operators: list[Operator] = []
        self._joins: list[int] = []
        self._tensors = 0
        self._weights = 0

    def graph(self) -> Graph:
        """All kernels so far."""
        return Graph(tuple(self._operators), tuple(self._joins))

    def __len__(self) -> int:
        return len(self._operators)

    def since(self, place: int) -> tuple[Operator, ...]:
        """The operators from a place on."""
        return tuple(self._operators[place:])

    def append(self, operator: Operator) -> Tensor:
        """Any operator; returns its first output."""
        self._operators.append(operator)
        return operator.outputs[0]

    def like(self, x: Tensor, dtype: str | None = None) -> Tensor:
        """A new value of the shape of ``x``."""
        return self.tensor(*x.shape, dtype=dtype or x.dtype)

    def join(self) -> None:
        """The next kernel waits for every communication called so far."""
        self._joins.append(len(self._operators))

    def vector(self, op_type: str, out: Tensor, *inputs: Tensor) -> Tensor:
        """Any kernel of the vector cores."""
        return self.append(VectorOperator(op_type, inputs, (out,)))

    def communicate(self, action: str, dimension: str, tag: str, x: Tensor, *, blocking: bool = True, peer: int = -1) -> Tensor:
        """A collective or a point-to-point call on ``x``; its result has the same memory."""
        return self.append(Collective(f"hcom_{action}_", (x,), (x,), action, dimension, tag, blocking, peer))

    def tensor(self, *shape: int, weight: bool = False, dtype: str | None = None) -> Tensor:
        """A new value that no kernel of this graph makes: an input, or a weight."""
        if weight:
            self._weights -= 1
        else:
            self._tensors += 1
        return tensor(self._weights if weight else self._tensors, shape, dtype or self.dtype, weight=weight)

    def reuse_weights(self) -> None:
        """The next weights asked for are the first ones again: the same model runs once more."""
        self._weights = 0

    def linear(self, x: Tensor, width: int, *, bias: bool = True) -> Tensor:
        """Rows of ``x`` (all leading dimensions) times a weight (last dimension, ``width``)."""
        k = x.shape[-1]
        m = x.elements // k
        if self.quantized:
            x = self.vector("AscendQuantV2", self.like(x, "INT8"), x)
        kernel = self.tensor(k, width, weight=True, dtype=x.dtype)
        weights = (kernel, *((self.tensor(width, weight=True),) if bias else ()))
        out = self.tensor(*x.shape[:-1], width)
        self._operators.append(MatMul("MatMulV3", (x, *weights), (out,), 1, m, k, width, fractal=self.fractal))
        return out

    def batch_matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """Products of the last two dimensions: (.., m, k) times (.., k, n)."""
        m, k = a.shape[-2:]
        n = b.shape[-1]
        out = self.tensor(*a.shape[:-1], n)
        self._operators.append(MatMul("BatchMatMulV3", (a, b), (out,), math.prod(a.shape[:-2]), m, k, n))
        return out

    def patch_convolution(self, x: Tensor, width: int, patch: int) -> Tensor:
        """Non-overlapping ``patch`` x ``patch`` convolution of (batch, channels, height, width) images."""
        batch, channels, height, columns = x.shape
        weight = self.tensor(width, channels, patch, patch, weight=True)
        out = self.tensor(batch, width, height // patch, columns // patch)
        positions = batch * (height // patch) * (columns // patch)
        self._operators.append(Conv2D("Conv2D", (x, weight), (out,), 1, positions, channels * patch * patch, width))
        return out

    def convolution(self, x: Tensor, width: int, kernel: int, stride: int = 1, *, groups: int = 1) -> Tensor:
        """A padded ``kernel`` x ``kernel`` convolution of (batch, channels, height, width) images."""
        batch, channels, height, columns = x.shape
        weight = self.tensor(width, channels // groups, kernel, kernel, weight=True)
        out = self.tensor(batch, width, -(-height // stride), -(-columns // stride))
        positions = batch * out.shape[2] * out.shape[3]
        depth = channels // groups * kernel * kernel
        self._operators.append(Conv2D("Conv2D", (x, weight), (out,), groups, positions, depth, width // groups))
        return out

    def elementwise(self, op_type: str, x: Tensor, *others: Tensor) -> Tensor:
        """Same shape as ``x``; ``others`` broadcast."""
        out = self.tensor(*x.shape)
        self._operators.append(Elementwise(op_type, (x, *others), (out,)))
        return out

    def softmax(self, x: Tensor, *others: Tensor, op_type: str = "SoftmaxV2") -> Tensor:
        """Softmax over the last dimension."""
        out = self.tensor(*x.shape)
        self._operators.append(Softmax(op_type, (x, *others), (out,)))
        return out

    def layer_norm(self, x: Tensor, *others: Tensor, op_type: str = "LayerNormV3") -> Tensor:
        """Normalisation over the last dimension."""
        out = self.tensor(*x.shape)
        self._operators.append(LayerNorm(op_type, (x, *others), (out,)))
        return out

    def rearrange(self, op_type: str, shape: Shape, *inputs: Tensor) -> Tensor:
        """Transpose, ConcatD or Slice to ``shape``."""
        out = self.tensor(*shape)
        self._operators.append(Rearrangement(op_type, inputs, (out,)))
        return out

    def embedding(self, rows: int, width: int, indices: Tensor) -> Tensor:
        """Rows of a (rows, width) table."""
        table = self.tensor(rows, width, weight=True)
        out = self.tensor(*indices.shape, width)
        self._operators.append(Embedding("GatherV2", (table, indices), (out,)))
        return out

    def flash_attention(self, q: Tensor, k: Tensor, v: Tensor, heads: int, *others: Tensor) -> Tensor:
        """Attention of (batch, tokens, heads x width) tensors in one kernel."""
        batch, queries, hidden = q.shape
        out = self.tensor(*q.shape)
        operator = FlashAttention("FlashAttentionScore", (q, k, v, *others), (out,), batch * heads, queries, k.shape[1], hidden // heads)
        self._operators.append(operator)
        return out

    def view(self, x: Tensor, *shape: int) -> Tensor:
        """The same memory under another shape: no kernel."""
        return Tensor(x.id, shape, x.dtype, x.weight, x.bytes)
