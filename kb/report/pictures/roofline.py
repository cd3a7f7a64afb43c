"""Matrix products against the ceilings of their chip."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.diagnose.shapes import NOTHING, Operands, parsed, product_flops
from kb.domain.catalogue import Catalogue
from kb.domain.quantity import Quantity
from kb.report.figures import Dot, Roofline
from kb.report.pictures.tasks import ROLES, Tasks
from kb.session.session import Array

_DOTS: Final = 24
_BYTES: Final = {"FLOAT16": 2, "DT_BF16": 2, "BF16": 2, "FLOAT": 4, "FLOAT32": 4, "INT8": 1, "DOUBLE": 8}
_DEFAULT_BYTES: Final = 2
_ENGINES: Final = tuple(ROLES.index(role) for role in ("cube", "mix"))


def roofline(tasks: Tasks, catalogue: Catalogue) -> Roofline | None:
    """One dot for each operator type and shape among the products; None when the chip or the shapes are unknown.

    Bytes are the operands' own, each moved once: the least a product must move, so that a dot cannot lie too far left.
    """
    soc = catalogue.socs.get(tasks.session.meta.soc.id or "")
    if soc is None or tasks.column("output_shapes") is None or tasks.column("input_shapes") is None:
        return None
    rows = np.flatnonzero(np.isin(tasks.role, _ENGINES))
    dots = _dots(tasks, rows)
    if not dots:
        return None
    bandwidth = Quantity(soc.memory_bandwidth.value, soc.memory_bandwidth.unit).to("B/s")
    return Roofline(soc.peak_fp16_flops, bandwidth, dots, f"{soc.name}: {soc.memory_bandwidth.source}")


def _dots(tasks: Tasks, rows: Array) -> tuple[Dot, ...]:
    shapes = parsed(tasks.session, tasks.table, rows)
    table = tasks.table
    keys, first, inverse = np.unique(
        np.stack([tasks.kind[rows], table["input_shapes"][rows], table["output_shapes"][rows]]),
        axis=1,
        return_index=True,
        return_inverse=True,
    )
    totals = np.bincount(inverse.ravel(), weights=tasks.durations[rows], minlength=keys.shape[1])
    counts = np.bincount(inverse.ravel(), minlength=keys.shape[1])
    whole = max(tasks.end - tasks.begin, 1)
    found = []
    for place in np.argsort(-totals, kind="stable").tolist():
        inputs, outputs = shapes.get(int(keys[1, place]), NOTHING), shapes.get(int(keys[2, place]), NOTHING)
        flops = product_flops(inputs, outputs)
        moved = _operand_bytes(tasks, int(rows[first[place]]), inputs, outputs)
        if flops and moved and totals[place] > 0:
            reached = flops * counts[place] / (totals[place] * 1e-9)
            name = tasks.session.text(int(keys[0, place])) or "?"
            shape = tasks.session.text(int(keys[1, place])) or ""
            found.append(Dot(f"{name} · {shape}"[:120], flops / moved, float(reached), float(totals[place]) / whole))
    return tuple(found[:_DOTS])


def _operand_bytes(tasks: Tasks, row: int, inputs: Operands, outputs: Operands) -> float:
    types = tasks.column("input_dtypes")
    text = tasks.session.text(int(types[row])) if types is not None else None
    width = _BYTES.get((text or "").split(";")[0], _DEFAULT_BYTES)
    return float(width * sum(int(np.prod(dims)) for dims in (*inputs.dims, *outputs.dims) if dims))
