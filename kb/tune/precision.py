"""What a number format does to results: the model's deepest products run in it, against float64.

No accuracy of a trained model comes out of this: weights are random, so the figure says how far results drift, not whether a
task suffers. On a real machine outputs are compared instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from kb.profile.simulated.graph import CubeOperator, FlashAttention, Graph
from kb.profile.simulated.options import Options
from kb.profile.simulated.setup import Setup
from kb.tune.entries import graph_of

Format = Literal["fp32", "bf16", "fp16", "int8"]
Floats = npt.NDArray[np.float64]

WIDEST: Final = 128
"""Rows and columns of the emulated layers. Relative errors hardly depend on it: sums and rounding both grow with its root."""
MOST_LAYERS: Final = 12
TOKENS: Final = 32
_SEED: Final = 20260117
_FORMATS: Final[dict[str, Format]] = {"FLOAT": "fp32", "FLOAT16": "fp16", "DT_BF16": "bf16", "INT8": "int8"}
RELEVANT: Final = ("precision", "fused_attention", "quantized_comm")
"""Options that change in which format a value is held."""


class Precision(msgspec.Struct, frozen=True, kw_only=True):
    """Results against float64 after ``layers`` layers in ``format``: ``relative_error`` = rms(difference) / rms(reference);
    ``cosine`` of both; ``max_abs`` over the reference's rms. Scores are held in ``scores``."""

    format: Format
    scores: Format
    layers: int
    relative_error: float
    cosine: float
    max_abs: float


def emulated(held: Format, scores: Format, layers: int) -> Precision:
    """Residual layers of products and attention in ``held``, with attention scores held in ``scores``. Deterministic."""
    random = np.random.default_rng(_SEED)
    exact = random.standard_normal((TOKENS, WIDEST))
    rounded = exact.copy()
    for _ in range(layers):
        weight = random.standard_normal((WIDEST, WIDEST)) / np.sqrt(WIDEST)
        exact = _normal(exact + _attended(exact, weight, np.copy, np.copy))
        rounded = _rounding(held)(_normal(rounded + _attended(rounded, weight, _products(held), _rounding(scores))))
    difference, scale = rounded - exact, float(np.sqrt(np.mean(exact**2)))
    return Precision(
        format=held,
        scores=scores,
        layers=layers,
        relative_error=float(np.sqrt(np.mean(difference**2))) / scale,
        cosine=float(np.sum(rounded * exact) / np.sqrt(np.sum(rounded**2) * np.sum(exact**2))),
        max_abs=float(np.max(np.abs(difference))) / scale,
    )


def precision_of(setup: Setup, graph: Graph | None = None) -> Precision:
    """The emulation of a setup: formats and depth are those of its graph (rank 0)."""
    own = graph_of(setup) if graph is None else graph
    products = [operator for operator in own.operators if isinstance(operator, CubeOperator)]
    heaviest = max(products, key=lambda operator: operator.flop, default=None)
    held = _FORMATS.get(heaviest.inputs[0].dtype, "fp16") if heaviest is not None else "fp16"
    fused = any(isinstance(operator, FlashAttention) for operator in own.operators)
    # A fused kernel keeps scores in its float32 accumulator; separate kernels write them out in the model's own type.
    scores: Format = "fp32" if fused else "fp16" if held == "int8" else held
    return emulated(held, scores, max(1, min(MOST_LAYERS, len(products) // 6)))


def precision_loss(before: Setup, after: Setup) -> float:
    """How much the relative error of results grows from ``before`` to ``after``, as a fraction of the results; 0 when it shrinks
    or when nothing that changes a format moved."""
    if all(getattr(before.options, name) == getattr(after.options, name) for name in RELEVANT):
        return 0.0
    loss = precision_of(after).relative_error - precision_of(before).relative_error
    if after.options.quantized_comm and not before.options.quantized_comm and _communicates(after.options):
        loss += emulated("int8", "fp32", 1).relative_error
    return max(0.0, loss)


def _communicates(options: Options) -> bool:
    return options.world_size > 1


def _normal(x: Floats) -> Floats:
    return np.asarray(x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True)))


def _attended(x: Floats, weight: Floats, product: Callable[[Floats], Floats], hold: Callable[[Floats], Floats]) -> Floats:
    """A projection, scores over all tokens, and their mix: each operand rounded as its kernel reads it."""
    values = product(x) @ product(weight)
    scores = hold(product(values) @ product(values).T / np.sqrt(WIDEST))
    shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return product(hold(shifted / shifted.sum(axis=-1, keepdims=True))) @ product(values)


def _products(held: Format) -> Callable[[Floats], Floats]:
    return _quantised if held == "int8" else _rounding(held)


def _rounding(held: Format) -> Callable[[Floats], Floats]:
    """Rounding of a value in memory; 8-bit products keep their results in half precision."""
    if held == "bf16":
        return _bf16
    kind = np.float32 if held == "fp32" else np.float16
    return lambda x: x.astype(kind).astype(np.float64)


def _bf16(x: Floats) -> Floats:
    bits = x.astype(np.float32).view(np.uint32)
    nearest = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return nearest.astype(np.uint32).view(np.float32).astype(np.float64)


def _quantised(x: Floats) -> Floats:
    """Symmetric 8-bit steps, one scale a row (a token, or a row of the weight)."""
    scale = np.maximum(np.abs(x).max(axis=-1, keepdims=True), 1e-30) / 127.0
    return np.asarray(np.clip(np.rint(x / scale), -127, 127) * scale)
