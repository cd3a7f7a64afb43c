"""``kb apply`` and the profiler commands around it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.program import Run, runner

from kb.errors import UnusableCaptureError
from kb.workflow.apply import awaited

ASCEND = "data/profiles/ascend"
LABELLED = "data/profiles/labelled"


@pytest.fixture
def before(kb: Run, tmp_path: Path) -> Path:
    path = tmp_path / "before.prof"
    assert kb("simulate", "model", "bert-base", "--set", "noise=0", "--steps", "3", "--output", path).status == 0
    return path


def test_a_plan_is_verified_step_by_step(kb: Run, before: Path, tmp_path: Path) -> None:
    after = tmp_path / "after.prof"
    names = ("use_fused_attention", "enable_graph_mode", "increase_stream_depth")
    done = kb("apply", before, *names, "--output", after, "--json").json()
    assert [step["status"] for step in done["steps"]] == ["kept", "kept", "rolled_back"]
    assert done["kept"] == ["use_fused_attention", "enable_graph_mode"]
    assert done["steps"][1]["before"] == done["steps"][0]["after"]
    assert done["after"]["latency_ns"] < done["before"]["latency_ns"]
    assert done["after"]["provenance"] == "simulated"
    assert kb("compare", before, after, "--json").json()["after_step_ns"] == done["after"]["latency_ns"]


def test_without_strategies_the_recommended_plan_is_run(kb: Run, before: Path) -> None:
    done = kb("apply", before, "--json").json()
    assert 1 <= len(done["steps"]) <= 3
    assert done["kept"]


def test_a_precision_budget_rolls_back_and_says_so(kb: Run, before: Path) -> None:
    done = kb("apply", before, "use_fused_attention", "lower_precision", "--max-precision-loss", "0.5%", "--json").json()
    by_name = {step["strategy"]: step for step in done["steps"]}
    assert by_name["use_fused_attention"]["status"] == "kept"
    assert by_name["lower_precision"]["status"] == "rolled_back"
    assert "0.5 %" in by_name["lower_precision"]["reasons"][0]["en"]


def test_a_regression_alone_exits_with_six_and_writes_nothing(kb: Run, tmp_path: Path) -> None:
    path, after = tmp_path / "hot.prof", tmp_path / "after.prof"
    assert kb("simulate", "model", "bert-base", "--batch", "16", "--graph-launch", "--set", "noise=0", "--output", path).status == 0
    result = kb("apply", path, "cap_clock_or_power", "--output", after)
    assert result.status == 6
    assert "rolled back" in result.out
    assert not after.exists()


def test_what_cannot_be_applied_is_an_error_with_the_real_commands(kb: Run, before: Path) -> None:
    result = kb("apply", before, "reduce_comm_volume")
    assert result.status == 1
    assert "run these commands on your machine" in result.err


def test_a_new_measured_profile_is_judged(kb: Run, shared: Path) -> None:
    fused = shared / LABELLED / "test03_attention_fused_vs_unfused"
    pairs = sorted(path for path in fused.rglob("*") if path.name.endswith("_ascend_pt"))
    if len(pairs) < 2:
        pairs = [shared / ASCEND / "cnn-ddp-2rank-text/rank0_ascend_pt", shared / ASCEND / "cnn-ddp-2rank-text/rank1_ascend_pt"]
    done = kb("apply", pairs[0], "use_fused_attention", "--after", pairs[1], "--json")
    assert done.status in (0, 6), done.err
    found = done.json()
    assert found["strategy"] == "use_fused_attention"
    assert found["keep"] in (True, False, None)
    assert found["comparison"]["origins"] == ["measured", "measured"]
    assert (found["keep"] is False) == (done.status == 6)


def test_a_profile_of_another_model_is_refused(kb: Run, shared: Path) -> None:
    llm, cnn = shared / ASCEND / "qwen3-0.6b-train-pp2-dp2/rank_0_ascend_pt", shared / ASCEND / "cnn-ddp-2rank-text/rank0_ascend_pt"
    result = kb("apply", llm, "enable_task_queue", "--after", cnn)
    assert result.status == 1
    assert "the new profile is refused" in result.err
    same = kb("apply", llm, "--after", llm)
    assert (same.status, "the same capture" in same.err) == (1, True)


def test_a_simulated_profile_of_another_size_is_refused(kb: Run, before: Path, tmp_path: Path) -> None:
    other = tmp_path / "large.prof"
    assert kb("simulate", "model", "bert-large", "--steps", "2", "--output", other).status == 0
    result = kb("apply", before, "use_fused_attention", "--after", other)
    assert (result.status, "bert-large" in result.err) == (1, True)


def test_waiting_ends_with_the_profile_or_in_time(tmp_path: Path) -> None:
    path, clock = tmp_path / "new.prof", [0.0]

    def sleep(seconds: float) -> None:
        clock[0] += max(seconds, 0.5)
        if clock[0] > 4 and not path.exists():
            path.write_bytes(b"half")
        elif path.exists() and path.stat().st_size < 8:
            path.write_bytes(b"all of it")

    assert awaited(path, 60, sleep=sleep, clock=lambda: clock[0]) == path
    assert path.read_bytes() == b"all of it"
    late = [0.0]

    def pass_by(seconds: float) -> None:
        late[0] += max(seconds, 0.5)

    with pytest.raises(UnusableCaptureError, match="did not come within 5 s"):
        awaited(tmp_path / "never", 5, sleep=pass_by, clock=lambda: late[0])


def test_profiler_fix_answers_one_bottleneck(kb: Run, before: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profiler = runner(capsys, "profiler")
    fixed = tmp_path / "fixed.prof"
    done = profiler(
        "fix", "--bottleneck", "attention_unfused", "--apply_strategy", "true", "--session", before, "--output", fixed, "--json"
    )
    assert done.status == 0, done.err
    assert done.json()["kept"] == ["use_fused_attention"]
    told = profiler("fix", "--bottleneck", "unfused_attention", "--session", before)
    assert (told.status, "torch_npu" in told.out) == (0, True)
    gone = profiler("fix", "--bottleneck", "attention_unfused", "--session", fixed)
    assert (gone.status, "does not show unfused_attention" in gone.err) == (1, True)
    assert profiler("fix", "--bottleneck", "magic", "--session", before).status == 1
    report = tmp_path / "validation.md"
    checked = profiler(
        "validate-optimization", "--before", before, "--after", fixed, "--metrics", "latency_gain, bottleneck_elimination",
        "--output", report,
    )  # fmt: skip
    assert checked.status == 0, checked.err
    assert "eliminated" in report.read_text(encoding="utf-8")
    assert profiler("validate-optimization", "--before", fixed, "--after", before).status == 6
    assert profiler("validate-optimization", "--before", before, "--after", fixed, "--metrics", "beauty").status == 2
