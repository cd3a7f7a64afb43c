"""``profiler drill-down``, ``path-map``, ``analyze`` and ``kb template apply`` on a simulated capture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli.program import Run, runner

from kb.library.location import library_root
from kb.workflow.template import template_in_file


@pytest.fixture
def profiler(kb: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """``profiler`` in a folder that holds one simulated capture with unfused attention."""
    monkeypatch.chdir(tmp_path)
    assert kb("simulate", "model", "bert-base", "--output", "bert_capture.prof").status == 0
    return runner(capsys, "profiler")


def every(node: Any) -> list[Any]:
    return [node, *(below for child in node["children"] for below in every(child))]


def test_the_articles_line_goes_from_module_to_hardware(profiler: Run, tmp_path: Path) -> None:
    levels = "module → operator → hardware"
    words = ("--session", "bert", "--target", "attention_block", "--levels", levels, "--output", "drill.md", "--lang", "en")
    result = profiler("drill-down", *words)
    assert result.status == 0
    assert "taking the capture bert_capture.prof" in result.err
    text = (tmp_path / "drill.md").read_text(encoding="utf-8")
    assert "SoftmaxV2" in text
    assert "simulated" in text
    assert "unfused_attention" in text
    assert "event" not in text
    tree = profiler("drill-down", "--target", "attention_block", "--json").json()["trees"][0]["root"]
    assert {node["level"] for node in every(tree)} == {"session", "module", "operator", "hardware"}
    assert all(sum(child["time_ns"] for child in node["children"]) <= node["time_ns"] for node in every(tree))


def test_an_unknown_target_or_level_names_what_there_is(profiler: Run) -> None:
    wrong = profiler("drill-down", "--target", "experts")
    assert wrong.status == 1
    assert "MatMulV3" in wrong.err
    level = profiler("drill-down", "--levels", "module → galaxy")
    assert level.status == 2
    assert "module, operator, hardware, event" in level.err


def test_the_path_map_reaches_events_that_can_be_looked_up_and_draws_them(profiler: Run, tmp_path: Path) -> None:
    result = profiler("path-map", "--session", "bert", "--target", "attention_block", "--output", "path.html", "--lang", "zh")
    assert result.status == 0
    assert "下钻路径" in result.out
    assert "kernels:" in result.out
    assert "<svg" in (tmp_path / "path.html").read_text(encoding="utf-8")


def test_against_a_baseline_every_node_shows_its_change(profiler: Run, kb: Run) -> None:
    assert kb("simulate", "model", "bert-base", "--fused-attention", "--output", "fused.prof").status == 0
    root = profiler("drill-down", "--session", "fused.prof", "--baseline", "bert_capture.prof", "--json").json()["trees"][0]["root"]
    assert root["metrics"]["change"]["value"] < 0
    assert root["metrics"]["before"]["unit"] == "us"


def test_analyze_takes_the_last_capture_and_a_templates_rules(profiler: Run, tmp_path: Path) -> None:
    result = profiler("analyze", "--bottleneck_rules", "edge_stability_rules", "--json")
    assert result.status == 0
    template = template_in_file(library_root() / "templates/edge-stability-rules.json")
    checks = result.json()["checks"]
    assert [check["cause"] for check in checks] == [check.cause for check in template.checks]
    assert {check["result"] for check in checks} <= {"pass", "finding", "not_judged"}
    assert profiler("analyze", "--bottleneck_rules", "auto", "--output", "report.json").status == 0
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["sessions"]
    assert profiler("analyze", "--bottleneck_rules", "no-such-rules").status == 1


def test_template_auto_goes_by_the_type_of_model_and_shows_each_threshold(profiler: Run, kb: Run) -> None:
    del profiler  # its folder holds the capture
    result = kb("template", "apply", "auto", "bert_capture.prof", "--json")
    assert result.status == 0
    answer = result.json()
    template = template_in_file(library_root() / "templates/encoder-serving.json")
    assert [check["cause"] for check in answer["checks"]] == [check.cause for check in template.checks]
    found = {check["cause"]: check for check in answer["checks"]}
    assert found["unfused_attention"]["result"] == "finding"
    assert all(found[check.cause]["thresholds"].items() >= dict(check.thresholds).items() for check in template.checks)
    assert found["host_bound_launch"]["thresholds"]["host_bound_launch_least_share"] == 0.05
