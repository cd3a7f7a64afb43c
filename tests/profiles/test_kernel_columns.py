"""Random valid kernel files in every column set are read back as they were meant."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles.ascend_writer import BASE_NS, COLUMN_SETS, Kernel, csv_text, kernel_csv, small_kernels, write_rank

from kb.errors import MalformedInputError
from kb.profile.ascend.cells import MISSING
from kb.profile.ascend.columns import load_aliases
from kb.profile.ascend.kernel_details import KernelFile, read_kernels
from kb.profile.ascend.metrics import load_metrics
from kb.profile.sources import load
from kb.session.builder import Strings
from kb.session.schema import TABLES

NAMES = st.text(alphabet='aZ09_/.:,"-\n中', min_size=1, max_size=12).filter(lambda text: text.strip() == text and text not in MISSING)
SHAPES = st.lists(st.lists(st.integers(1, 9000).map(str), max_size=4).map(",".join), min_size=1, max_size=4).map(";".join)
RATIOS = st.floats(0, 3, allow_nan=False).map(lambda value: round(value, 3))
METRICS = st.dictionaries(st.sampled_from(["aic_mac_ratio", "aic_mte2_ratio", "aiv_vec_ratio", "aiv_mte3_ratio"]), RATIOS, max_size=4)


@st.composite
def kernels(draw: st.DrawFn) -> list[Kernel]:
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        communicating = draw(st.booleans())
        rows.append(
            Kernel(
                name=("hcom_" if communicating else "") + draw(NAMES),
                start_ns=BASE_NS + draw(st.integers(0, 10**12)),
                duration_ns=draw(st.integers(0, 10**12)),
                op_type=draw(NAMES),
                core="COMMUNICATION"
                if communicating
                else draw(st.sampled_from(["AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "AI_CPU", "DSA_SQE"])),
                wait_ns=draw(st.integers(0, 10**12)),
                step=draw(st.sampled_from(["13", "14"])),
                stream=draw(st.integers(0, 2**31 - 1)),
                task_id=draw(st.integers(0, 2**40)),
                block=draw(st.integers(0, 512)),
                shapes=draw(SHAPES),
                metrics=draw(METRICS),
            )
        )
    return rows


def read(text: str, column_set: str) -> tuple[KernelFile, Strings]:
    strings = Strings()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel_details.csv"
        path.write_text(text, encoding="utf-8", newline="")
        return read_kernels(path, "kernel_details.csv", load_aliases()["kernel_details"], strings, load_metrics()), strings


def expected_line(rows: Sequence[Kernel], index: int, text: str) -> int:
    """The line the record starts on: one for the header, and one more for every line break in a name before it."""
    return 2 + index + sum(row.name.count("\n") + ("Type" in text) * row.op_type.count("\n") for row in rows[:index])


@pytest.mark.parametrize("column_set", sorted(COLUMN_SETS))
@settings(max_examples=15, deadline=None)
@given(rows=kernels(), newline=st.sampled_from(["\n", "\r\n"]))
def test_what_is_written_is_what_is_read(column_set: str, rows: list[Kernel], newline: str) -> None:
    text = kernel_csv(rows, column_set, newline=newline)
    file, strings = read(text, column_set)
    table, known = file.part.table, strings.frozen()
    assert table is not None
    order = sorted(range(len(rows)), key=lambda index: rows[index].start_ns)
    ordered = [rows[index] for index in order]
    assert table["start_ns"].tolist() == [row.start_ns for row in ordered]
    assert table["duration_ns"].tolist() == [row.duration_ns for row in ordered]
    assert table["wait_ns"].tolist() == [row.wait_ns for row in ordered]
    assert table["block"].tolist() == [-1 if row.core == "COMMUNICATION" and row.block == 0 else row.block for row in ordered]
    assert [known[code] for code in table["name"]] == [row.name for row in ordered]
    assert [known[code] for code in table["op_type"]] == [row.op_type for row in ordered]
    assert [known[code] for code in table["core"]] == [row.core for row in ordered]
    assert table["row"].tolist() == [expected_line(rows, index, text) for index in order]
    header = COLUMN_SETS[column_set]
    if "Step Id" in header:
        assert [known[code] for code in table["step_id"]] == [row.step for row in ordered]
    if "Input Shapes" in header:
        shapes = [None if code < 0 else known[code] for code in table["input_shapes"]]
        assert shapes == [None if row.core == "COMMUNICATION" else row.shapes or None for row in ordered]
        assert table["stream"].tolist() == [-1 if row.core == "COMMUNICATION" else row.stream for row in ordered]
    for metric in ("aic_mac_ratio", "aiv_mte3_ratio"):
        if metric in header:
            expected = [math.nan if row.core == "COMMUNICATION" else (row.metrics or {}).get(metric, math.nan) for row in ordered]
            assert np.array_equal(table[metric], expected, equal_nan=True)


@pytest.mark.parametrize("column_set", sorted(COLUMN_SETS))
def test_every_column_set_makes_a_sound_session(tmp_path: Path, column_set: str) -> None:
    (session,) = load(write_rank(tmp_path / "rank_0_ascend_pt", 0, column_set=column_set))
    assert session.self_check() == []
    assert session.meta.violations == ()


def test_alias_targets_are_columns_of_the_schema() -> None:
    spec = TABLES["kernels"]
    assert {name for name in load_aliases()["kernel_details"] if spec.column(name) is None} == {"device"}


def test_communication_is_told_by_its_name_where_no_core_is_exported() -> None:
    rows = [Kernel("hcom_allReduce__1", BASE_NS, 10, "N/A", "N/A"), Kernel("aclnnAdd", BASE_NS + 20, 10, "N/A", "N/A")]
    file, strings = read(kernel_csv(rows, "level0"), "level0")
    assert file.part.table is not None
    assert file.part.table["core"].tolist() == [strings.code("COMMUNICATION"), -1]


def test_old_spellings_of_communication_mean_the_same() -> None:
    rows = [
        Kernel("a", BASE_NS, 1, core="HCCL"),
        Kernel("b", BASE_NS, 1, core="communication"),
        Kernel("c", BASE_NS, 1, core="COMMUNICATION"),
    ]
    file, strings = read(kernel_csv(rows, "memory_l0"), "memory_l0")
    assert file.part.table is not None
    assert set(file.part.table["core"].tolist()) == {strings.code("COMMUNICATION")}


def test_the_newer_block_name_wins_where_both_exist() -> None:
    text = csv_text(["Name", "Start Time(us)", "Duration(us)", "Block Dim", "Block Num"], [["a", "1.000", "1.000", "64", "20"]])
    file, _ = read(text, "")
    assert file.part.table is not None
    assert file.part.table["block"].tolist() == [20]


def test_mixed_old_and_new_names_resolve() -> None:
    text = csv_text(["op name", "Start Time(us)", "Task Duration(us)"], [["a", "1.000", "2.500"]])
    file, _ = read(text, "")
    assert file.part.table is not None
    assert file.part.table["duration_ns"].tolist() == [2500]


def test_a_negative_duration_is_dropped_counted_and_confessed() -> None:
    text = kernel_csv(small_kernels(), "pipe_2025").replace("20.125", "-20.125")
    file, _ = read(text, "pipe_2025")
    assert file.part.table is not None
    assert (len(file.part.table), file.part.dropped) == (4, 1)
    assert file.part.violations[0].difference_ns == -20_125
    assert "kernel_details.csv:3" in file.part.violations[0].detail


def test_a_ragged_row_is_dropped_and_counted() -> None:
    lines = kernel_csv(small_kernels(), "pipe_2025").splitlines(keepends=True)
    lines[2] = lines[2].replace("Cast,", "", 1)
    file, _ = read("".join(lines), "pipe_2025")
    assert file.part.table is not None
    assert (len(file.part.table), file.part.dropped) == (4, 1)
    assert file.part.table["row"].tolist() == [2, 4, 5, 6]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("1764246877000000.000\t", "1.76425E+15", r":2: Start Time\(us\) '1.76425E\+15': a spreadsheet"),
        ("20.125", "abc", r":3: Duration\(us\) 'abc'"),
        ("9.875", "NaN", r":4: Wait Time\(us\) 'NaN'"),
        ("0.61", "inf", ":2: aic_mac_ratio 'inf'"),
        ("Start Time(us)", "Start", ":1: no column for start_ns"),
        (",20,", ",99999999999,", ":2: Block Num '99999999999': larger"),
        ("100.250", "9999999999999.000", r":2: Duration\(us\).*too long"),
    ],
)
def test_a_broken_cell_is_named_with_file_row_and_column(before: str, after: str, message: str) -> None:
    text = kernel_csv(small_kernels(), "pipe_2025")
    assert before in text
    with pytest.raises(MalformedInputError, match="^kernel_details.csv" + message):
        read(text.replace(before, after, 1), "pipe_2025")


def test_unprefixed_counters_of_older_products_are_read_and_claim_no_family(tmp_path: Path) -> None:
    folder = write_rank(tmp_path / "rank_0_ascend_pt", 0)
    text = csv_text(["Name", "Start Time(us)", "Duration(us)", "mac_ratio", "vec_ratio"], [["a", "1.000", "2.000", "0.5", "0.25"]])
    (folder / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").write_text(text)
    (session,) = load(folder)
    assert session.tables["kernels"]["aic_mac_ratio"].tolist() == [0.5]
    assert session.tables["kernels"]["aiv_vec_ratio"].tolist() == [0.25]
    assert session.meta.soc.family == "unknown"
