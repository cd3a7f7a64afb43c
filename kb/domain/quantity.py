"""Numbers with units, and the one table of units the product understands."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from kb.errors import UsageError

# unit -> (dimension, factor to the dimension's base unit). Decimal prefixes are powers of ten, as in
# profiler files (MB = 1e6 B); the IEC spellings (MiB) are powers of two. `ratio` is 0..1 and base of `%`.
UNITS: Final[dict[str, tuple[str, float]]] = {
    "ns": ("time", 1.0), "us": ("time", 1e3), "µs": ("time", 1e3), "ms": ("time", 1e6), "s": ("time", 1e9), "min": ("time", 6e10),
    "h": ("time", 3.6e12), "d": ("time", 8.64e13),
    "B": ("bytes", 1.0), "kB": ("bytes", 1e3), "KB": ("bytes", 1e3), "MB": ("bytes", 1e6), "GB": ("bytes", 1e9), "TB": ("bytes", 1e12),
    "KiB": ("bytes", 2.0**10), "MiB": ("bytes", 2.0**20), "GiB": ("bytes", 2.0**30),
    "B/s": ("bandwidth", 1.0), "MB/s": ("bandwidth", 1e6), "GB/s": ("bandwidth", 1e9), "TB/s": ("bandwidth", 1e12),
    "/s": ("rate", 1.0), "/min": ("rate", 1.0 / 60.0),
    "Hz": ("frequency", 1.0), "MHz": ("frequency", 1e6), "GHz": ("frequency", 1e9),
    "FLOP/s": ("compute", 1.0), "TFLOP/s": ("compute", 1e12), "TFLOPS": ("compute", 1e12),
    "W": ("power", 1.0), "kW": ("power", 1e3), "J": ("energy", 1.0), "kJ": ("energy", 1e3), "Wh": ("energy", 3600.0),
    "C": ("temperature", 1.0), "°C": ("temperature", 1.0),
    "ratio": ("ratio", 1.0), "%": ("ratio", 0.01),
    "count": ("count", 1.0),
}  # fmt: skip

_QUANTITY = re.compile(r"\s*([-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(\S*)\s*\Z")

_ENDLESS = re.compile(r"[-+]?(?:nan|inf|infinity)\s*(\S*)", re.IGNORECASE)
_SIGNED = ("ratio", "temperature")


class Quantity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value and its unit (a key of ``UNITS``)."""

    value: float
    unit: str

    def to(self, unit: str) -> float:
        """This value in ``unit``. Raises UsageError when the dimensions differ or a unit is unknown."""
        mine, factor = dimension(self.unit)
        other, base = dimension(unit)
        if mine != other:
            raise UsageError(f"{self.unit} is a {mine}, {unit} is a {other}", do="compare like with like")
        return self.value * factor / base

    def __str__(self) -> str:
        return f"{self.value:g} {self.unit}"


def dimension(unit: str) -> tuple[str, float]:
    """Dimension of a unit and its factor to the base unit. Raises UsageError for an unknown one."""
    try:
        return UNITS[unit]
    except KeyError:
        raise UsageError(f"unknown unit {unit!r}", allowed=", ".join(UNITS), do="write the number with one of these units") from None


def parse_quantity(text: str, *, default_unit: str | None = None) -> Quantity:
    """Read ``100ms``, ``2.5 GB`` or ``150/s``. A bare number takes ``default_unit`` or is refused."""
    match = _QUANTITY.match(text)
    if match is None:
        raise UsageError(f"{text!r} is not a quantity", allowed="a number and a unit, as in 100ms, 2.5GB, 150/s")
    unit = match[2] or default_unit
    if unit is None:
        raise UsageError(f"{text!r} has no unit", allowed=", ".join(UNITS))
    dimension(unit)
    return Quantity(value=float(match[1].replace(",", "")), unit=unit)


def noted(text: str) -> str:
    """``text`` as somebody noted a figure, trimmed: words, a number, or a number with a unit.

    Raises UsageError for what no figure can be: nan, infinity, a time, size or rate below zero.
    """
    found = text.strip()
    endless = _ENDLESS.fullmatch(found)
    if endless is not None and (not endless[1] or endless[1] in UNITS):
        raise UsageError(f"{found!r} is not a figure", allowed="a finite number, as in 90ms or 35%")
    match = _QUANTITY.match(found)
    if match is not None and match[2] in UNITS and UNITS[match[2]][0] not in _SIGNED and float(match[1].replace(",", "")) < 0:
        raise UsageError(f"{found!r} is below zero", allowed="0 or more, as in 90ms")
    return found
