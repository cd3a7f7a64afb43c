"""Quantities: parsing, conversion, refusal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.domain.quantity import UNITS, Quantity, dimension, parse_quantity
from kb.errors import UsageError

_UNITS = st.sampled_from(sorted(UNITS))


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [("100ms", 100, "ms"), ("2.5 GB", 2.5, "GB"), ("150/s", 150, "/s"), ("1,520 ms", 1520, "ms"), ("-3%", -3, "%"), ("1e3us", 1000, "us")],
)
def test_reads_what_people_write(text: str, value: float, unit: str) -> None:
    assert parse_quantity(text) == Quantity(value, unit)


@pytest.mark.parametrize("text", ["", "ms", "12 parsecs", "1..2 ms", "ten ms", "5", "NaN ms", "inf s", "1\n2 ms"])
def test_refuses_what_is_no_quantity(text: str) -> None:
    with pytest.raises(UsageError):
        parse_quantity(text)


def test_a_bare_number_takes_the_default_unit() -> None:
    assert parse_quantity("5", default_unit="ms") == Quantity(5, "ms")


def test_different_dimensions_do_not_convert() -> None:
    with pytest.raises(UsageError, match="time"):
        Quantity(1, "ms").to("GB")


@given(st.floats(-1e9, 1e9, allow_nan=False), _UNITS, _UNITS)
def test_conversion_there_and_back_is_the_same_value(value: float, unit: str, other: str) -> None:
    if dimension(unit)[0] != dimension(other)[0]:
        return
    there = Quantity(Quantity(value, unit).to(other), other)
    assert there.to(unit) == pytest.approx(value, rel=1e-12, abs=1e-9)


@given(st.floats(0, 1e12, allow_nan=False), _UNITS)
def test_what_is_printed_can_be_read_again(value: float, unit: str) -> None:
    shown = Quantity(float(f"{value:g}"), unit)
    assert parse_quantity(str(shown)) == shown
