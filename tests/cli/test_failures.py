"""Bad input: what happened, what is allowed, what to do, a fitting exit status, and nothing lost."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli.program import Run, runner

_RANK = Path("data/profiles/ascend/qwen3-0.6b-train-pp2-dp2/rank_0_ascend_pt")
_DIAGNOSE = "from kb_cli.boundary import run_program; raise SystemExit(run_program('kb', {words!r}))"


@pytest.mark.parametrize("command", ["diagnose", "health", "recommend"])
def test_an_empty_folder_is_no_all_clear(kb: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "empty").mkdir()
    result = kb(command, tmp_path / "empty")
    assert result.status == 3
    assert "empty" in result.err
    assert "do:" in result.err


def test_a_missing_path_is_named(kb: Run, tmp_path: Path) -> None:
    result = kb("diagnose", tmp_path / "nowhere")
    assert result.status == 3
    assert "nowhere" in result.err


def test_a_folder_of_other_things_says_what_a_profile_looks_like(kb: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    result = kb("diagnose", tmp_path)
    assert result.status == 3
    assert "ascend_pt" in result.err


@pytest.mark.parametrize("keep", [1, 500, 5_000])
def test_a_truncated_table_names_file_and_row_or_reads_what_is_whole(kb: Run, tmp_path: Path, shared: Path, keep: int) -> None:
    rank = tmp_path / "rank_0_ascend_pt"
    shutil.copytree(shared / _RANK, rank)
    table = rank / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    table.chmod(0o644)
    table.write_bytes(table.read_bytes()[:keep])
    result = kb("diagnose", rank, "--json")
    assert result.status in (0, 3)
    if result.status == 3:
        assert "kernel_details.csv" in result.err
    else:
        judged = result.json()["sessions"][0]
        assert judged["not_judged"]
        health = kb("health", rank, "--json").json()
        assert health["verdict"] != "good"


def test_an_unknown_record_names_the_nearest(kb: Run) -> None:
    result = kb("show", "sd3-atention-unfused")
    assert result.status == 1
    assert "sd3-attention-unfused" in result.err


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("search",), 2),
        (("search", "x", "--limit", "0"), 2),
        (("search", "x", "--kind", "novel"), 2),
        (("search", "x", "--colour"), 2),
        (("serch", "x"), 2),
        (("show", "@"), 2),
        (("recommend",), 2),
        (("recommend", "x", "--max-latency", "fast"), 3),
        (("apply",), 2),
        (("apply", "x.prof"), 3),
        (("publish", "nowhere.md"), 3),
    ],
)
def test_wrong_calls_exit_with_their_status(kb: Run, words: tuple[str, ...], status: int) -> None:
    result = kb(*words)
    assert result.status == status, result.err
    assert result.err


def test_an_unknown_strategy_or_chip_names_the_nearest(kb: Run, tmp_path: Path) -> None:
    before = tmp_path / "before.prof"
    assert kb("simulate", "model", "bert-base", "--output", before).status == 0
    result = kb("apply", before, "use_fused_atention")
    assert (result.status, "use_fused_attention" in result.err) == (1, True)
    result = kb("simulate", "model", "sd3", "--soc", "910b9", "--output", tmp_path / "x.prof")
    assert (result.status, "910b" in result.err) == (1, True)
    result = kb("simulate", "model", "sd9", "--output", tmp_path / "x.prof")
    assert (result.status, "sd3" in result.err) == (1, True)


def test_a_measured_profile_is_not_applied_but_told_how(kb: Run, shared: Path) -> None:
    result = kb("apply", shared / _RANK, "use_fused_attention")
    assert result.status == 0
    assert "torch_npu.npu_fusion_attention" in result.out
    assert "--after NEW_PROFILE" in result.out


def test_existing_files_are_not_overwritten(kb: Run, tmp_path: Path) -> None:
    target = tmp_path / "x.prof"
    target.write_text("precious")
    assert kb("simulate", "model", "bert-base", "--output", target).status == 1
    assert target.read_text() == "precious"
    assert kb("simulate", "model", "bert-base", "--output", target, "--force").status == 0


def test_constraints_that_exclude_everything_exit_with_five(kb: Run, tmp_path: Path) -> None:
    before = tmp_path / "before.prof"
    kb("simulate", "model", "sd3", "--output", before)
    result = kb("recommend", before, "--max-latency", "1ms", "--json")
    assert result.status == 5
    assert not result.json()["feasible"]


def test_a_workspace_that_cannot_be_made_says_so(kb: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KB_HOME", str(tmp_path / "file" / "home"))
    result = kb("list")
    assert result.status == 1
    assert "KB_HOME" in result.err


def test_diagnosis_needs_no_workspace(kb: Run, tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KB_HOME", str(tmp_path / "file" / "home"))
    assert kb("diagnose", shared / _RANK).status == 0


def test_a_full_output_device_is_an_error_not_a_success(tmp_path: Path, checkout: Path) -> None:
    code = _DIAGNOSE.format(words=["list"])
    environment = {**os.environ, "KB_EMBEDDER": "hashing", "PYTHONPATH": f"{checkout}:{checkout / 'cli'}"}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    assert done.returncode == 1
    assert "space" in done.stderr


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))


def test_a_full_disk_loses_nothing_that_was_acknowledged(kb: Run, tmp_path: Path, checkout: Path) -> None:
    recipe = tmp_path / "a.md"
    recipe.write_text(
        "---\nkind: recipe\nslug: a\ntitle: {zh: 甲, en: a}\nsummary: {zh: 甲, en: a}\n---\n\n# English\n\none\n\n# 中文\n\n一\n"
    )
    assert kb("publish", recipe).status == 0
    recipe.write_text(recipe.read_text().replace("one", "two " * 40_000))
    code = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); " + _DIAGNOSE.format(words=["publish", str(recipe)])
    environment = {**os.environ, "PYTHONPATH": f"{checkout}:{checkout / 'cli'}"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, preexec_fn=_limited, check=False)
    assert done.returncode == 1, done.stderr
    assert "do:" in done.stderr
    assert [row["version"] for row in kb("log", "a", "--json").json()["versions"]] == [1]


def test_a_closed_pipe_is_quiet(checkout: Path) -> None:
    environment = {**os.environ, "KB_EMBEDDER": "hashing", "PYTHONPATH": f"{checkout}:{checkout / 'cli'}"}
    command = f"{sys.executable} -m kb_cli list --json | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment, check=False)
    assert not [word for word in ("error", "Broken", "Traceback", "Exception") if word in done.stderr]


@pytest.mark.parametrize(("program", "option"), [("cann-profile", "--model"), ("cann-tune", "--profile")])
def test_programs_with_one_command_say_what_they_need(program: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = runner(capsys, program)
    wrong = run("--colour")
    assert (wrong.status, "No such option" in wrong.err) == (2, True)
    helped = run("--help")
    assert (helped.status, option in helped.out) == (0, True)
    missing = run(option, "nowhere.om")
    assert missing.status in (1, 3), missing.err


def test_an_input_is_never_overwritten(kb: Run, tmp_path: Path) -> None:
    target = tmp_path / "x.prof"
    kb("simulate", "model", "bert-base", "--output", target)
    before = target.read_bytes()
    result = kb("diagnose", target, "--output", target, "--force")
    assert result.status == 1
    assert "is the input" in result.err
    assert target.read_bytes() == before


@pytest.mark.parametrize("limit", ["-5ms", "0ms", "1e999s"])
def test_an_impossible_limit_is_refused(kb: Run, tmp_path: Path, limit: str) -> None:
    target = tmp_path / "x.prof"
    kb("simulate", "model", "bert-base", "--output", target)
    assert kb("recommend", target, "--max-latency", limit).status == 2


def test_a_chip_that_contradicts_the_capture_is_refused(kb: Run, tmp_path: Path) -> None:
    target = tmp_path / "x.prof"
    kb("simulate", "model", "bert-base", "--output", target)
    result = kb("recommend", target, "--soc", "A3")
    assert (result.status, "A2" in result.err) == (2, True)
    assert kb("recommend", target, "--soc", "A2").status == 0


def test_a_closed_standard_output_is_said(checkout: Path) -> None:
    environment = {**os.environ, "KB_EMBEDDER": "hashing", "PYTHONPATH": f"{checkout}:{checkout / 'cli'}"}
    command = f"{sys.executable} -m kb_cli list >&-"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    assert "standard output" in done.stderr


def test_a_table_cut_in_the_middle_makes_no_attention_healthy(kb: Run, tmp_path: Path, shared: Path) -> None:
    rank = tmp_path / "rank_0_ascend_pt"
    shutil.copytree(shared / _RANK, rank)
    table = rank / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    table.chmod(0o644)
    table.write_bytes(table.read_bytes()[:100_000])
    judged = kb("diagnose", rank, "--json").json()["sessions"][0]
    assert "unfused_attention" in [note["cause"] for note in judged["not_judged"]]
    assert "unfused_attention" not in [note["cause"] for note in judged["healthy"]]


@pytest.mark.parametrize("computing", ["531290.1", "-231290.1"])
def test_totals_that_contradict_themselves_are_unusable(kb: Run, tmp_path: Path, shared: Path, computing: str) -> None:
    rank = tmp_path / "rank_0_ascend_pt"
    shutil.copytree(shared / _RANK, rank)
    table = rank / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv"
    table.chmod(0o644)
    table.write_text(table.read_text().replace("231290.09999999995", computing))
    assert kb("diagnose", rank).status == 3
    assert kb("health", rank, "--json").json()["verdict"] == "unusable"


def test_a_seed_below_zero_is_refused(kb: Run, tmp_path: Path) -> None:
    assert kb("simulate", "model", "bert-base", "--seed", "-1", "--output", tmp_path / "x.prof").status == 2


def test_a_pipe_in_place_of_a_table_does_not_hang(kb: Run, tmp_path: Path, shared: Path) -> None:
    rank = tmp_path / "rank_0_ascend_pt"
    shutil.copytree(shared / _RANK, rank)
    table = rank / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    table.unlink()
    os.mkfifo(table)
    result = kb("diagnose", rank)
    assert result.status in (0, 3)
