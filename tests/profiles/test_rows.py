"""The quick ways through a CSV say the same as the csv module."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kb.errors import MalformedInputError
from kb.profile.ascend.rows import LONGEST_FIELD, Block, Chunk, block, chunks, ends_inside_a_line, opened, read_header


def read_all(path: Path) -> list[Block]:
    with opened(path, path.name) as handle:
        header, first = read_header(handle, path.name)
        return [block(chunk, len(header), path.name) for chunk in chunks(handle, path.name, first)]


CELLS = st.text(alphabet='a1.,;"\n\t中', max_size=6)


def reference(text: str, width: int) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(text, newline="")) if len(row) == width]


def rows_of(chunk: Chunk, width: int) -> list[list[str]]:
    found = block(chunk, width, "x.csv")
    return [list(row) for row in zip(*(found.cells(column) for column in range(width)), strict=True)]


@given(st.lists(st.lists(CELLS, min_size=2, max_size=4), max_size=8), st.sampled_from(["\n", "\r\n"]))
@example([['"32,3"', "x"], ['";;"', '""']], "\n")
@example([['"1\n2"', "x"]], "\n")
def test_well_formed_tables_read_as_the_csv_module_reads_them(rows: list[list[str]], newline: str) -> None:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator=newline).writerows(rows)
    text = buffer.getvalue()
    for width in (2, 3, 4):
        expected = [[cell.replace("\r\n", "\n") for cell in row] for row in reference(text, width)]
        assert [[cell.replace("\r\n", "\n") for cell in row] for row in rows_of(Chunk(text.encode(), 2), width)] == expected


@given(st.text(alphabet='a,"\n', max_size=24))
@example('""","""\n')
@example('a"""b"""\n')
@example('"""a""""""b""",\n')
def test_odd_quotes_read_as_the_csv_module_reads_them(text: str) -> None:
    if text.count('"') % 2 == 0:
        assert rows_of(Chunk(text.encode(), 1), 2) == reference(text, 2)


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["a,b", "a", "a,b,c", "", '"a\nb",c', '"x""y",z']), min_size=1, max_size=12))
def test_lines_are_those_the_rows_start_on_and_other_widths_are_counted(records: list[str]) -> None:
    found = block(Chunk(("\n".join(records) + "\n").encode(), 2), 2, "x.csv")
    starts, line = [], 2
    for record in records:
        if record and record != "a" and record != "a,b,c":
            starts.append(line)
        line += 1 + record.count("\n")
    assert found.lines.tolist() == starts
    assert found.ragged == sum(record in ("a", "a,b,c") for record in records)


def test_chunks_break_between_records_even_inside_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kb.profile.ascend.rows.CHUNK", 16)
    text = "name,shape\n" + "".join(f'k{index},"line {index}\nmore"\n' for index in range(40))
    path = tmp_path / "x.csv"
    path.write_text(text)
    with opened(path, "x.csv") as handle:
        header, first = read_header(handle, "x.csv")
        pieces = list(chunks(handle, "x.csv", first))
    assert header == ("name", "shape")
    assert len(pieces) > 10
    assert b"".join(piece.data for piece in pieces).decode() == text.split("\n", 1)[1]
    assert [line for piece in pieces for line in block(piece, 2, "x.csv").lines] == list(range(2, 82, 2))


@pytest.mark.parametrize(
    ("data", "line", "word"),
    [
        (b"", 1, "empty"),
        (b"\n\n", 1, "empty"),
        ("a,b\n1,2\n".encode("utf-16"), 1, "UTF-16"),
        (b"a,b\n1,2\n3,\x004\n", 3, "NUL"),
        (b"a,b\n1,2\n\xff,3\n", 3, "UTF-8"),
        (b'a,b\n1,"' + b"x" * (LONGEST_FIELD + 10) + b'"\n', 2, "cell of more"),
        (b"a,b\n1," + b"x" * (8 << 20) + b"\n", 2, "line"),
        (b'a,b\n1,2\n3,"4\n5,6\n7,8\n', 3, "never closed"),
    ],
    ids=["empty", "blank", "utf16", "nul", "latin1", "huge-field", "huge-line", "open-quote"],
)
def test_damage_is_reported_with_its_line(tmp_path: Path, data: bytes, line: int, word: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(data)
    with pytest.raises(MalformedInputError, match=rf"^x\.csv:{line}: .*{word}"):
        read_all(path)


def test_the_csv_field_limit_of_the_process_is_put_back() -> None:
    before = csv.field_size_limit()
    block(Chunk(b'a,"b"c\n', 1), 2, "x.csv")
    assert csv.field_size_limit() == before


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"\xef\xbb\xbfStep Id,Name\r\n")
    with opened(path, "x.csv") as handle:
        assert read_header(handle, "x.csv") == (("Step Id", "Name"), 2)


@pytest.mark.parametrize(("data", "cut"), [(b"a\n", False), (b"a", True), (b"", False)])
def test_a_missing_last_line_break_is_seen(tmp_path: Path, data: bytes, cut: bool) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(data)
    with opened(path, "x.csv") as handle:
        assert ends_inside_a_line(handle) is cut
        assert handle.read() == data
