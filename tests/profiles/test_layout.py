"""Any level a user passes is understood, and what cannot be read is refused with the command that helps."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from profiles.ascend_writer import OUTPUT, kernel_csv, small_kernels, step_csv, write_cluster, write_rank

from kb.errors import ExitCode, MalformedInputError, UnusableCaptureError
from kb.profile.ascend.profiler_info import rank_in_name
from kb.profile.sources import load, sniff


@pytest.mark.parametrize("level", ["", "rank_1_ascend_pt", f"rank_1_ascend_pt/{OUTPUT}"])
def test_cluster_rank_and_output_folder_are_all_accepted(tmp_path: Path, level: str) -> None:
    write_cluster(tmp_path)
    session = load(tmp_path / level)[-1]
    assert (session.meta.name, session.meta.rank) == ("rank_1_ascend_pt", 1)


def test_the_current_folder_has_its_real_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(write_rank(tmp_path / "worker_ascend_pt", 0) / OUTPUT)
    assert load(Path())[0].meta.name == "worker_ascend_pt"


def test_ranks_are_ordered_by_number_not_by_name(tmp_path: Path) -> None:
    write_cluster(tmp_path, 11)
    assert [session.meta.rank for session in load(tmp_path)] == list(range(11))


def test_product_files_in_a_folder_of_another_name_are_read(tmp_path: Path) -> None:
    (tmp_path / "kernel_details.csv").write_text(kernel_csv(small_kernels(), "level0"))
    (session,) = load(tmp_path)
    assert session.meta.name == tmp_path.name
    assert session.meta.capture.files == ("kernel_details.csv",)


@pytest.mark.parametrize(
    ("name", "rank"), [("rank_3_ascend_pt", 3), ("rank12_ascend_pt", 12), ("torch_npu_rank0", 0), ("node_1234_20250101_ascend_pt", None)]
)
def test_folder_names_tell_the_rank(name: str, rank: int | None) -> None:
    assert rank_in_name(name) == rank


def test_the_rank_of_profiler_info_wins_and_a_conflict_is_confessed(tmp_path: Path) -> None:
    folder = write_rank(tmp_path / "rank_0_ascend_pt", 0)
    (folder / "profiler_info_0.json").write_text(json.dumps({"rank_id": 3}))
    (session,) = load(folder)
    assert session.meta.rank == 3
    assert "one rank" in session.meta.violations[0].oracle


def test_a_rank_of_minus_one_is_no_rank(tmp_path: Path) -> None:
    folder = write_rank(tmp_path / "worker_ascend_pt", 0)
    (folder / "profiler_metadata.json").unlink()
    (folder / "profiler_info_0.json").write_text(json.dumps({"rank_id": -1}))
    (session,) = load(folder)
    assert session.meta.rank is None
    assert {"rank", "world_size"} <= {missing.what for missing in session.meta.missing}


@pytest.mark.parametrize(
    ("folders", "name", "command"),
    [
        (("FRAMEWORK", "PROF_000001_20250101000000000_ABCDEFGHIJKLMNOP"), "w_ascend_pt", 'torch_npu.profiler.profiler.analyse("{path}")'),
        (("FRAMEWORK",), "renamed", 'torch_npu.profiler.profiler.analyse("{path}")'),
        (("FRAMEWORK",), "w_ascend_ms", 'from mindspore.profiler.profiler import analyse; analyse("{path}")'),
        (("device_0", "host"), "PROF_000001_20250101000000000_AB", "msprof --export=on --output={path}"),
    ],
)
def test_a_raw_capture_is_refused_with_the_export_command(tmp_path: Path, folders: tuple[str, ...], name: str, command: str) -> None:
    path = tmp_path / name
    for folder in folders:
        (path / folder).mkdir(parents=True)
    for given in (path, tmp_path):
        seen = sniff(given)
        assert seen is not None
        assert seen.format.startswith("ascend_raw")
        with pytest.raises(UnusableCaptureError) as caught:
            load(given)
        assert command.replace("{path}", str(path)) in str(caught.value)
        assert caught.value.exit_code == ExitCode.UNUSABLE_CAPTURE


def test_an_msprof_export_without_a_product_counts_as_raw(tmp_path: Path) -> None:
    (tmp_path / "PROF_000001_20250101000000000_AB" / "mindstudio_profiler_output").mkdir(parents=True)
    with pytest.raises(UnusableCaptureError, match=r"not exported yet[\s\S]*msprof --export=on"):
        load(tmp_path)


def test_sound_ranks_load_beside_raw_ones_and_say_which_are_left_out(tmp_path: Path) -> None:
    write_cluster(tmp_path)
    (tmp_path / "rank_7_ascend_pt" / "FRAMEWORK").mkdir(parents=True)
    sessions = load(tmp_path)
    assert len(sessions) == 2
    assert all("folder rank_7_ascend_pt" in {missing.what for missing in session.meta.missing} for session in sessions)


@pytest.mark.parametrize("kind", ["empty", "wrong", "file", "absent"])
def test_no_profile_is_exit_code_3_with_what_was_found_and_how_to_capture(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind in ("empty", "wrong"):
        path.mkdir()
    if kind == "wrong":
        (path / "model.onnx").write_text("x")
        (path / "logs").mkdir()
    if kind == "file":
        path.write_text("hello")
    assert sniff(path) is None
    with pytest.raises(UnusableCaptureError) as caught:
        load(path)
    found = {"empty": "folder is empty", "wrong": "logs/, model.onnx", "file": "a file, but no profile", "absent": "no such file"}[kind]
    assert found in caught.value.what
    assert "ASCEND_PROFILER_OUTPUT" in str(caught.value.allowed)
    assert "torch_npu.profiler.profile(" in str(caught.value.do)
    assert "msprof --output=" in str(caught.value.do)
    assert caught.value.exit_code == ExitCode.UNUSABLE_CAPTURE


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_forbidden_folder_is_our_error(tmp_path: Path) -> None:
    path = tmp_path / "locked"
    path.mkdir()
    path.chmod(0)
    try:
        with pytest.raises(UnusableCaptureError, match="cannot be"):
            load(path)
    finally:
        path.chmod(0o700)


def test_a_path_too_long_for_the_system_is_our_error(tmp_path: Path) -> None:
    with pytest.raises(UnusableCaptureError):
        load(tmp_path / ("x" * 5000))


@pytest.mark.parametrize("name", ["kernel_details.csv", "step_trace_time.csv", "communication.json"])
def test_a_folder_in_place_of_a_file_is_our_error(tmp_path: Path, name: str) -> None:
    folder = write_rank(tmp_path / "rank_0_ascend_pt", 0)
    (folder / OUTPUT / name).unlink()
    (folder / OUTPUT / name).mkdir()
    with pytest.raises(MalformedInputError, match=name):
        load(folder)


def cluster_csv(folder: Path, rows: list[str], columns: str = "") -> Path:
    header = f"Step,Type,Index,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble{columns}"
    (folder / "cluster_step_trace_time.csv").write_text("\n".join([header, *rows]) + "\n")
    return folder


def test_stages_of_the_cluster_table_come_from_the_pp_index_when_it_is_there(tmp_path: Path) -> None:
    rows = [f"2,rank,{rank},10,5,0,5,1,16,0,{rank % 2}" for rank in range(4)] + ['2,stage,"(0, 1, 2, 3)",10,5,0,5,1,16,0,']
    sessions = load(cluster_csv(tmp_path, rows, ",PP Index"))
    assert [session.meta.stage for session in sessions] == [0, 1, 0, 1]
    assert {"world_size"} <= {missing.what for missing in sessions[0].meta.missing}


def test_the_cluster_table_collects_the_steps_of_each_rank(tmp_path: Path) -> None:
    rows = ["2,rank,1,10,5,0,5,1,16,0", "3,rank,1,11,5,0,5,1,17,0", "2,rank,0,10,5,0,5,1,16,0"]
    (tmp_path / "cluster_analysis_output").mkdir()
    cluster_csv(tmp_path / "cluster_analysis_output", rows)
    first, second = load(tmp_path)
    assert (first.meta.name, second.meta.name) == ("rank0", "rank1")
    assert second.tables["step_trace"]["computing_ns"].tolist() == [10_000, 11_000]
    assert [second.text(code) for code in second.tables["steps"]["step_id"]] == ["2", "3"]


@pytest.mark.parametrize("row", ["2,rank,x,1,1,0,1,1,3,0", "2,rank,,1,1,0,1,1,3,0", "2,rank,9999999,1,1,0,1,1,3,0"])
def test_a_cluster_row_without_a_rank_is_named(tmp_path: Path, row: str) -> None:
    with pytest.raises(MalformedInputError, match=r"^cluster_step_trace_time\.csv:2: "):
        load(cluster_csv(tmp_path, [row]))


def test_a_cluster_table_without_rank_rows_is_unusable(tmp_path: Path) -> None:
    with pytest.raises(UnusableCaptureError, match="no row of type rank"):
        load(cluster_csv(tmp_path, ['2,stage,"(0, 1)",1,1,0,1,1,3,0']))


def test_rank_folders_win_over_the_cluster_table_beside_them(tmp_path: Path) -> None:
    write_cluster(tmp_path)
    cluster_csv(tmp_path, ["2,rank,0,10,5,0,5,1,16,0"])
    assert all(session.table("kernels") is not None for session in load(tmp_path))


def test_steps_without_totals_are_listed_after_those_with(tmp_path: Path) -> None:
    folder = write_rank(tmp_path / "rank_0_ascend_pt", 0)
    (folder / OUTPUT / "step_trace_time.csv").write_text(step_csv(small_kernels()).replace(",13,", ",14,"))
    (session,) = load(folder)
    assert [session.text(code) for code in session.tables["steps"]["step_id"]] == ["14", "13"]
