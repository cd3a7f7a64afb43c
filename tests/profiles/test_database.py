"""Database exports: read without touching a byte, whatever a viewer added, and never trusted."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from profiles.ascend_writer import write_rank

from kb.errors import MalformedInputError
from kb.profile.ascend.database import opened
from kb.profile.ascend.writing_db import write_rank_database
from kb.profile.sources import load, sniff
from kb.session.session import Session

SAMPLE = "cnn-ddp-2rank-db"


@pytest.fixture
def sample(shared: Path) -> Path:
    return shared / "data" / "profiles" / "ascend" / SAMPLE


@pytest.fixture
def written(tmp_path: Path) -> Path:
    (session,) = load(write_rank(tmp_path / "text" / "rank_0_ascend_pt", 0))
    return write_rank_database(session, tmp_path / "db")


def main_of(folder: Path) -> Path:
    return next(folder.rglob("ascend_pytorch_profiler*.db"))


def test_the_files_stay_byte_identical_and_alone(sample: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(sample, copy)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in copy.rglob("*") if path.is_file()}
    assert len(load(copy)) == 2
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in copy.rglob("*") if path.is_file()} == before


def test_kernels_sum_to_the_analysis_totals_exactly(sample: Path) -> None:
    seen = sniff(sample)
    assert seen is not None
    assert seen.format == "ascend_db"
    for session in load(sample):
        kernels, totals = session.tables["kernels"], session.tables["step_trace"]
        talking = kernels["core"] == session.code("COMMUNICATION")
        assert abs(int(kernels["duration_ns"][~talking].sum()) - int(totals["computing_ns"][0])) <= 26
        assert abs(int(kernels["duration_ns"][talking].sum()) - int(totals["communication_ns"][0])) <= 5
        assert session.meta.violations == ()
        assert (session.meta.soc.reported_name, session.meta.soc.family, session.meta.soc.clock_mhz) == ("Ascend910B", "A2", 1800.0)
        assert {session.text(int(code)) for code in kernels["step_id"]} == {"50"}
        assert int(kernels["wait_ns"][0]) == 0


def test_both_exports_of_one_model_hold_the_same_kinds_of_things(sample: Path, shared: Path) -> None:
    text, database = load(shared / "data" / "profiles" / "ascend" / "cnn-ddp-2rank-text")[0], load(sample)[0]
    only_text = {"api_totals", "op_totals", "operators"}
    assert set(text.tables) - set(database.tables) == only_text
    for name in ("op_type", "core", "input_shapes", "input_formats"):
        kinds = [sorted({session.text(int(code)) or "" for code in session.tables["kernels"][name]}) for session in (text, database)]
        assert kinds[0] == kinds[1], name


def test_a_viewers_tables_and_columns_change_nothing(written: Path) -> None:
    (before,) = load(written)
    with closing(sqlite3.connect(main_of(written))) as database, database:
        database.execute("CREATE TABLE connectionCats (id INTEGER, cat TEXT)")
        database.execute("CREATE TABLE OVERLAP_ANALYSIS (startNs INTEGER, endNs INTEGER, type INTEGER)")
        database.execute("ALTER TABLE TASK ADD COLUMN depth INTEGER")
        database.execute("ALTER TABLE COMPUTE_TASK_INFO ADD COLUMN waitNs INTEGER")
        database.execute("CREATE VIEW CANN_API_2 AS SELECT * FROM TASK")
    (after,) = load(written)
    assert {name: table.columns.keys() for name, table in after.tables.items()} == {
        name: t.columns.keys() for name, t in before.tables.items()
    }
    np.testing.assert_array_equal(after.tables["kernels"]["start_ns"], before.tables["kernels"]["start_ns"])


def test_the_block_count_is_the_newer_column_where_both_exist(written: Path) -> None:
    with closing(sqlite3.connect(main_of(written))) as database, database:
        database.execute("ALTER TABLE COMPUTE_TASK_INFO ADD COLUMN blockDim INTEGER DEFAULT 999")
    (session,) = load(written)
    assert 999 not in session.tables["kernels"]["block"].tolist()


def test_enumerations_are_those_of_the_file_itself(written: Path) -> None:
    with closing(sqlite3.connect(main_of(written))) as database, database:
        database.execute("INSERT INTO CANN_API VALUES (5, 9, 77, 1, 4, 0)")
        database.execute("INSERT INTO ENUM_API_TYPE VALUES (77, 'acl')")
    (session,) = load(written)
    host = session.tables["host_ops"]
    assert [session.text(int(code)) for code in host["layer"]] == ["acl"]


DAMAGES = (
    "UPDATE TASK SET startNs = 'x'",
    "UPDATE TASK SET endNs = startNs - 5",
    "UPDATE TASK SET startNs = 1e300",
    "UPDATE COMPUTE_TASK_INFO SET name = x'ff00'",
    "DROP TABLE STRING_IDS",
    "DROP TABLE TASK",
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_wrong_values_are_counted_or_left_out(written: Path, damage: str) -> None:
    with closing(sqlite3.connect(main_of(written))) as database, database:
        database.execute(damage)
    (session,) = load(written)
    assert session.self_check() == []


def test_an_endless_view_in_place_of_a_table_is_never_run(written: Path) -> None:
    with closing(sqlite3.connect(main_of(written))) as database, database:
        database.execute("DROP TABLE TASK")
        database.execute(
            "CREATE VIEW TASK AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS startNs, i AS endNs FROM n"
        )
    (session,) = load(written)
    assert session.self_check() == []


def test_what_is_no_database_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "ascend_pytorch_profiler_0.db"
    path.write_bytes(b"SQLite format 3\0" + b"junk" * 100)
    with pytest.raises(MalformedInputError, match=r"ascend_pytorch_profiler_0\.db:1:"):
        load(path)


def test_absent_tables_and_columns_read_as_no_rows(written: Path) -> None:
    with opened(main_of(written), "x.db") as database:
        assert len(database.rows("NO_SUCH_TABLE", "a")) == 0
        assert database.rows("TASK", "startNs", "noSuchColumn").integers("noSuchColumn").tolist() == [-1] * 4


def test_ranks_with_only_the_analysis_database_have_their_totals(shared: Path, tmp_path: Path) -> None:
    source = shared / "data" / "profiles" / "ascend" / "qwen3-0.6b-train-pp2-dp2" / "rank_1_ascend_pt"
    target = tmp_path / "rank_1_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    target.mkdir(parents=True)
    shutil.copy(source / "ASCEND_PROFILER_OUTPUT" / "analysis.db", target)
    (text,), (database,) = load(source), load(tmp_path)
    assert same_totals(text, database)
    assert len(database.tables["comm_ops"]) == len(text.tables["comm_ops"])
    assert len(database.tables["comm_links"]) == len(text.tables["comm_links"])
    assert database.tables["comm_ops"]["bytes"].sum() == pytest.approx(text.tables["comm_ops"]["bytes"].sum())


def same_totals(first: Session, second: Session) -> bool:
    names = ("computing_ns", "comm_not_overlapped_ns", "free_ns", "stage_ns", "bubble_ns")
    return all(abs(first.tables["step_trace"][name] - second.tables["step_trace"][name]).max() <= 130 for name in names)
