"""Matrix products against the chip: their work, and the time the cube or the memory needs for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from kb.diagnose.shapes import Operands, product_flops
from kb.diagnose.view import RankView
from kb.session.session import Array, Table

FLOP_PER_CYCLE_CORE: Final = 8192
BYTES: Final[Mapping[str, float]] = {
    "FLOAT": 4, "FLOAT32": 4, "DT_FLOAT": 4, "FLOAT16": 2, "DT_BF16": 2, "BF16": 2, "BFLOAT16": 2, "INT8": 1, "UINT8": 1, "INT4": 0.5,
    "INT64": 8, "INT32": 4, "DOUBLE": 8, "BOOL": 1,
}  # fmt: skip
RATES: Final[Mapping[float, float]] = {4: 0.25, 2: 1.0, 1: 2.0, 0.5: 4.0}
"""Cube rate by bytes of an element, as multiples of the FP16 rate."""


@dataclass(frozen=True, slots=True)
class Products:
    """Product kernels of the step: ``rows`` are positions in ``view.kernels``; ``duration``, ``cube`` and ``memory`` ns
    (NaN where shapes or chip are unknown): the time measured, and the least the cube and the memory need.
    ``lines`` are the rows of the output (the work a batch brings), ``wide`` bytes of an input element."""

    rows: Array
    duration: Array
    cube: Array
    memory: Array
    lines: Array
    wide: Array


def products(view: RankView, kernels: Table) -> Products:
    """Every matrix product of the step. Shapes are read once for each distinct text."""
    if kernels is view.kernels:
        return view.memo.once("products", lambda: _products(view, kernels))
    return _products(view, kernels)


def _products(view: RankView, kernels: Table) -> Products:
    rows = np.flatnonzero(view.role(kernels, "product") & ~view.communication(kernels))
    missing = np.full(len(rows), np.nan)
    if not len(rows) or "input_shapes" not in kernels or "output_shapes" not in kernels:
        return Products(rows, kernels["duration_ns"][rows], missing, missing, missing, missing)
    dtypes = kernels["input_dtypes"][rows] if "input_dtypes" in kernels else np.full(len(rows), -1)
    keys = np.stack((kernels["input_shapes"][rows], kernels["output_shapes"][rows], dtypes), axis=1)
    distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
    facts = np.array([_facts(view, *key) for key in distinct.tolist()], np.float64).reshape(-1, 4)[np.ravel(inverse)]
    flops, moved, lines, wide = facts.T
    rate = np.array([RATES.get(width, 1.0) for width in wide.tolist()])
    peak = peak_flop_per_ns(view)
    bandwidth = view.soc.memory_bandwidth.value if view.soc and view.soc.memory_bandwidth.unit == "GB/s" else math.nan
    return Products(rows, kernels["duration_ns"][rows], flops / (peak * rate), moved / bandwidth, lines, wide)


def peak_flop_per_ns(view: RankView) -> float:
    """FP16 rate of the whole cube, NaN for an unknown chip."""
    soc = view.session.meta.soc
    if view.soc is not None:
        return view.soc.peak_fp16_flops / 1e9
    return soc.cores * FLOP_PER_CYCLE_CORE * soc.clock_mhz * 1e-3 if soc.cores and soc.clock_mhz else math.nan


def _facts(view: RankView, inputs: int, outputs: int, dtypes: int) -> tuple[float, float, float, float]:
    read = view.operands(inputs)
    written = view.operands(outputs)
    first = (view.session.text(dtypes) or "").strip('"').split(";")[0]
    wide = BYTES.get(first.upper(), 2.0)
    flops = product_flops(read, written)
    flops = _by_counts(read, written) if flops is None else flops
    moved = float(sum(math.prod(dims) for dims in (*read.dims[:2], *written.dims[:1]) if dims)) * wide
    lines = float(math.prod(written.dims[0][:-1])) if written.dims and len(written.dims[0]) >= 2 else math.nan
    return (math.nan if flops is None else flops), moved, lines, wide


def _by_counts(read: Operands, written: Operands) -> float | None:
    """2 x m x k x n from the element counts of both operands and the result, which are mk, kn and mn (a batch of rows
    counts into m); None where they share a batch or are missing."""
    shapes = (*read.dims[:2], *written.dims[:1])
    if len(shapes) != 3 or any(len(dims) < 2 for dims in shapes) or all(len(dims) > 2 and math.prod(dims[:-2]) > 1 for dims in shapes):
        return None
    return 2.0 * math.sqrt(math.prod(math.prod(dims) for dims in shapes))


def touched_bytes(view: RankView, kernels: Table, rows: Array) -> Array:
    """Bytes of all operands and results of the kernels at ``rows``, each once: what must move whatever the order. NaN
    where shapes are missing."""
    if "input_shapes" not in kernels or "output_shapes" not in kernels or not len(rows):
        return np.full(len(rows), np.nan)
    names = ("input_shapes", "output_shapes", "input_dtypes", "output_dtypes")
    columns = [kernels[name][rows] if name in kernels else np.full(len(rows), -1) for name in names]
    distinct, inverse = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    sizes = [_side(view, row[0], row[2]) + _side(view, row[1], row[3]) for row in distinct.tolist()]
    return np.array(sizes, np.float64)[np.ravel(inverse)]


def _side(view: RankView, shapes: int, dtypes: int) -> float:
    if shapes < 0:
        return math.nan
    dims = view.operands(shapes).dims
    kinds = (view.session.text(dtypes) or "").strip('"').split(";")
    widths = [BYTES.get(kind.upper(), 2.0) for kind in kinds] + [2.0] * len(dims)
    return float(sum(math.prod(shape) * width for shape, width in zip(dims, widths, strict=False) if shape))
