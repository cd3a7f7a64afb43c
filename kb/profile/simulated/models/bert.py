"""BERT encoders with a classification head, as PyTorch launches them."""

from __future__ import annotations

import msgspec

from kb.profile.simulated.graph import Tensor, Workload
from kb.profile.simulated.layout import Seat
from kb.profile.simulated.models.attention import attend
from kb.profile.simulated.models.precision import recording
from kb.profile.simulated.models.recording import Recording
from kb.profile.simulated.options import Options

VOCABULARY = 30522
POSITIONS = 512
CLASSES = 2


class BertShape(msgspec.Struct, frozen=True):
    """The published configuration of a BERT model."""

    layers: int
    hidden: int
    heads: int
    sequence: int = 128


BASE = BertShape(layers=12, hidden=768, heads=12)
LARGE = BertShape(layers=24, hidden=1024, heads=16)


def bert(shape: BertShape, options: Options, _seat: Seat) -> Workload:
    """One inference of ``options.batch`` sequences."""
    r = recording(options, "FLOAT16")
    batch, tokens = options.batch, options.sequence or shape.sequence
    mask = r.tensor(batch, 1, 1, tokens)
    x = _embeddings(r, shape, batch, tokens)
    for _ in range(shape.layers):
        x = _layer(r, x, mask, shape, options)
    first = r.rearrange("Slice", (batch, shape.hidden), x)
    r.linear(r.elementwise("Tanh", r.linear(first, shape.hidden)), CLASSES)
    return Workload(r.graph(), repeats=1, host_work=False, left_out=("tokeniser",), input_bytes=3 * batch * tokens * 8)


def _embeddings(r: Recording, shape: BertShape, batch: int, tokens: int) -> Tensor:
    words = r.embedding(VOCABULARY, shape.hidden, r.tensor(batch, tokens, dtype="INT64"))
    types = r.embedding(2, shape.hidden, r.tensor(batch, tokens, dtype="INT64"))
    positions = r.embedding(POSITIONS, shape.hidden, r.tensor(1, tokens, dtype="INT64"))
    return _norm(r, r.elementwise("Add", r.elementwise("Add", words, types), positions))


def _norm(r: Recording, x: Tensor, *others: Tensor, op_type: str = "LayerNormV3") -> Tensor:
    width = x.shape[-1]
    return r.layer_norm(x, *others, r.tensor(width, weight=True), r.tensor(width, weight=True), op_type=op_type)


def _layer(r: Recording, x: Tensor, mask: Tensor, shape: BertShape, options: Options) -> Tensor:
    q, k, v = (r.linear(x, shape.hidden) for _ in range(3))
    attended = r.linear(attend(r, q, k, v, shape.heads, options, mask), shape.hidden)
    x = _add_norm(r, attended, x, options)
    return _add_norm(r, r.linear(_gelu(r, r.linear(x, 4 * shape.hidden), options), shape.hidden), x, options)


def _add_norm(r: Recording, x: Tensor, residual: Tensor, options: Options) -> Tensor:
    if options.fused_elementwise:
        return _norm(r, x, residual, op_type="AddLayerNorm")
    return _norm(r, r.elementwise("Add", x, residual))


def _gelu(r: Recording, x: Tensor, options: Options) -> Tensor:
    """x / 2 x (1 + erf(x / sqrt 2)): one kernel, or the five of an exported graph."""
    if options.fused_elementwise:
        return r.elementwise("Gelu", x)
    shifted = r.elementwise("Add", r.elementwise("Erf", r.elementwise("RealDiv", x)))
    return r.elementwise("Muls", r.elementwise("Mul", x, shifted))
