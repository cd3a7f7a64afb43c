"""Measured kernels as rows: what a profile shows of one kernel, and the files that hold many."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kb.errors import MalformedInputError
from kb.profile.simulated.graph import ELEMENT_BYTES

Shape = tuple[int, ...]
COLUMNS: Final = ("soc", "op_type", "input_shapes", "input_dtypes", "block_dim", "duration_us")
_EMPTY: Final = ("", "N/A", "NA", "null", "None")
_SHORT: Final = {"FP16": "FLOAT16", "FP32": "FLOAT", "BF16": "DT_BF16", "FLOAT32": "FLOAT", "BFLOAT16": "DT_BF16", "DT_FLOAT16": "FLOAT16",
                 "DT_FLOAT": "FLOAT", "HALF": "FLOAT16", "INT": "INT32", "LONG": "INT64"}  # fmt: skip


class KernelRow(msgspec.Struct, frozen=True):
    """One measured kernel. ``shapes`` and ``dtypes`` have an entry an operand; ``blocks`` 0 = not recorded."""

    soc: str
    op_type: str
    shapes: tuple[Shape, ...]
    dtypes: tuple[str, ...]
    blocks: int
    duration_ns: float


def shapes_of(cell: str) -> tuple[Shape, ...]:
    """Operands split by ``;``, dimensions by ``,`` (or ``x``, or in brackets); an empty operand is a scalar."""
    text = cell.strip().strip('"').strip()
    if text in _EMPTY:
        return ()
    return tuple(_shape(part) for part in text.split(";"))


def _shape(text: str) -> Shape:
    cleaned = text.strip().strip("[]()").replace("x", ",").replace(" ", ",")
    return tuple(int(part) for part in cleaned.split(",") if part)


def dtypes_of(cell: str) -> tuple[str, ...]:
    """Types in Ascend's spelling; one without a known size counts as FLOAT."""
    text = cell.strip().strip('"').strip()
    names = [] if text in _EMPTY else [part.strip().upper() for part in text.split(";")]
    spelt = (_SHORT.get(name, name) for name in names)
    return tuple(name if name in ELEMENT_BYTES else "FLOAT" for name in spelt)


def read_rows(path: Path) -> tuple[tuple[KernelRow, ...], tuple[str, ...]]:
    """The rows of a CSV file with ``COLUMNS``, and a sentence for each row left out.

    Rows without a duration, and communication, are left out. Raises MalformedInputError when a column is absent.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        absent = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
        if absent:
            raise MalformedInputError(f"{path}: no column {', '.join(absent)}", allowed=", ".join(COLUMNS))
        return _parsed(reader)


def _parsed(reader: Iterable[dict[str, str]]) -> tuple[tuple[KernelRow, ...], tuple[str, ...]]:
    rows, left_out = [], []
    for number, cells in enumerate(reader, start=2):
        try:
            rows.append(row_of([cells[name] or "" for name in COLUMNS]))
        except ValueError as error:
            left_out.append(f"row {number}: {error}")
    return tuple(rows), tuple(left_out)


def row_of(cells: Sequence[str]) -> KernelRow:
    """One row from the text of its ``COLUMNS``. Raises ValueError for cells that are no numbers or no positive time."""
    soc, op_type, shapes, dtypes, block, duration = cells
    time = float(duration) * 1e3
    if not time > 0:
        raise ValueError(f"duration {duration!r} is not positive")
    if not op_type.strip() or op_type.lower().startswith("hcom"):
        raise ValueError(f"{op_type!r} is no kernel of the device")
    blocks = int(float(block)) if block.strip() not in _EMPTY else 0
    return KernelRow(soc.strip(), op_type.strip(), shapes_of(shapes), dtypes_of(dtypes), max(0, blocks), time)


def with_first_generation_types(rows: Sequence[KernelRow], is_cube: Sequence[bool]) -> tuple[KernelRow, ...]:
    """Rows of a first-generation chip with their element types put right.

    That chip's cube multiplies FP16 only. When most of its products claim FLOAT the exporter numbered the types one
    off, and FLOAT16 stands for FP32 (facts of the public first-generation tables).
    """
    products = [row.dtypes[0] for row, cube in zip(rows, is_cube, strict=True) if cube and row.dtypes]
    if sum(name == "FLOAT" for name in products) <= sum(name == "FLOAT16" for name in products):
        return tuple(rows)
    swap = {"FLOAT16": "FLOAT", "FLOAT": "FLOAT16", "INT16": "FLOAT"}
    return tuple(msgspec.structs.replace(row, dtypes=tuple(swap.get(name, name) for name in row.dtypes)) for row in rows)
