"""Every level a user may pass: sliced and old msprof layouts, MindSpore, single operators, archives, raw captures."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from profiles.ascend_writer import OUTPUT, kernel_csv, small_kernels, write_rank

from kb.errors import KbError, MalformedInputError, UnusableCaptureError
from kb.profile.ascend.backend import raw_captures
from kb.profile.exporting import command_line, export_raw
from kb.profile.sources import load, sniff
from kb.session.session import Session

STAMP = "20250108123456"


def one(path: Path) -> Session:
    (session,) = load(path)
    return session


def op_summary() -> str:
    return kernel_csv(small_kernels(), "cann_9")


def starts(session: Session) -> list[int]:
    found: list[int] = session.tables["kernels"]["start_ns"].tolist()
    return found


def test_slices_are_joined_in_index_order_and_the_newest_export_wins(tmp_path: Path) -> None:
    output = tmp_path / "PROF_000001_20250108123456789_ABCDEFGH" / "mindstudio_profiler_output"
    output.mkdir(parents=True)
    header, *rows = op_summary().splitlines(keepends=True)
    for index in (1, 0):
        (output / f"op_summary_slice_{index}_{STAMP}.csv").write_text(header + "".join(rows[index * 2 : index * 2 + 2 + index]))
    (output / "op_summary_20240101000000.csv").write_text(header + rows[0])
    session = one(tmp_path)
    assert session.meta.capture.format == "msprof_text"
    assert len(session.tables["kernels"]) == len(rows)
    assert session.meta.capture.files[0].endswith(f"op_summary_slice_0_{STAMP}.csv")


def test_the_old_msprof_layout_is_one_rank_a_device(tmp_path: Path) -> None:
    for device in (0, 1):
        folder = tmp_path / "PROF_000001_20230101" / f"device_{device}" / "summary"
        folder.mkdir(parents=True)
        (folder / f"op_summary_{device}_1_{STAMP}.csv").write_text(op_summary())
    sessions = load(tmp_path)
    assert [session.meta.name.rpartition("/")[2] for session in sessions] == ["device_0", "device_1"]


def test_one_operator_measured_alone_is_one_kernel_with_its_clock(tmp_path: Path) -> None:
    folder = tmp_path / f"OPPROF_{STAMP}_ABCDEFGHIJKLMNOP"
    folder.mkdir()
    header = "Op Name,Op Type,Task Duration(us),Block Dim,Mix Block Dim,Device Id,Pid,Current Freq,Rated Freq,"
    (folder / "OpBasicInfo.csv").write_text(f"{header}\nadd_custom,vector,12.5,8,NA,3,77,800,1800,\n")
    (folder / "PipeUtilization.csv").write_text(
        "block_id,sub_block_id,aiv_vec_ratio,aic_cube_ratio,\n0,vector0,0.25,NA,\n1,vector0,0.75,NA,\n"
    )
    (folder / "L2Cache.csv").write_text("block_id,sub_block_id,aiv_total_hit_rate(%),\n0,vector0,50.0,\n1,vector0,100.0,\n")
    session = one(tmp_path)
    kernels = session.tables["kernels"]
    assert (int(kernels["duration_ns"][0]), int(kernels["block"][0]), session.meta.device) == (12_500, 8, 3)
    assert (float(kernels["aiv_vec_ratio"][0]), float(kernels["l2_hit_ratio"][0])) == (0.5, 0.75)
    assert session.text(int(kernels["core"][0])) == "AI_VECTOR_CORE"
    assert session.tables["counters"]["value"].tolist() == [800.0, 1800.0]


def test_old_mindspore_tables_give_totals_and_steps_in_units_of_ten_ns(tmp_path: Path) -> None:
    (tmp_path / "aicore_intermediate_0_type.csv").write_text(
        "kernel_type,total_time,execution_frequency,percent\nMatMul,1.5,3,60\nCast,1.0,2,40\n"
    )
    (tmp_path / "step_trace_raw_0_detail_time.csv").write_text(
        "step_num,start_point,end_point,total,fp_point,bp_point\n1,1000,3000,2000,1100,2900\n-,0,0,2000,0,0\n"
    )
    session = one(tmp_path)
    assert session.tables["op_totals"]["total_ns"].tolist() == [1_500_000, 1_000_000]
    assert (session.tables["steps"]["end_ns"] - session.tables["steps"]["start_ns"]).tolist() == [20_000]


@pytest.mark.parametrize("level", ["run", "parent", "rank", "output", "file"])
def test_any_level_gives_the_same_kernels(tmp_path: Path, level: str) -> None:
    rank = write_rank(tmp_path / "run" / "day" / "rank_0_ascend_pt", 0)
    path = {
        "run": tmp_path / "run",
        "parent": rank.parent,
        "rank": rank,
        "output": rank / OUTPUT,
        "file": rank / OUTPUT / "kernel_details.csv",
    }
    assert starts(one(path[level])) == starts(one(rank))


def packed(path: Path, folder: Path) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for file in sorted(folder.rglob("*.*")):
                archive.write(file, file.relative_to(folder.parent))
    else:
        with tarfile.open(path, "w:gz") as archive:
            archive.add(folder, folder.name)
    return path


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
def test_archives_are_read_as_their_folder_and_leave_nothing(tmp_path: Path, name: str) -> None:
    rank = write_rank(tmp_path / "rank_0_ascend_pt", 0)
    path = packed(tmp_path / name, rank)
    seen = sniff(path)
    assert seen is not None
    assert seen.roots[0].startswith(str(path))
    assert starts(one(path)) == starts(one(rank))
    assert all(not file.startswith(("/", "..")) for file in one(path).meta.capture.files)


def hostile(path: Path, kind: str) -> Path:
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("../escape.csv" if kind == "above" else "/etc/escape.csv" if kind == "root" else "link.csv")
        if kind == "link":
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(member, io.BytesIO(b""))
    return path


@pytest.mark.parametrize("kind", ["above", "root", "link"])
def test_members_that_leave_the_archive_are_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(MalformedInputError, match=r"a\.tar"):
        load(hostile(tmp_path / "a.tar", kind))


def test_a_raw_capture_names_its_command_and_runs_it_only_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "PROF_000001_20250101000000000_AB"
    (folder / "device_0").mkdir(parents=True)
    with pytest.raises(UnusableCaptureError, match=r"msprof --export=on --output=.*PROF_000001"):
        load(tmp_path)
    (capture,) = raw_captures(tmp_path)
    monkeypatch.setattr("kb.profile.exporting.shutil.which", lambda _: None)
    with pytest.raises(KbError, match="not installed"):
        command_line(capture)
    monkeypatch.setattr("kb.profile.exporting.shutil.which", lambda name: f"/bin/{name}")
    ran: list[list[str]] = []

    def run(arguments: list[str]) -> int:
        ran.append(arguments)
        return 0

    assert export_raw(tmp_path, run) == (folder,)
    assert ran == [["/bin/msprof", "--export=on", f"--output={folder}"]]
    with pytest.raises(KbError, match="the export failed"):
        export_raw(tmp_path, lambda _: 1)


def test_l2_counters_and_traffic_of_both_engines_become_one_column(tmp_path: Path) -> None:
    path = tmp_path / "kernel_details.csv"
    path.write_text(
        "Name,Type,Start Time(us),Duration(us),aic_write_cache_hit,aic_write_cache_miss_allocate,aiv_r0_read_cache_hit,"
        "aic_read_main_memory_datas(KB),aiv_read_main_memory_datas(KB),aic_main_mem_read_bw(GB/s)\n"
        "k,MatMul,1.000,2.000,30,10,40,3,5,2.5\nm,MatMul,9.000,2.000,N/A,N/A,N/A,N/A,N/A,N/A\n"
    )
    kernels = one(path).tables["kernels"]
    assert kernels["l2_hit_ratio"][0] == 70 / 80
    assert (kernels["hbm_read_bytes"][0], kernels["hbm_read_rate"][0]) == (8 * 1024, 2.5e9)
    assert np.isnan(kernels["l2_hit_ratio"][1])
