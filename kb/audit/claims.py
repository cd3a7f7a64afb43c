"""Stated figures, as an author wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Literal

import msgspec

from kb.domain.quantity import UNITS, Quantity
from kb.domain.soc import SocFamily
from kb.domain.text import Text

When = Literal["before", "after", "change", "target", "part", "whole", "share", "sample", "any"]
"""``change`` is signed and relative, ``target`` a limit the author set, ``part`` and ``whole`` two counts of which ``share`` is
the quotient, ``sample`` one of several readings that may differ."""
Bound = Literal["", "max", "min"]
Severity = Literal["high", "medium", "low"]

WORK_DAY_H: Final = 8.0
"""Hours in a person-day."""
_EXTRA: Final[dict[str, tuple[str, float]]] = {
    "person_d": ("time", WORK_DAY_H * UNITS["h"][1]),
    "x": ("factor", 1.0),
    "": ("count", 1.0),
}


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One stated figure.

    ``subject`` is the part it speaks about, empty for the whole. ``value`` in ``unit`` (a key of ``UNITS``, ``x`` for a
    factor, ``person_d`` for working days, empty for a count); ``upper`` is the other end of a range; ``values`` a set or shape.
    ``step`` is one unit of the last printed digit. ``constant`` marks a number that stands in source code instead of being
    measured. ``source`` quotes the place.
    """

    metric: str
    value: float = 0.0
    unit: str = ""
    subject: str = ""
    when: When = "any"
    bound: Bound = ""
    upper: float | None = None
    values: tuple[float, ...] = ()
    step: float = 0.0
    constant: bool = False
    source: str = ""

    @property
    def base(self) -> float:
        """The value in base units (ns, B, B/s, 1/s, ratio, ..)."""
        return self.value * self.factor

    @property
    def half(self) -> float:
        """Half a unit of the last printed digit, in base units: what rounding may hide."""
        return self.step * self.factor / 2

    @property
    def factor(self) -> float:
        """Base units in one ``unit``."""
        return (_EXTRA.get(self.unit) or UNITS[self.unit])[1]

    def __str__(self) -> str:
        if self.upper is not None:
            return f"{self.value:,g}-{self.upper:,g} {self.unit}".strip()
        shown = self.value
        return f"{shown:,.6g} {self.unit}".strip()


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """What is claimed about one scenario. ``soc`` is the chip as named; ``strategies`` are catalogue ids.

    ``merged`` sheets join several cases of one record: the same quantity may then differ between cases.
    """

    claims: tuple[Claim, ...]
    soc: str = ""
    soc_family: SocFamily = "unknown"
    model: str = ""
    devices: int | None = None
    strategies: tuple[str, ...] = ()
    merged: bool = False

    def all(self, metric: str, when: When | None = None, subject: str | None = None) -> tuple[Claim, ...]:
        """Claims of ``metric``, of any moment and subject unless given."""
        return tuple(
            item
            for item in self.claims
            if item.metric == metric and (when is None or item.when == when) and (subject is None or item.subject == subject)
        )

    def one(self, metric: str, when: When, subject: str = "") -> Claim | None:
        """The first such claim."""
        return next(iter(self.all(metric, when, subject)), None)

    def subjects(self) -> tuple[str, ...]:
        """Every part spoken about, in order of mention."""
        return tuple(dict.fromkeys(item.subject for item in self.claims if item.subject))


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One doubt: the rule's name, the formula with the numbers in it, and how much it weighs."""

    rule: str
    severity: Severity
    formula: str
    text: Text


Rule = Callable[[Sheet], Iterator[Note]]


def decimals_step(text: str) -> float:
    """One unit of the last printed digit of a number as printed: 0.01 for ``1.52``, 1 for ``1,520``."""
    fraction = text.replace(",", "").partition(".")[2]
    return 10.0 ** -len(fraction)


def claim_of(metric: str, quantity: Quantity, **more: object) -> Claim:
    """A claim from a stored quantity, whose printed form is the shortest that reads back."""
    return Claim(metric=metric, value=quantity.value, unit=quantity.unit, step=decimals_step(f"{quantity.value:.12g}"), **more)  # type: ignore[arg-type]
