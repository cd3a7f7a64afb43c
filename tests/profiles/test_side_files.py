"""Communication, host calls and memory: units, gaps and damage."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from profiles.ascend_writer import BASE_NS, OUTPUT, csv_text, write_rank

from kb.errors import MalformedInputError
from kb.profile.sources import load
from kb.session.session import Session


@pytest.fixture
def rank(tmp_path: Path) -> Path:
    return write_rank(tmp_path / "rank_0_ascend_pt", 0)


def one(rank: Path) -> Session:
    (session,) = load(rank)
    return session


def test_communication_operators_have_exact_times_and_their_group(rank: Path) -> None:
    session = one(rank)
    operators = session.tables["comm_ops"]
    assert len(operators) == 1
    assert int(operators["start_ns"][0]) == BASE_NS + 140_000
    assert [int(operators[name][0]) for name in ("duration_ns", "transit_ns", "wait_ns", "sync_ns", "idle_ns")] == [
        500_000,
        0,
        20,
        0,
        500_000,
    ]
    assert [session.text(int(operators[name][0])) for name in ("name", "kind", "group", "step_id")] == [
        "hcom_allReduce__586_0_1",
        "collective",
        "398531",
        "13",
    ]
    assert operators["bytes"][0] == pytest.approx(3.5e6)
    assert int(operators["row"][0]) == 1


def test_the_row_of_a_communication_operator_is_its_line(rank: Path) -> None:
    path = rank / OUTPUT / "communication.json"
    path.write_text(json.dumps(json.loads(path.read_text()), indent=1))
    lines = path.read_text().split("\n")
    row = int(one(rank).tables["comm_ops"]["row"][0])
    assert "hcom_allReduce__586_0_1@398531" in lines[row - 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: len(text) // 2], r"communication\.json:1"),
        (lambda text: text.replace("2e-05", '"soon"'), r"step13\.collective\.hcom_allReduce__586_0_1@398531: Wait Time\(ms\)"),
        (lambda text: text.replace("2e-05", "-5"), "out of range"),
        (lambda text: text.replace("2e-05", "1e300"), "too large"),
        (lambda text: text.replace('"Transit Size(MB)": 2.5', '"Transit Size(MB)": -1'), r"Transit Size\(MB\) out of range"),
        (lambda text: text.replace('"Transit Size(MB)": 2.5', '"Transit Size(MB)": "x"'), r"communication\.json:1: .*\$"),
        (lambda text: text.replace('"Elapse Time(ms)"', '"Elapse"'), r"communication\.json:1: .*Elapse Time"),
        (lambda text: "[" * 100_000, r"communication\.json:1"),
        (lambda text: "[]", r"communication\.json:1"),
        (lambda text: "", r"communication\.json:1"),
    ],
)
def test_broken_communication_files_are_named(rank: Path, change: Callable[[str], str], message: str) -> None:
    path = rank / OUTPUT / "communication.json"
    path.write_text(change(path.read_text()))
    with pytest.raises(MalformedInputError, match=message):
        load(rank)


def test_host_calls_carry_the_new_layer_name(rank: Path) -> None:
    session = one(rank)
    totals = session.tables["api_totals"]
    assert (session.text(int(totals["layer"][0])), int(totals["total_ns"][0]), int(totals["max_ns"][0])) == (
        "communication",
        474_410,
        138_750,
    )


def test_memory_samples_become_counters_with_their_unit(rank: Path) -> None:
    session = one(rank)
    counters = session.tables["counters"]
    assert {session.text(int(code)) for code in counters["name"]} == {"PTA allocated [MiB]", "PTA reserved [MiB]"}
    assert len(counters) == 8
    assert not any(map(math.isnan, counters["value"]))


def test_blocks_without_release_live_to_the_end(rank: Path) -> None:
    blocks = one(rank).tables["allocations"]
    assert blocks["end_ns"].tolist() == [-1, BASE_NS + 9]
    assert blocks["bytes"].tolist() == [512.0, 33_280.0]


@pytest.mark.parametrize(("name", "what"), [("memory_record.csv", "counters"), ("operator_memory.csv", "allocations")])
def test_ruined_memory_timestamps_are_a_gap_not_an_error(rank: Path, name: str, what: str) -> None:
    path = rank / OUTPUT / name
    path.write_text(path.read_text().replace("1764246877000000.000\t", "1.76425E+15"))
    session = one(rank)
    assert what not in session.tables
    gap = next(missing for missing in session.meta.missing if missing.what == what)
    assert f"{name}:2" in gap.why.en
    assert gap.capture


@pytest.mark.parametrize("name", ["memory_record.csv", "operator_memory.csv", "api_statistic.csv", "step_trace_time.csv"])
def test_other_damage_of_a_side_file_is_an_error_with_its_row(rank: Path, name: str) -> None:
    path = rank / OUTPUT / name
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], ",".join("?" for _ in lines[0].split(","))]) + "\n")
    with pytest.raises(MalformedInputError, match=rf"{name}:2: "):
        load(rank)


@pytest.mark.parametrize(
    "name",
    ["kernel_details.csv", "communication.json", "api_statistic.csv", "memory_record.csv", "operator_memory.csv", "step_trace_time.csv"],
)
def test_an_absent_file_is_a_gap_with_its_recipe(rank: Path, name: str) -> None:
    before = set(one(rank).tables)
    (rank / OUTPUT / name).unlink()
    session = one(rank)
    (lost,) = before - set(session.tables)
    gap = next(missing for missing in session.meta.missing if missing.what == lost)
    assert name in gap.why.en
    assert gap.capture


def test_a_header_without_rows_is_a_gap(rank: Path) -> None:
    path = rank / OUTPUT / "kernel_details.csv"
    path.write_text(path.read_text().split("\n")[0] + "\n")
    session = one(rank)
    assert session.table("kernels") is None
    assert "kernels" in {missing.what for missing in session.meta.missing}


def test_totals_that_disagree_with_the_kernels_are_a_violation(rank: Path) -> None:
    path = rank / OUTPUT / "step_trace_time.csv"
    header, row = path.read_text().splitlines()
    cells = row.split(",")
    cells[2] = str(float(cells[2]) + 5)
    path.write_text(f"{header}\n{','.join(cells)}\n")
    found = {violation.oracle: violation.difference_ns for violation in one(rank).meta.violations}
    assert found == {
        "sum of computing kernels = Computing": -5_000,
        "Computing + Communication(Not Overlapped) + Free = Stage + Bubble": 5_000,
    }


def test_steps_of_no_name_leave_the_step_unmarked(rank: Path) -> None:
    for name in ("step_trace_time.csv", "kernel_details.csv"):
        path = rank / OUTPUT / name
        header, *rows = path.read_text().splitlines()
        path.write_text("\n".join([header, *(row.replace("13,", ",", 1) for row in rows)]) + "\n")
    session = one(rank)
    assert session.tables["step_trace"]["step_id"].tolist() == [-1]
    assert "steps" not in session.tables
    assert session.meta.violations == ()


def test_totals_of_old_exports_without_bubble_are_read(rank: Path) -> None:
    text = csv_text(["Step", "Computing", "Communication(Not Overlapped)", "Free", "Stage"], [["13", "1.0", "2.0", "3.0", "6.0"]])
    (rank / OUTPUT / "step_trace_time.csv").write_text(text)
    (rank / OUTPUT / "kernel_details.csv").unlink()
    session = one(rank)
    assert session.tables["step_trace"]["bubble_ns"].tolist() == [-1]
    assert session.meta.violations == ()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("profiler_info_0.json", '{"rank_id": "first"}'),
        ("profiler_info_0.json", '{"rank_id": [1]}'),
        ("profiler_info_0.json", '{"config": 3}'),
        ("profiler_metadata.json", '{"distributed_args": {"world_size": "four"}}'),
        ("profiler_metadata.json", '{"parallel_group_info": {"g": {"global_ranks": "all"}}}'),
        ("profiler_metadata.json", "\x00"),
        ("profiler_metadata.json", "{"),
    ],
)
def test_broken_information_files_are_named(rank: Path, name: str, text: str) -> None:
    (rank / name).write_text(text)
    with pytest.raises(MalformedInputError, match=rf"^{name}:1: "):
        load(rank)
