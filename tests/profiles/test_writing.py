"""What is written is read back: text, database and Chrome, with the origin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kb.errors import KbError, MalformedInputError
from kb.profile.ascend.mark import FILE
from kb.profile.ascend.writing import write_rank
from kb.profile.ascend.writing_db import write_rank_database
from kb.profile.sources import load
from kb.session.builder import Strings, session, table
from kb.session.meta import Capture, Model, SessionMeta
from kb.session.schema import TABLES
from kb.session.session import Session

Write = Callable[[Session, Path], Path]
WRITERS: dict[str, Write] = {"text": write_rank, "database": write_rank_database}
EVIDENCE = {"file", "row"}
BASE = 1_764_246_877_000_000_000


def content(read: Session, name: str) -> dict[str, list[object]]:
    """A table with text for codes and None for missing floats, evidence aside."""
    found: dict[str, list[object]] = {}
    for column in TABLES[name].columns:
        if column.name in read.tables[name] and column.name not in EVIDENCE:
            values = read.tables[name][column.name].tolist()
            found[column.name] = [read.text(value) if column.dtype == "code" else None if value != value else value for value in values]
    return {column: values for column, values in found.items() if any(value not in (None, -1) for value in values)}


KERNELS = st.lists(
    st.fixed_dictionaries({
        "gap": st.integers(0, 10**6), "duration_ns": st.integers(0, 10**9), "name": st.sampled_from(["MatMul_1", 'odd,"name"', "核 7"]),
        "op_type": st.sampled_from(["MatMulV3", "Cast", None]), "core": st.sampled_from(["AI_CORE", "AI_VECTOR_CORE"]),
        "stream": st.integers(0, 9), "task_id": st.integers(0, 10**9), "block": st.integers(1, 400), "step_id": st.sampled_from(["1"]),
        "input_shapes": st.sampled_from(["4096,1024;1024,8", ";;", None]), "aic_mac_ratio": st.floats(0, 1),
        "cube_utilization": st.floats(0, 100).map(lambda percent: percent / 100),
        "aicore_time_ns": st.integers(0, 10**9).map(float), "aiv_vec_ratio": st.one_of(st.just(float("nan")), st.floats(0, 2)),
        "connection_id": st.integers(0, 10**12),
    }),
    min_size=1, max_size=12,
)  # fmt: skip


def built(rows: list[dict[str, object]]) -> Session:
    strings = Strings()
    gaps = np.array([row["gap"] for row in rows], np.int64)
    durations = np.array([row["duration_ns"] for row in rows], np.int64)
    starts = BASE + np.cumsum(gaps + 1) + np.concatenate([[0], np.cumsum(durations)[:-1]])
    columns = {name: [row[name] for row in rows] for name in rows[0] if name != "gap"}
    kernels = table("kernels", {**columns, "start_ns": starts, "wait_ns": np.concatenate([[0], gaps[1:] + 1])}, strings)
    links = kernels["connection_id"]
    host = table("host_ops", {
        "start_ns": starts - 5, "duration_ns": np.full(len(starts), 3), "name": ["launch"] * len(starts), "layer": ["node"] * len(starts),
        "thread": np.full(len(starts), 4), "connection_id": links,
    }, strings)  # fmt: skip
    busy = int(durations.sum())
    spent = {"computing_ns": busy, "comm_not_overlapped_ns": 0, "overlapped_ns": 0, "communication_ns": 0, "free_ns": 77,
             "stage_ns": busy + 77,              "bubble_ns": 0}  # fmt: skip
    totals = table("step_trace", {"step_id": ["1"], **{name: [value] for name, value in spent.items()}}, strings)
    end = int(starts[-1] + durations[-1]) + 1
    steps = table("steps", {"step_id": ["1"], "start_ns": [BASE], "end_ns": [end], "kind": ["train"], "warmup": [0]}, strings)
    meta = SessionMeta(
        name="generated", origin="simulated", capture=Capture(format="simulated", level="Level1"), rank=3, world_size=8, device=3,
        model=Model(name="m", batch=4), options={"seed": 1}, simulator="9", environment={"HCCL_ALGO": "x"},
    )  # fmt: skip
    return session(meta, [kernels, host, totals, steps], strings)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(KERNELS)
def test_text_and_database_of_one_session_import_equal(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]]) -> None:
    before = built(rows)
    folder = tmp_path_factory.mktemp("written")
    text, database = (load(write(before, folder / name))[0] for name, write in WRITERS.items())
    for name in ("kernels", "host_ops", "step_trace", "steps"):
        expected = content(before, name)
        for after in (text, database):
            assert content(after, name) == expected, name
    for after in (text, database):
        assert after.meta.violations == ()
        assert (after.meta.origin, after.meta.options, after.meta.simulator) == ("simulated", {"seed": 1}, "9")
        assert (after.meta.name, after.meta.rank, after.meta.model) == ("generated", 3, before.meta.model)


@pytest.mark.parametrize("form", list(WRITERS))
@pytest.mark.parametrize("sample", ["cnn-ddp-2rank-text/rank0_ascend_pt", "cnn-ddp-2rank-db/rank1_ascend_pt"])
def test_real_ranks_survive_writing(shared: Path, tmp_path: Path, sample: str, form: str) -> None:
    (before,) = load(shared / "data" / "profiles" / "ascend" / sample)
    (after,) = load(WRITERS[form](before, tmp_path))
    assert after.self_check() == []
    assert set(after.tables) == set(before.tables)
    for name in before.tables:
        first, second = content(before, name), content(after, name)
        recomputed = {"wait_ns"} if form == "database" and name == "kernels" else set()
        for column in first.keys() - recomputed:
            assert second[column] == first[column], f"{name}.{column}"


@pytest.mark.parametrize("form", list(WRITERS))
def test_nothing_is_overwritten(tmp_path: Path, form: str) -> None:
    before = built([{"gap": 1, "duration_ns": 5, "name": "k", "op_type": "Cast", "core": "AI_CORE", "connection_id": 1, "step_id": "1"}])
    WRITERS[form](before, tmp_path)
    with pytest.raises(KbError, match="already there"):
        WRITERS[form](before, tmp_path)


def test_a_damaged_mark_is_an_error_not_a_measurement(tmp_path: Path) -> None:
    before = built([{"gap": 1, "duration_ns": 5, "name": "k", "op_type": "Cast", "core": "AI_CORE", "connection_id": 1, "step_id": "1"}])
    root = write_rank(before, tmp_path)
    (root / FILE).write_text((root / FILE).read_text().replace('"simulated"', '"measured?"'))
    with pytest.raises(MalformedInputError, match=FILE):
        load(root)


def test_names_that_leave_the_folder_are_made_plain(tmp_path: Path) -> None:
    before = built([{"gap": 1, "duration_ns": 5, "name": "k", "op_type": "Cast", "core": "AI_CORE", "connection_id": 1, "step_id": "1"}])
    odd = Session(replace(before.meta, name="../../x y"), before.tables, before.strings)
    assert write_rank(odd, tmp_path).parent == tmp_path
