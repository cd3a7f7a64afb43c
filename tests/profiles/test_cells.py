"""Cells become exact integers, and nothing that is not a number passes for one."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.profile.ascend import cells
from kb.profile.decimals import scaled


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("1764246877073569.640\t", 1_764_246_877_073_569_640),
        ("1695115378713661", 1_695_115_378_713_661_000),
        ("1695115378715400.2", 1_695_115_378_715_400_200),
        ("9223372036854.775", 9_223_372_036_854_775),
    ],
)
def test_timestamps_are_exact(cell: str, expected: int) -> None:
    assert cells.timestamp(cell) == expected


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("231290.09999999995", 231_290_100),
        ("0.0004", 0),
        ("0.0005", 1),
        ("-0.0005", -1),
        ("-1.4551915228366852e-11", 0),
        ("2e-05", 0),
        ("1881.080000", 1_881_080),
        ("0", 0),
        (".5", 500),
        ("5.", 5_000),
    ],
)
def test_durations_round_to_the_nearest_ns(cell: str, expected: int) -> None:
    assert cells.duration(cell) == expected


@given(st.decimals(min_value=-(10**9), max_value=10**9, places=9))
def test_scaling_agrees_with_decimal_arithmetic(number: Decimal) -> None:
    assert scaled(f"{number:f}", 3) == int((number * 1000).to_integral_value(ROUND_HALF_UP))


@pytest.mark.parametrize(
    "cell", ["", "N/A", "abc", "1_000.5", "１２.5", "nan", "inf", "--1", "1.2.3", "0x10", "-5", "9" * 70, "4611686018427388"]
)
def test_what_is_no_timestamp_is_refused(cell: str) -> None:
    with pytest.raises(ValueError):
        cells.timestamp(cell)


def test_a_spreadsheet_timestamp_is_told_apart() -> None:
    with pytest.raises(cells.RuinedCell):
        cells.timestamp("1.69512E+15")


@pytest.mark.parametrize("cell", ["1e999", "nan", "inf", "1_0", "x", "１"])
def test_what_is_no_real_number_is_refused(cell: str) -> None:
    with pytest.raises(ValueError):
        cells.real(cell)


@pytest.mark.parametrize("cell", ["", "N/A", "NA", " \t"])
def test_missing_cells_are_missing_values(cell: str) -> None:
    assert math.isnan(cells.real(cell))
    assert cells.whole_number(cell, 10) == -1
    assert cells.optional_duration(cell) == -1
    assert cells.plain(cell) is None


@pytest.mark.parametrize("cell", ["-3", "2.0", "11", "1e1", "9" * 80])
def test_what_is_no_small_whole_number_is_refused(cell: str) -> None:
    with pytest.raises(ValueError):
        cells.whole_number(cell, 10)


@pytest.mark.parametrize(
    ("cell", "expected"), [('"32,3,224,224"', "32,3,224,224"), ('";;"', ";;"), ('""', None), ("N/A", None), ('"', '"')]
)
def test_shapes_lose_their_second_pair_of_quotes(cell: str, expected: str | None) -> None:
    assert cells.quoted(cell) == expected


def test_formats_use_the_new_spelling() -> None:
    assert cells.layout_format("FORMAT_ND;NC1HWC0:1;FORMAT_ND") == "ND;NC1HWC0:1;ND"
