"""Operand shapes of kernels, parsed once for each distinct text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from kb.session.session import Array, Session, Table

Dims = tuple[int, ...]
_SIGNS: Final = frozenset("+-_")
_LONGEST: Final = 12
"""Digits of the longest dimension believed; more is damage, and the operand counts as unknown."""


@dataclass(frozen=True, slots=True)
class Operands:
    """The operands of one side of a kernel: dimensions (() for a scalar or an unreadable one), the element counts
    among them, and the counts together with the two inner lengths in ascending order."""

    dims: tuple[Dims, ...]
    sizes: frozenset[int]
    marks: frozenset[tuple[int, ...]]


NOTHING: Final = Operands((), frozenset(), frozenset())


def parsed(session: Session, kernels: Table, rows: Array) -> Mapping[int, Operands]:
    """Operands by string code of every input and output shape text of ``rows``; -1 (missing) maps to ``NOTHING``."""
    columns = [kernels[name][rows] for name in ("input_shapes", "output_shapes") if name in kernels]
    codes = np.unique(np.concatenate(columns)).tolist() if columns else []
    return {**{code: operands(session.strings[code]) for code in codes if code >= 0}, -1: NOTHING}


def operands(text: str) -> Operands:
    """Read ``8,512,64;8,64,512``: operands split by ``;``, dimensions by ``,``."""
    dims = tuple(_dims(part) for part in text.strip('"').split(";"))
    known = [shape for shape in dims if shape]
    marks = frozenset((math.prod(shape), *sorted(shape[-2:])) for shape in known)
    return Operands(dims, frozenset(math.prod(shape) for shape in known), marks)


def product_flops(inputs: Operands, outputs: Operands) -> float | None:
    """2 x output elements x inner length of a matrix product, the inner length being the side of the first operand
    that the output lacks; None where shapes are missing or tiled."""
    if not inputs.dims or not outputs.dims or len(inputs.dims[0]) < 2 or len(outputs.dims[0]) != len(inputs.dims[0]):
        return None
    first, second = inputs.dims[0][-2:]
    rows = outputs.dims[0][-2]
    inner = second if first == rows else first if second == rows else None
    return None if inner is None else 2.0 * math.prod(outputs.dims[0]) * inner


def _dims(part: str) -> Dims:
    if not part.isascii() or _SIGNS.intersection(part):
        return ()
    try:
        dims = tuple(map(int, part.split(",")))
    except ValueError:
        return ()
    return dims if max(dims) < 10**_LONGEST else ()
