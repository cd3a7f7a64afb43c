"""Whole columns of text become the numbers that exact arithmetic gives, cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kb.profile.ascend.columns import CellError, Kind, converted, converted_spans
from kb.profile.ascend.rows import Spans
from kb.profile.decimals import plain_decimals, scaled_to
from kb.session.builder import Strings

PLAIN = st.from_regex(r"[0-9]{0,20}(\.[0-9]{0,20})?[\t ]?", fullmatch=True)
ODD = st.text(alphabet="0123456789.:/eE+-\x7f\xff ,NA", max_size=24)
LONGEST = 19
KINDS: tuple[Kind, ...] = ("id", "long_id", "timestamp", "optional_timestamp", "duration", "optional_duration", "duration_ms",
                           "optional_duration_ms", "real", "real_us", "percent", "kibibytes")  # fmt: skip


def placed(cells: Sequence[str], before: int = 24) -> tuple[bytes, np.ndarray, np.ndarray]:
    """The cells one after the other, each with a separator behind it, and where they stand."""
    raws = [cell.encode("latin-1") for cell in cells]
    starts = before + np.cumsum([0, *(len(raw) + 1 for raw in raws)])[:-1]
    return b" " * before + b"".join(raw + b"," for raw in raws), starts, starts + np.array([len(raw) for raw in raws], np.int64)


@given(st.lists(st.one_of(PLAIN, ODD), min_size=1, max_size=12), st.sampled_from([0, 5, 24]))
@example(["1736408883704643.212\t", "9999999999999999999", ".9999999999999999999", "8999999999999999999", "1.2.3", ".", "1:2"], 24)
@example(["1.5", "0.25", "12345678", ".5", "5.", "1..2", ""], 24)
def test_plain_cells_are_exact_and_nothing_else_is_plain(cells: list[str], before: int) -> None:
    data, starts, ends = placed(cells, before)
    digits, decimals, plain = plain_decimals(np.frombuffer(data, np.uint8), starts, ends)
    for cell, value, places, easy in zip(cells, digits.tolist(), decimals.tolist(), plain.tolist(), strict=True):
        text = cell.rstrip(" \t")
        number = text.replace(".", "", 1)
        sound = number.isascii() and number.isdigit() and text.count(".") <= 1
        if easy:
            assert sound
            assert Decimal(value).scaleb(-places) == Decimal(text)
        else:
            assert (value, places) == (0, 0)
            assert not sound or len(number) >= LONGEST or before < 24 or len(cell) - len(text) > 2


@given(st.lists(st.tuples(st.integers(0, 10**17), st.integers(0, 17)), min_size=1, max_size=8), st.sampled_from([0, 3, 6]))
def test_scaling_columns_rounds_half_up_as_decimals_do(numbers: list[tuple[int, int]], power: int) -> None:
    digits, decimals = (np.array(column, np.int64) for column in zip(*numbers, strict=True))
    values, sound = scaled_to(digits, decimals, power, 2**62)
    for (value, places), found, exact in zip(numbers, values.tolist(), sound.tolist(), strict=True):
        if exact:
            assert found == int((Decimal(value).scaleb(power - places) + Decimal("0.5")).to_integral_value("ROUND_FLOOR"))


CELLS = st.one_of(
    st.integers(0, 2**31 - 1).map(str), st.decimals(0, 10**9, places=3).map(str), st.floats(0, 1e6).map(repr), st.sampled_from(
        ["N/A", "NA", "", "0", "0.000", "1736408883704643.212\t", "1e-05", "-1", "1.69512E+15", "x", "9" * 25, "1_0", '"5"', '"1,5"']
    ),
)  # fmt: skip


def outcome(read: Callable[[], np.ndarray]) -> np.ndarray | tuple[str, str]:
    """The column, or the cell that was refused and why."""
    try:
        return read()
    except CellError as error:
        return error.cell, str(error)


@settings(max_examples=200)
@given(st.one_of(st.lists(CELLS, min_size=1, max_size=10), CELLS.flatmap(lambda cell: st.integers(1, 9).map(lambda n: [cell] * n))),
       st.sampled_from(KINDS))  # fmt: skip
def test_a_column_reads_as_its_cells_one_by_one(cells: list[str], kind: Kind) -> None:
    data, starts, ends = placed(cells)
    spans = Spans(data, starts[:, None], ends[:, None], data.decode())
    texts = [cell[1:-1] if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell for cell in cells]
    found, expected = outcome(lambda: converted_spans(spans, 0, kind, Strings())), outcome(lambda: converted(texts, kind, Strings()))
    if isinstance(expected, np.ndarray) and isinstance(found, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    else:
        assert found == expected


NAMED = ("N/A", "NA", "Nop", "FORMAT_ND", "HCCL", "hccl", "constant_text")
TEXTS = st.one_of(st.text(alphabet="aZ09_/.:;,中N \t\x1c\x7f", max_size=10), st.sampled_from(NAMED))
TEXT_KINDS: tuple[Kind, ...] = ("text", "quoted", "format", "core", "layer")


@settings(max_examples=200)
@given(st.lists(TEXTS, min_size=1, max_size=8), st.booleans(), st.booleans(), st.sampled_from(TEXT_KINDS))
def test_text_columns_read_as_their_cells_one_by_one(cells: list[str], repeated: bool, shaped: bool, kind: Kind) -> None:
    values = [f'"{cell}"' if shaped and place % 3 else cell for place, cell in enumerate(cells * (3 if repeated else 1))]
    raws = ['"' + value.replace('"', '""') + '"' if '"' in value or "," in value else value for value in values]
    data = b"".join(raw.encode() + b"\n" for raw in raws)
    lengths = np.array([len(raw.encode()) for raw in raws])
    starts = np.concatenate([[0], np.cumsum(lengths + 1)[:-1]])
    spans = Spans(data, starts[:, None], (starts + lengths)[:, None], data.decode() if data.isascii() else None)
    first, second = Strings(), Strings()
    found = [first.frozen()[code] if code >= 0 else None for code in converted_spans(spans, 0, kind, first).tolist()]
    expected = [second.frozen()[code] if code >= 0 else None for code in converted(values, kind, second).tolist()]
    assert found == expected
