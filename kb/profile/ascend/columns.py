"""Which header names mean which column of ours, and how their cells are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal

import msgspec
import numpy as np

from kb.errors import MalformedInputError
from kb.profile.ascend import cells
from kb.profile.ascend.rows import Spans, unquoted
from kb.profile.ascend.texts import Taking, is_constant, text_codes
from kb.profile.decimals import plain_decimals, scaled_to
from kb.session.builder import Strings
from kb.session.session import Array

Kind = Literal["text", "core", "layer", "quoted", "format", "id", "long_id", "timestamp", "optional_timestamp", "duration",
               "optional_duration", "duration_ms", "optional_duration_ms", "real", "real_us", "percent", "kibibytes"]  # fmt: skip
Parse = Callable[[str], float]

_CORES: Final[Mapping[str, str]] = {"HCCL": "COMMUNICATION", "communication": "COMMUNICATION"}
_LAYERS: Final[Mapping[str, str]] = {"hccl": "communication"}
_TEXTS: Final[Mapping[Kind, Callable[[str], str | None]]] = {
    "text": cells.plain,
    "quoted": cells.quoted,
    "format": cells.layout_format,
    "core": lambda cell: _CORES.get(cell.strip(), cells.plain(cell)),
    "layer": lambda cell: _LAYERS.get(cell.strip(), cells.plain(cell)),
}
_NUMBERS: Final[Mapping[Kind, tuple[Parse, str]]] = {
    "id": (partial(cells.whole_number, limit=2**31 - 1), "<i4"),
    "long_id": (partial(cells.whole_number, limit=2**62), "<i8"),
    "timestamp": (cells.timestamp, "<i8"),
    "optional_timestamp": (cells.optional_timestamp, "<i8"),
    "duration": (cells.duration, "<i8"),
    "optional_duration": (cells.optional_duration, "<i8"),
    "duration_ms": (cells.duration_ms, "<i8"),
    "optional_duration_ms": (cells.optional_duration_ms, "<i8"),
    "real": (cells.real, "<f8"),
    "real_us": (cells.real_us, "<f8"),
    "percent": (cells.percent, "<f8"),
    "kibibytes": (cells.kibibytes, "<f8"),
}
_LARGEST_EXACT: Final = 2**53
"""Up to here an integer divided by a power of ten rounds once, as float() does."""
_EXACT_POWERS: Final = 10.0 ** np.arange(23)
# Power of ten from the written number to ours, and the bound that the scalar reader of the kind checks.
_SCALES: Final[Mapping[Kind, tuple[int, int]]] = {
    "id": (0, 2**31), "long_id": (0, 2**62 + 1), "timestamp": (3, cells.LATEST_NS), "optional_timestamp": (3, cells.LATEST_NS),
    "duration": (3, cells.LONGEST_NS), "optional_duration": (3, cells.LONGEST_NS), "duration_ms": (6, cells.LONGEST_NS),
    "optional_duration_ms": (6, cells.LONGEST_NS), "real_us": (3, cells.LONGEST_NS),
}  # fmt: skip
_TAKING: Final[Mapping[Kind, Taking]] = {"text": "bare", "quoted": "inside"}
_WHOLE: Final = frozenset({"id", "long_id"})


class ColumnSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Header names in order of preference (case is ignored), the kind of cell, and whether the file is useless without."""

    names: tuple[str, ...]
    kind: Kind
    required: bool = False


Specs = Mapping[str, ColumnSpec]


class CellError(ValueError):
    """A cell that does not parse: its position in the block and why."""

    def __init__(self, index: int, cell: str, reason: str, *, ruined: bool) -> None:
        super().__init__(reason)
        self.index = index
        self.cell = cell
        self.ruined = ruined


def load_aliases() -> Mapping[str, Specs]:
    """The alias map: product file (without ending) to our column names to what the exporters call them."""
    data = Path(__file__).with_name("aliases.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, dict[str, ColumnSpec]])


def resolve(header: Sequence[str], specs: Specs, label: str) -> Mapping[str, int]:
    """Our column names to positions in ``header``; absent columns are left out.

    Raises MalformedInputError when a required column is absent.
    """
    positions: dict[str, int] = {}
    for index, cell in enumerate(header):
        positions.setdefault(cell.strip().casefold(), index)
    found: dict[str, int] = {}
    for column, spec in specs.items():
        hit = next((positions[name.casefold()] for name in spec.names if name.casefold() in positions), None)
        if hit is not None:
            found[column] = hit
        elif spec.required:
            raise MalformedInputError(
                f"{label}:1: no column for {column}", allowed=" or ".join(spec.names), do="export again; the header was cut or renamed"
            )
    return found


def converted(values: Sequence[str], kind: Kind, strings: Strings) -> Array:
    """One column of cells as an array of the kind's dtype. Raises CellError.

    Each distinct cell is parsed once: ratios, ids and names repeat a lot.
    """
    text = _TEXTS.get(kind)
    if text is not None:
        codes = {cell: strings.code(text(cell)) for cell in dict.fromkeys(values)}
        return np.fromiter(map(codes.__getitem__, values), dtype="<i4", count=len(values))
    parse, dtype = _NUMBERS[kind]
    parsed: dict[str, float] = {}
    for cell in dict.fromkeys(values):
        try:
            parsed[cell] = parse(cell)
        except ValueError as error:
            raise CellError(values.index(cell), cell, str(error), ruined=isinstance(error, cells.RuinedCell)) from error
    return np.fromiter(map(parsed.__getitem__, values), dtype=dtype, count=len(values))


def converted_spans(spans: Spans, index: int, kind: Kind, strings: Strings) -> Array:
    """Column ``index`` as an array of the kind's dtype; says the same as ``converted`` of its cells. Raises CellError."""
    starts, ends = np.ascontiguousarray(spans.starts[:, index]), np.ascontiguousarray(spans.ends[:, index])
    if kind in _TEXTS:
        return text_codes(Spans(spans.data, starts, ends, spans.text), _TEXTS[kind], strings, _TAKING.get(kind, "read"))
    parse, dtype = _NUMBERS[kind]
    if len(starts) > 1 and is_constant(spans.data, starts, ends):
        return np.full(len(starts), _parsed(spans.data, starts[:1].tolist(), ends[:1].tolist(), np.zeros(1, int), parse)[0], dtype)
    codes = np.frombuffer(spans.data, np.uint8)
    digits, decimals, plain = plain_decimals(codes, starts, ends)
    if kind in _SCALES:
        power, limit = _SCALES[kind]
        values, sound = scaled_to(digits, decimals, power, limit)
        plain = plain & sound & ((decimals == 0) if kind in _WHOLE else True) & (values < limit)
    else:
        plain = plain & (digits < _LARGEST_EXACT)
        values = np.where(plain, digits, 0) / _EXACT_POWERS[np.where(plain, decimals, 0)]
        values = values / 100 if kind == "percent" else values * 1024 if kind == "kibibytes" else values
    found = values.astype(dtype)
    odd = np.flatnonzero(~plain)
    if len(odd):
        found[odd] = _parsed(spans.data, starts[odd].tolist(), ends[odd].tolist(), odd, parse)
    return found


def _parsed(data: bytes, starts: list[int], ends: list[int], rows: Array, parse: Parse) -> list[float]:
    known: dict[bytes, float] = {}
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        cell = data[start:end]
        if cell not in known:
            text = unquoted(cell)
            try:
                known[cell] = parse(text)
            except ValueError as error:
                raise CellError(int(rows[place]), text, str(error), ruined=isinstance(error, cells.RuinedCell)) from error
    return [known[data[start:end]] for start, end in zip(starts, ends, strict=True)]
