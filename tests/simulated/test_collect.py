"""``profiler collect``: model files to sessions, and commands under a stand-in for msprof."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from cli.program import Run, runner
from profiles.ascend_writer import write_rank
from simulated.model_maker import attention, convolutional

from kb.errors import UsageError
from kb.profile.simulated.capturing import COLUMNS, data_types_from
from kb.profile.sources import load
from kb.workflow.collect import seconds_from


@pytest.fixture
def profiler(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys, "profiler")


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    path.write_bytes(convolutional(64))
    return path


def test_an_onnx_file_becomes_a_session_that_is_diagnosed(profiler: Run, net: Path, tmp_path: Path) -> None:
    target = tmp_path / "net.prof"
    made = profiler("collect", "--model", str(net), "--dim", "batch=4", "--output", str(target), "--json", "--lang", "en")
    assert made.status == 0
    answer = made.json()
    assert (answer["origin"], answer["operators"], answer["operators_costed"]) == ("simulated", 7, 7)
    (session,) = load(target)
    assert session.meta.origin == "simulated"
    assert session.meta.model.batch == 4
    found = profiler("analyze", "--data", str(target), "--json")
    assert found.status == 0
    assert found.json()["sessions"][0]["findings"]


def test_missing_sizes_are_a_usage_error_with_an_example(profiler: Run, net: Path, tmp_path: Path) -> None:
    result = profiler("collect", "--model", str(net), "--output", str(tmp_path / "x.prof"), "--lang", "en")
    assert result.status == 2
    assert "x (batch, 3, 64, 64)" in result.err
    assert '--input_shape "x:1,3,64,64"' in result.err


def test_a_folder_is_made_where_the_output_has_no_ending(profiler: Run, net: Path, tmp_path: Path) -> None:
    folder = tmp_path / "profiling_data"
    result = profiler("collect", "--model", str(net), "--input_shape", "2,3,64,64", "--output", str(folder))
    assert result.status == 0
    assert (folder / "net.prof").is_file()
    assert profiler("analyze", "--data", str(folder)).status == 0


def test_the_kinds_of_data_asked_for_are_kept_and_the_rest_is_listed(profiler: Run, tmp_path: Path) -> None:
    target = tmp_path / "bert.prof"
    made = profiler("collect", "--model", "bert-base", "--set", "sequence=64", "--data_types", "operator, stream", "--output", str(target))
    assert made.status == 0
    (session,) = load(target)
    assert "allocations" not in session.tables
    assert "host_ops" in session.tables
    assert "l2_hit_ratio" not in session.tables["kernels"]
    gaps = {gap.what for gap in session.meta.missing}
    assert {"allocations", "kernels.l2_hit_ratio", "kernels.cube_utilization"} <= gaps
    assert session.self_check() == []


def test_a_focus_counts_only_what_matches(profiler: Run, tmp_path: Path) -> None:
    target = tmp_path / "bert.prof"
    words = ("collect", "--model", "bert-base", "--set", "sequence=64", "--output", str(target))
    assert profiler(*words, "--focus", "attention_block").status == 0
    (session,) = load(target)
    kernels = session.tables["kernels"]
    counted = np.isfinite(kernels["l2_hit_ratio"])
    types = {session.strings[code] for code in np.unique(kernels["op_type"][counted])}
    assert types == {"BatchMatMulV3", "SoftmaxV2"}
    refused = profiler(*words, "--force", "--focus", "wings", "--lang", "en")
    assert refused.status == 2
    assert "nothing here matches" in refused.err


def test_a_duration_is_filled_with_steps_and_cut_where_they_repeat(profiler: Run, tmp_path: Path) -> None:
    target = tmp_path / "bert.prof"
    made = profiler("collect", "--model", "bert-base", "--set", "sequence=32", "--duration", "60s", "--output", str(target), "--lang", "en")
    assert made.status == 0
    assert "the rest repeats them" in made.err
    assert len(load(target)[0].tables["steps"]) == 50


@pytest.mark.parametrize(("text", "seconds"), [("60s", 60), ("10m", 600), ("500ms", 0.5), ("2", 2), ("1 h", 3600)])
def test_durations_are_read(text: str, seconds: float) -> None:
    assert seconds_from(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1s", "0s", "5 days"])
def test_wrong_durations_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        seconds_from(text)


def test_data_types_are_checked() -> None:
    assert data_types_from("") == set(COLUMNS)
    assert data_types_from("operator, memory") == {"operator", "memory"}
    with pytest.raises(UsageError, match="no data type colour"):
        data_types_from("operator, colour")


def test_quick_mode_takes_the_model_used_last(profiler: Run, net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert profiler("collect", "--local", "--quick_mode", "true", "--lang", "en").status == 2
    assert profiler("collect", "--model", "bert-base", "--set", "sequence=32", "--output", "first.prof").status == 0
    quick = profiler("collect", "--local", "--quick_mode", "true", "--set", "sequence=32", "--json")
    assert quick.status == 0
    assert quick.json()["file"] == "bert-base_quick.prof"
    again = profiler("collect", "--local", "--quick_mode", "true", "--set", "sequence=32", "--json")
    assert again.json()["file"] == "bert-base_quick-2.prof"
    assert len(load(tmp_path / "bert-base_quick.prof")[0].tables["steps"]) == 2


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--model", "absent.onnx"), 1),
        (("--model", "bert-bas"), 1),
        (("--model", "bert-base", "--input_shape", "1,2"), 2),
        (("--model", "bert-base", "--backend", "msprof"), 2),
        (("--model", "bert-base", "--set", "warp=9"), 2),
        (("--model", "bert-base", "--soc", "quantum"), 1),
        (("--backend", "simulated", "--", "python", "train.py"), 2),
        (("--model", "bert-base", "--", "python", "train.py"), 2),
    ],
)
def test_wrong_calls_have_their_status(
    profiler: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], status: int
) -> None:
    monkeypatch.chdir(tmp_path)
    assert profiler("collect", *words).status == status


def test_simulate_model_takes_files_too(capsys: pytest.CaptureFixture[str], net: Path, tmp_path: Path) -> None:
    kb, target = runner(capsys), tmp_path / "x.json"
    assert kb("simulate", "model", "yolov8n", "-o", str(target)).status == 0
    assert kb("simulate", "model", str(target), "-o", str(tmp_path / "x.prof")).status == 0
    assert load(tmp_path / "x.prof")[0].meta.model.name == "yolov8n"
    assert kb("simulate", "model", str(net), "-o", str(tmp_path / "y.prof")).status == 2


def test_a_missing_model_file_is_never_a_stand_in(profiler: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("sd3.om", "sd3_converted.om", "models/sd3"):
        result = profiler("collect", "--model", name, "--lang", "en")
        assert result.status == 1
        assert "kb simulate article" in result.err


def test_an_image_size_stands_for_its_latents(profiler: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model, target = tmp_path / "sd3.om", tmp_path / "sd3.prof"
    assert runner(capsys)("simulate", "model", "sd3", "--set", "denoise_steps=1", "-o", str(model)).status == 0
    shown = profiler("collect", "--model", str(model), "--input_shape", "1,3,1024,1024", "--output", str(target), "--lang", "en")
    assert shown.status == 0
    assert "the size of an image" in shown.err
    assert profiler("collect", "--model", str(model), "--input_shape", "1,3,1000,1024", "--output", str(tmp_path / "x.prof")).status == 2


def test_a_file_of_another_kind_is_refused(profiler: Run, tmp_path: Path) -> None:
    for name, content in (("x.onnx", b"junk" * 9), ("x.om", b"junk" * 99), ("x.json", b"{}"), ("empty.onnx", b"")):
        path = tmp_path / name
        path.write_bytes(content)
        assert profiler("collect", "--model", str(path), "--output", str(tmp_path / "x.prof")).status in (1, 3)


def stand_in(folder: Path, body: str) -> None:
    """An executable of msprof's name."""
    folder.mkdir(exist_ok=True)
    tool = folder / "msprof"
    tool.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    tool.chmod(0o755)


def test_a_command_is_measured_by_msprof(profiler: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = write_rank(tmp_path / "sample" / "rank_0_ascend_pt", 0)
    stand_in(
        tmp_path / "bin",
        f'echo "$@" > {tmp_path}/called\nfor word; do case $word in --output=*) out=${{word#--output=}};; esac; done\n'
        f'cp -r {sample} "$out/"\nfor word; do case $word in --*) ;; *) break;; esac; shift; done\nexec "$@"',
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    result = profiler("collect", "--output", "run.prof", "--json", "--", "touch", "was_run")
    assert result.status == 0
    assert result.json()["origin"] == "measured"
    assert (tmp_path / "was_run").exists()
    called = (tmp_path / "called").read_text(encoding="utf-8").split()
    assert called[0].startswith("--output=")
    assert called[-2:] == ["touch", "was_run"]
    (session,) = load(tmp_path / "run.prof")
    assert session.meta.origin == "measured"
    assert profiler("analyze", "--data", "run.prof").status == 0


def test_an_older_msprof_is_asked_to_export(profiler: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = write_rank(tmp_path / "sample" / "rank_0_ascend_pt", 0)
    stand_in(
        tmp_path / "bin",
        f"for word; do case $word in --output=*) out=${{word#--output=}};; --export=on) export=1;; esac; done\n"
        f'if [ "$export" ]; then cp -r {sample} "$out/../"; else mkdir -p "$out/PROF_000001_20260101000000000_ABC/device_0"; fi',
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    assert profiler("collect", "--output", "run.prof", "--", "true").status == 0
    assert load(tmp_path / "run.prof")[0].meta.origin == "measured"


def test_without_msprof_it_is_said(profiler: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    result = profiler("collect", "--lang", "en", "--", "true")
    assert result.status == 1
    assert "no msprof on this machine" in result.err


@pytest.mark.parametrize(("body", "message"), [("echo lost card >&2; exit 7", "ended with status 7: lost card"), ("exit 0", "no profile")])
def test_a_failed_run_is_told(profiler: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, message: str) -> None:
    stand_in(tmp_path / "bin", body)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    result = profiler("collect", "--output", "folder", "--lang", "en", "--", "true")
    assert result.status in (1, 3)
    assert message in result.err


def test_a_strategy_is_applied_to_a_collected_file(profiler: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, target = tmp_path / "block.onnx", tmp_path / "block.prof"
    path.write_bytes(attention(256, 8, 64))
    assert profiler("collect", "--model", str(path), "--input_shape", "1,256,512", "--output", str(target)).status == 0
    kb = runner(capsys)
    applied = kb("apply", str(target), "use_fused_attention", "--json")
    assert applied.status == 0, applied.err
    answer = json.loads(applied.out)
    assert "use_fused_attention" in applied.out
    assert answer
