"""Decoder language models: prefill, decode and training, dense or with experts, split over ranks."""

from __future__ import annotations

import math

import msgspec

from kb.errors import UsageError
from kb.profile.simulated.graph import FlashAttention, MatMul, Operator, Tensor, Workload
from kb.profile.simulated.layout import Seat
from kb.profile.simulated.models.attention import attend
from kb.profile.simulated.models.backward import Gradients, optimize
from kb.profile.simulated.models.precision import recording
from kb.profile.simulated.options import Options

PADDED_OVER_USED = 2
"""A padded cache is as long as the longest request; requests are taken to be half of it on average (assumption)."""
MOST_LOOPED = 16
"""Models with more experts than this always run them as one grouped product."""


class DecoderShape(msgspec.Struct, frozen=True):
    """A published configuration. ``experts`` 0 = dense; ``ffn`` is the width of one expert then."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocabulary: int
    width: int = 128
    qk_norm: bool = False
    tied: bool = False
    experts: int = 0
    chosen: int = 0
    sequence: int = 2048


QWEN3_06B = DecoderShape(28, 1024, 16, 8, 3072, 151936, qk_norm=True, tied=True, sequence=4096)
QWEN25_7B = DecoderShape(28, 3584, 28, 4, 18944, 152064)
QWEN3_14B = DecoderShape(40, 5120, 40, 8, 17408, 151936, qk_norm=True)
LLAMA2_7B = DecoderShape(32, 4096, 32, 32, 11008, 32000)
LLAMA2_13B = DecoderShape(40, 5120, 40, 40, 13824, 32000)
LLAMA3_8B = DecoderShape(32, 4096, 32, 8, 14336, 128256)
LLAMA3_70B = DecoderShape(80, 8192, 64, 8, 28672, 128256)
QWEN3_30B_A3B = DecoderShape(48, 2048, 32, 4, 768, 151936, qk_norm=True, experts=128, chosen=8)
MIXTRAL_8X7B = DecoderShape(32, 4096, 32, 8, 14336, 32000, experts=8, chosen=2)


def prefill(shape: DecoderShape, options: Options, seat: Seat) -> Workload:
    """``options.batch`` prompts of ``options.sequence`` tokens in one pass."""
    return _forward_only(shape, options, seat, options.sequence or shape.sequence, context=0)


def decode(shape: DecoderShape, options: Options, seat: Seat) -> Workload:
    """One new token for each of ``options.batch`` requests with ``options.context`` tokens behind them."""
    return _forward_only(shape, options, seat, 1, context=options.context or shape.sequence)


def train(shape: DecoderShape, options: Options, seat: Seat) -> Workload:
    """One step: ``options.microbatches`` of ``options.batch`` sequences, one forward and one backward in turn."""
    builder = _Stage(shape, options, seat)
    r, count, stages = builder.r, options.microbatches, options.pipeline_parallel
    gradients = Gradients(r, accumulate=True)
    ahead = min(count, stages - 1 - seat.stage)
    kept: list[tuple[tuple[Operator, ...], Tensor]] = [builder.forward(number) for number in range(ahead)]
    for number in range(count):
        if number + ahead < count:
            kept.append(builder.forward(number + ahead))
        builder.backward(number, *kept[number], gradients, last=number == count - 1)
    builder.finish(gradients)
    tokens = options.batch * (options.sequence or shape.sequence)
    left_out = ("data preparation",)
    return Workload(r.graph(), 1, host_work=False, left_out=left_out, phase="training", input_bytes=tokens * count * 8)


def _forward_only(shape: DecoderShape, options: Options, seat: Seat, tokens: int, *, context: int) -> Workload:
    builder = _Stage(shape, options, seat, context=context)
    builder.forward(0, tokens=tokens)
    return Workload(
        builder.r.graph(), 1, host_work=bool(context), left_out=("tokeniser", "sampling"), phase="decode" if context else "prefill",
        input_bytes=options.batch * tokens * 8,
    )  # fmt: skip


class _Stage:
    """Records what one rank runs: its share of every layer of its stage."""

    def __init__(self, shape: DecoderShape, options: Options, seat: Seat, *, context: int = 0) -> None:
        _check(shape, options)
        self.shape, self.options, self.seat, self.context = shape, options, seat, context
        self.split = options.tensor_parallel
        self.first, self.last = seat.stage == 0, seat.stage == options.pipeline_parallel - 1
        self.layers = stage_layers(shape.layers, options)[seat.stage]
        self.r = recording(options, "DT_BF16")
        self._weights: dict[int, Tensor] = {}
        self._table: Tensor | None = None

    def forward(self, number: int, *, tokens: int | None = None) -> tuple[tuple[Operator, ...], Tensor]:
        """One microbatch through the stage; returns its kernels and its result."""
        r, shape, options = self.r, self.shape, self.options
        r.reuse_weights()
        place, length = len(r), tokens or options.sequence or shape.sequence
        x = r.tensor(options.batch, length, shape.hidden)
        if self.first:
            x = r.embedding(shape.vocabulary // self.split, shape.hidden, r.tensor(options.batch, length, dtype="INT64"))
            self._table = r.since(len(r) - 1)[0].inputs[0]
        else:
            x = r.communicate("receive", "pp", f"f{number}.{self.seat.stage - 1}", x, peer=self.seat.stage - 1)
        for layer in range(self.layers):
            x = self._layer(x, f"{number}.{layer}")
        if self.last:
            x = self._logits(self._norm(x))
        else:
            r.communicate("send", "pp", f"f{number}.{self.seat.stage}", x, blocking=False, peer=self.seat.stage + 1)
        for operator in r.since(place):
            self._weights.update({tensor.id: tensor for tensor in operator.inputs if tensor.weight})
        return r.since(place), x

    def backward(self, number: int, operators: tuple[Operator, ...], result: Tensor, gradients: Gradients, *, last: bool) -> None:
        """The gradients of one microbatch; with ``overlap_comm`` buckets leave while the last one still runs."""
        r, seat = self.r, self.seat
        body = tuple(operator for operator in operators if operator.op_type not in ("hcom_send_", "hcom_receive_"))
        if self.last:
            loss = r.like(result, "FLOAT")
            r.vector("SoftmaxCrossEntropyWithLogits", loss, r.vector("Cast", r.like(result, "FLOAT"), result))
            r.vector("Cast", gradients.begin(result), loss)
        else:
            r.communicate("receive", "pp", f"b{number}.{seat.stage + 1}", gradients.begin(result), peer=seat.stage + 1)
        self._again(body)
        before = set() if last else set(gradients.weights)
        for operator in reversed(body):
            gradients.walk((operator,))
            if last and self.options.overlap_comm:
                self._reduce(gradients, before, final=False)
        if not self.first:
            r.communicate("send", "pp", f"b{number}.{seat.stage}", r.like(operators[0].outputs[0]), blocking=False, peer=seat.stage - 1)
        if last:
            self._reduce(gradients, before, final=True)

    def finish(self, gradients: Gradients) -> None:
        """Wait for the reductions, then update."""
        self.r.join()
        whole = [weight for weight in self._weights.values() if weight.id in gradients.weights]
        optimize(self.r, [(weight, gradients.weights[weight.id]) for weight in whole])

    def _logits(self, x: Tensor) -> Tensor:
        """Scores of the vocabulary: with its own weight, or with the embedding's table where the model ties them."""
        r, width = self.r, self.shape.vocabulary // self.split
        if not (self.shape.tied and self._table):
            return r.linear(x, width, bias=False)
        out, m = r.tensor(*x.shape[:-1], width), x.elements // x.shape[-1]
        return r.append(MatMul("MatMulV3", (x, self._table), (out,), 1, m, x.shape[-1], width, right_transposed=True))

    def _again(self, body: tuple[Operator, ...]) -> None:
        """Recompute: all kernels of the forward pass, or only those of the vector cores and attention."""
        if self.options.recompute == "none":
            return
        for operator in body:
            if self.options.recompute == "full" or not isinstance(operator, MatMul):
                self.r.append(operator)

    def _reduce(self, gradients: Gradients, done: set[int], *, final: bool) -> None:
        if self.options.data_parallel == 1:
            return
        fresh = [gradient for weight, gradient in gradients.weights.items() if weight not in done]
        size = sum(gradient.bytes for gradient in fresh)
        if not fresh or (not final and size < self.options.bucket_mb * 1e6):
            return
        done.update(weight for weight in gradients.weights)
        width = 1 if self.options.quantized_comm else 4
        limit = self.options.bucket_mb * 1e6 if not self.options.overlap_comm else size
        for number in range(max(1, math.ceil(size / limit))):
            part = self.r.tensor(int(min(limit, size - number * limit) / 4), dtype="INT8" if width == 1 else "FLOAT")
            self.r.communicate("allReduce", "dp", f"bucket{len(self.r)}", part, blocking=False)

    def _norm(self, x: Tensor) -> Tensor:
        return self.r.layer_norm(x, self.r.tensor(x.shape[-1], weight=True), op_type="RmsNorm")

    def _layer(self, x: Tensor, tag: str) -> Tensor:
        r, shape = self.r, self.shape
        attended = r.linear(self._attention(self._norm(x)), shape.hidden, bias=False)
        x = self._add(x, self._joined(attended, f"{tag}.attention"))
        return self._add(x, self._joined(self._feed_forward(self._norm(x), tag), f"{tag}.ffn"))

    def _add(self, x: Tensor, update: Tensor) -> Tensor:
        return self.r.elementwise("Add", x, update)

    def _joined(self, x: Tensor, tag: str) -> Tensor:
        if self.split == 1:
            return x
        return self.r.communicate("allReduce", "tp", tag, x)

    def _attention(self, x: Tensor) -> Tensor:
        r, shape = self.r, self.shape
        heads, kv_heads = shape.heads // self.split, max(1, shape.kv_heads // self.split)
        batch, tokens, _ = x.shape
        whole = r.linear(x, (heads + 2 * kv_heads) * shape.width, bias=False)
        parts = [r.rearrange("Slice", (batch, tokens, count * shape.width), whole) for count in (heads, kv_heads, kv_heads)]
        q, k = (self._turned(part, count) for part, count in zip(parts[:2], (heads, kv_heads), strict=True))
        if self.context:
            return self._cached(q, k, parts[2], heads, kv_heads)
        if self.options.fused_attention:
            out = r.tensor(batch, tokens, heads * shape.width)
            return r.append(
                FlashAttention("FlashAttentionScore", (q, k, parts[2]), (out,), batch * heads, tokens, tokens, shape.width, causal=True)
            )
        if kv_heads < heads:
            k, parts[2] = (r.rearrange("Tile", (batch, tokens, heads * shape.width), part) for part in (k, parts[2]))
        return attend(r, q, k, parts[2], heads, self.options, r.tensor(1, 1, tokens, tokens))

    def _turned(self, x: Tensor, heads: int) -> Tensor:
        r, (batch, tokens, hidden) = self.r, x.shape
        if self.shape.qk_norm:
            x = self._norm(r.view(x, batch, tokens, heads, self.shape.width))
        angles = [r.tensor(1, tokens, 1, self.shape.width) for _ in range(2)]
        four = r.view(x, batch, tokens, heads, self.shape.width)
        return r.view(r.vector("RotaryPositionEmbedding", r.like(four), four, *angles), batch, tokens, hidden)

    def _cached(self, q: Tensor, k: Tensor, v: Tensor, heads: int, kv_heads: int) -> Tensor:
        """Attention of one token over the cache, padded to the longest request or in pages."""
        r, shape, options = self.r, self.shape, self.options
        batch = q.shape[0]
        length = self.context * PADDED_OVER_USED
        if options.kv_policy == "paged":
            length = math.ceil(self.context / options.kv_block) * options.kv_block
        cache = [r.tensor(batch, length, kv_heads * shape.width, weight=True) for _ in range(2)]
        for new, old in ((k, cache[0]), (v, cache[1])):
            r.vector("ReshapeAndCache" if options.kv_policy == "paged" else "ScatterUpdate", r.like(new), old, new)
        out = r.like(q)
        name = "PagedAttention" if options.kv_policy == "paged" else "IncreFlashAttention"
        if not options.fused_attention:
            keys, values = (r.rearrange("Tile", (batch, length, heads * shape.width), part) for part in cache)
            return attend(r, q, keys, values, heads, options, r.tensor(batch, 1, 1, length))
        return r.append(FlashAttention(name, (q, *cache), (out,), batch * heads, 1, length, shape.width))

    def _feed_forward(self, x: Tensor, tag: str) -> Tensor:
        if self.shape.experts:
            return self._experts(x, tag)
        width = self.shape.ffn // self.split
        inner = self.r.linear(x, 2 * width, bias=False)
        return self.r.linear(self._gated(inner, width), self.shape.hidden, bias=False)

    def _gated(self, inner: Tensor, width: int) -> Tensor:
        r = self.r
        out = (*inner.shape[:-1], width)
        if self.options.fused_elementwise:
            return r.vector("SwiGlu", r.tensor(*out), inner)
        gate, up = (r.rearrange("Slice", out, inner) for _ in range(2))
        return r.elementwise("Mul", r.elementwise("Swish", gate), up)

    def _experts(self, x: Tensor, tag: str) -> Tensor:
        """Route every token to ``chosen`` experts, exchange, compute this rank's experts, exchange back, combine.

        Few experts unfused are products of their own; else one grouped product. The last expert rank carries
        ``expert_skew`` more tokens than its share.
        """
        r, shape, options = self.r, self.shape, self.options
        tokens = x.elements // shape.hidden
        scores = r.linear(x, shape.experts, bias=False)
        r.vector("MoeGatingTopKSoftmax", r.tensor(tokens, shape.chosen), scores)
        routed = r.rearrange("MoeTokenPermute", (tokens * shape.chosen, shape.hidden), x)
        groups = options.expert_parallel
        if groups > 1:
            routed = r.communicate("alltoall", "ep", f"{tag}.dispatch", routed)
        busiest = self.seat.expert == groups - 1
        rows = max(1, round(tokens * shape.chosen * (1.0 + (options.expert_skew if busiest and groups > 1 else 0.0))))
        here, width = shape.experts // groups, shape.ffn // self.split
        active = min(here, rows)
        grouped = options.fused_elementwise or shape.experts > MOST_LOOPED
        result = self._grouped(rows, active, width) if grouped else self._one_by_one(rows, active, width)
        if groups > 1:
            result = r.communicate(
                "alltoall", "ep", f"{tag}.combine", r.view(result, *routed.shape) if result.bytes == routed.bytes else r.like(routed)
            )
        return r.rearrange("MoeTokenUnpermute", x.shape, result)

    def _grouped(self, rows: int, experts: int, width: int) -> Tensor:
        each = math.ceil(rows / experts)
        inner = self._product("GroupedMatmul", experts, each, self.shape.hidden, 2 * width)
        gated = self._gated(inner, width)
        return self._product("GroupedMatmul", experts, each, width, self.shape.hidden, gated)

    def _one_by_one(self, rows: int, experts: int, width: int) -> Tensor:
        each = math.ceil(rows / experts)
        results = []
        for _ in range(experts):
            inner = self.r.linear(self.r.tensor(each, self.shape.hidden), 2 * width, bias=False)
            results.append(self.r.linear(self._gated(inner, width), self.shape.hidden, bias=False))
        return self.r.rearrange("ConcatD", (each * experts, self.shape.hidden), *results)

    def _product(self, op_type: str, batch: int, m: int, k: int, n: int, x: Tensor | None = None) -> Tensor:
        r = self.r
        left = x or r.tensor(batch, m, k)
        return r.append(MatMul(op_type, (left, r.tensor(batch, k, n, weight=True)), (r.tensor(batch, m, n),), batch, m, k, n))


def stage_layers(layers: int, options: Options) -> tuple[int, ...]:
    """Layers of each stage: equal shares, the first ones larger, then ``stage_shift`` moved from the first to the last."""
    stages = options.pipeline_parallel
    counts = [layers // stages + (1 if number < layers % stages else 0) for number in range(stages)]
    moved = min(options.stage_shift, counts[0] - 1) if stages > 1 else 0
    counts[0] -= moved
    counts[-1] += moved
    return tuple(counts)


def _check(shape: DecoderShape, options: Options) -> None:
    """Raises UsageError where the model cannot be cut as asked."""
    if shape.heads % options.tensor_parallel or shape.ffn % options.tensor_parallel:
        raise UsageError(
            f"tensor_parallel = {options.tensor_parallel} does not divide {shape.heads} heads and {shape.ffn} columns",
            allowed=", ".join(str(size) for size in (1, 2, 4, 8, 16) if not (shape.heads % size or shape.ffn % size)),
        )
    if options.pipeline_parallel > shape.layers:
        raise UsageError(f"pipeline_parallel = {options.pipeline_parallel} exceeds the layers", allowed=f"1 to {shape.layers}")
    if options.expert_parallel > 1 and (not shape.experts or shape.experts % options.expert_parallel):
        raise UsageError(
            f"expert_parallel = {options.expert_parallel} does not divide {shape.experts} experts",
            allowed="a divisor of the experts; 1 for dense models",
        )
