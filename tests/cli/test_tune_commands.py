"""Tuning, scenarios, the simulated toolchain and the knowledge graph from the command line."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.program import Run, runner

from kb.profile.simulated.model_files import read_model
from kb.profile.simulated.om.reading import read_om
from kb.profile.simulated.om.writing import MARK

Program = Callable[[str], Run]


@pytest.fixture
def program(kb: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    """Any program, on the synced workspace, in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    return lambda name: runner(capsys, name)


SMALL = ("--set", "noise=0", "--set", "steps=3", "--knob-trials", "4")


def test_tune_meets_a_limit_journals_and_goes_on_from_there(program: Program, tmp_path: Path) -> None:
    kb, journal, tuned = program("kb"), tmp_path / "j.jsonl", tmp_path / "tuned.prof"
    first = kb("tune", "bert-base", *SMALL, "--trials", "3", "--journal", journal, "--json")
    assert first.status == 0, first.err
    assert first.json()["stop"] == "trials"
    again = kb("tune", "bert-base", *SMALL, "--trials", "20", "--journal", journal, "--output", tuned, "--json").json()
    assert again["replayed"] == 3
    assert again["best"]["latency_ns"] < again["baseline"]["latency_ns"]
    assert len(journal.read_text().splitlines()) == 1 + again["trials"]
    assert kb("diagnose", tuned, "--json").json()["sessions"][0]["step_ns"] == again["best"]["latency_ns"]
    other = kb("tune", "bert-base", *SMALL, "--max-latency", "1ms", "--journal", journal)
    assert (other.status, "belongs to another run" in other.err) == (2, True)


def test_limits_out_of_reach_exit_with_five(program: Program) -> None:
    result = program("kb")("tune", "bert-base", *SMALL, "--max-latency", "1us", "--trials", "4", "--json")
    assert result.status == 5
    assert result.json()["met"] is False


@pytest.mark.parametrize(
    "words",
    [
        ("tune", "bert-base", "--trials", "0"),
        ("tune", "bert-base", "--max-time", "0"),
        ("tune", "bert-base", "--max-latency", "fast"),
        ("tune", "bert-base", "--space", "tile_size: 128"),
        ("tune", "bert-base", "--set", "batch=none"),
        ("simulate", "adaptive", "bert-base", "--devices", "0"),
        ("simulate", "adaptive", "bert-base", "--rate", "many"),
        ("simulate", "memory", "bert-base", "--techniques", "magic"),
        ("atc", "convert", "--model", "bert-base", "--fusion_switch_file", "nowhere.cfg"),
        ("graph", "--output", "graph.dot"),
    ],
)
def test_wrong_calls_are_usage_errors(program: Program, words: tuple[str, ...]) -> None:
    result = program("kb")(*words)
    assert result.status == 2, result.err


def test_an_unknown_model_or_file_is_named(program: Program) -> None:
    kb = program("kb")
    unknown = kb("tune", "bert-bse")
    assert (unknown.status, "bert-base" in unknown.err) == (1, True)
    missing = kb("atc", "convert", "--model", "sd3_converted.om")
    assert (missing.status, "kb simulate article" in missing.err) == (1, True)


def test_a_measured_profile_cannot_be_tuned_here(program: Program, shared: Path) -> None:
    path = shared / "data/profiles/ascend/cnn-ddp-2rank-text/rank0_ascend_pt"
    result = program("kb")("tune", path)
    assert (result.status, "kb apply" in result.err) == (2, True)


def test_cann_profile_then_cann_tune_as_in_the_article(program: Program, tmp_path: Path) -> None:
    profile, tune = program("cann-profile"), program("cann-tune")
    done = profile("--model", "bert-base", "--data", "test.bin", "--set", "steps=3", "--output", "report.html", "--json")
    assert done.status == 0, done.err
    assert done.json()["files"] == ["report.html", "report.json", "report.prof"]
    assert "test.bin" in done.err
    plan = tune("--profile", "report.json", "--target", "latency")
    assert plan.status == 0, plan.err
    assert "cann-tune --profile report.json --target latency --apply" in plan.out
    tuned = tune("--profile", "report.json", "--target", "latency", "--apply", "--no-knobs", "--trials", "6", "--json")
    assert tuned.status == 0, tuned.err
    assert tuned.json()["best"]["latency_ns"] < tuned.json()["baseline"]["latency_ns"]
    assert profile("--model", "bert-base", "--output", "report.html").status == 1
    (tmp_path / "report.prof").unlink()
    lost = tune("--profile", "report.json", "--apply")
    assert (lost.status, "without its capture" in lost.err) == (1, True)
    assert tune("--help").status == 0


def test_a_report_and_a_foreign_capture_do_not_go_together(program: Program, tmp_path: Path) -> None:
    assert program("cann-profile")("--model", "bert-base", "--set", "steps=2", "--output", "report.html").status == 0
    assert program("kb")("simulate", "model", "resnet50", "--output", "report.prof", "--force").status == 0
    result = program("cann-tune")("--profile", "report.json", "--apply")
    assert (result.status, "resnet50" in result.err) == (2, True)


def test_convert_fuses_checks_and_leaves_a_baseline(program: Program, tmp_path: Path) -> None:
    kb = program("kb")
    (tmp_path / "fusion.cfg").write_text('fusion_pattern: "MatMul + Softmax + MatMul" → "FusedAttention"\nenable: true\n', encoding="utf-8")
    words = ("--model", "bert-base", "--fusion_switch_file", "fusion.cfg", "--auto_profile", "true", "--output", "fused.om")
    done = kb("atc", "convert", *words, "--json")
    assert done.status == 0, done.err
    found = done.json()
    assert found["files"] == ["fused.om", "fused_baseline.prof"]
    assert found["after_step_ns"] < found["before_step_ns"]
    assert found["rules"][0]["kept"]
    assert found["real_command"].startswith("atc --model=")
    assert "[simulated]" in done.err
    data = (tmp_path / "fused.om").read_bytes()
    assert MARK in read_om(data, "fused.om").header.info
    types = {operator.op_type for operator in read_model(tmp_path / "fused.om").operators}
    assert "FlashAttentionScore" in types
    assert "SoftmaxV2" not in types
    step = kb("diagnose", "fused_baseline.prof", "--json").json()["sessions"][0]
    assert step["origin"] == "simulated"
    assert step["step_ns"] == pytest.approx(found["after_step_ns"], rel=0.1)
    again = kb("tune", "fused.om", "--set", "steps=2", "--no-knobs", "--trials", "2")
    assert again.status == 0, again.err


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ('{"Switch": {"GraphFusion": {"ALL": "on", "fuse_attention": "off"}, "UBFusion": {}}}', 0),
        ('{"Switch": {"GraphFusion": {"SomethingPass": "off"}}}', 0),
        ('{"Switch": {"GraphFusion": {"ALL": "maybe"}}}', 3),
        ('{"Switch": []}', 3),
        ("{", 3),
        ("nothing of the kind", 3),
        ("", 3),
    ],
)
def test_fusion_switches_of_both_forms(program: Program, tmp_path: Path, content: str, status: int) -> None:
    (tmp_path / "switch.cfg").write_text(content, encoding="utf-8")
    result = program("kb")("atc", "convert", "--model", "bert-base", "--fusion_switch_file", "switch.cfg", "--output", "x.om", "--json")
    assert result.status == status, result.err
    if "SomethingPass" in content:
        assert "not modelled: SomethingPass" in result.err
    if '"fuse_attention": "off"' in content:
        assert "fuse_attention" not in [rule["rule"] for rule in result.json()["rules"]]


def test_precision_is_emulated_and_real_metrics_are_not_invented(program: Program) -> None:
    kb = program("kb")
    found = kb("atc", "validate-precision", "--model", "sd3", "--metrics", "clip_score", "--json").json()
    assert found["not_judged"] == ["clip_score"]
    assert "clip_score" not in found["after"]
    bad = kb("atc", "validate-precision", "--model", "bert-base", "--set", "precision=int8", "--metrics", "cosine", "--max-loss", "0.01")
    assert (bad.status, "cosine" in bad.out) == (6, True)
    assert kb("atc", "validate-precision", "--model", "bert-base", "--metrics", "cosine", "--max-loss", "0.01").status == 0


def test_aoe_cuts_what_the_buffer_cannot_hold(program: Program) -> None:
    found = program("kb")(
        "aoe",
        "tune",
        "--model",
        "bert-base",
        "--search_space",
        "tile_size: [128,160,192,224]",
        "--set",
        "steps=2",
        "--trials",
        "5",
        "--json",
    ).json()
    assert [cut["value"] for cut in found["cuts"]] == ["192x192x64", "224x224x64"]
    assert "L0C" in found["cuts"][0]["reason"]["en"]
    assert {name for item in found["rounds"] for name in item["values"]} <= {"tile"}


def test_a_scenario_shows_claimed_beside_simulated_and_why_claims_cannot_hold(program: Program) -> None:
    result = program("kb")("simulate", "scenario", "yolov8-310p", "--json")
    assert result.status == 0, result.err
    found = result.json()
    line = next(item for item in found["figures"] if item["name"] == "latency")
    assert (line["claimed_before"], line["claimed_after"]) == ("180-240 ms", "168 ms")
    assert line["simulated_after"]["value"] < line["simulated_before"]["value"]
    rules = {note["rule"] for note in found["audit"]}
    assert {"throttling", "roofline"} <= rules
    assert line["doubts"]
    assert "improve_cooling" in found["tuning"]["kept"]
    unknown = program("kb")("simulate", "scenario", "nothing")
    assert (unknown.status, "bert-large" in unknown.err) == (1, True)


def test_the_pipeline_scenario_shows_claimed_beside_planned(program: Program) -> None:
    result = program("kb")("simulate", "scenario", "tts-video", "--json")
    assert result.status == 0, result.err
    found = result.json()
    lines = {item["name"]: item for item in found["figures"]}
    assert (lines["throughput"]["claimed_before"], lines["throughput"]["claimed_after"]) == ("18-35 /s", "63 /s")
    waiting = lines["requests waiting, most"]
    assert waiting["simulated_after"]["value"] < waiting["simulated_before"]["value"]
    assert [note["rule"] for note in found["audit"]] == ["range_base"]
    assert "tuning" not in found


def test_memory_and_load_are_simulated_from_the_command_line(program: Program) -> None:
    kb = program("kb")
    memory = kb("simulate", "memory", "bert-base", "--batch", "8", "--json").json()
    assert memory["after"]["reserved_b"] < memory["before"]["reserved_b"]
    assert all(row["strategy"] for row in memory["techniques"])
    assert {row["result"] for row in memory["techniques"]} == {"improved", "no_gain"}
    load = kb(
        "simulate", "adaptive", "bert-base", "--soc", "310p3", "--rate", "1500/s", "--seconds", "4", "--max-latency", "80ms", "--json"
    )
    assert load.status == 0, load.err
    assert load.json()["adaptive"]["throughput"] > load.json()["fixed"]["throughput"]
    assert {cut["knob"] for cut in load.json()["cuts"]} == {"tensor"}
    outcome = load.json()["outcome"]
    assert outcome["result"] == "improved"
    assert "change_pipeline_parallel" in outcome["strategies"]


def test_the_knowledge_graph_joins_up(program: Program, tmp_path: Path) -> None:
    kb = program("kb")
    graph = kb("graph", "--json").json()
    ids = {node["id"] for node in graph["nodes"]}
    assert {"cause:unfused_attention", "strategy:use_fused_attention"} <= ids
    assert all(edge["source"] in ids and edge["target"] in ids for edge in graph["edges"])
    kinds = {node["kind"] for node in graph["nodes"]}
    assert kinds == {"cause", "strategy", "model", "soc", "outcome"}
    for node in graph["nodes"]:
        if node["kind"] == "outcome":
            assert sum(node["counts"].values()) >= 1
    assert kb("graph", "--output", "g.graphml").status == 0
    parsed = ElementTree.parse(tmp_path / "g.graphml").getroot()  # our own file
    assert len(parsed.findall(".//{*}node")) == len(ids)
    assert len(parsed.findall(".//{*}edge")) == len(graph["edges"])
    near = kb("graph", "--around", "attention_unfused", "--json").json()
    assert 2 <= len(near["nodes"]) < len(graph["nodes"])
    assert kb("graph", "--around", "no_such_thing").status == 1
    measured = kb("graph", "--min-provenance", "measured", "--json").json()
    assert len([node for node in measured["nodes"] if node["kind"] == "outcome"]) < len(
        [node for node in graph["nodes"] if node["kind"] == "outcome"]
    )


def test_both_languages_and_json_say_the_same(program: Program) -> None:
    kb = program("kb")
    chinese = kb("tune", "bert-base", *SMALL, "--no-knobs", "--trials", "3", "--lang", "zh")
    assert "闭环调优" in chinese.out
    assert "仿真" in chinese.out
    english = kb("tune", "bert-base", *SMALL, "--no-knobs", "--trials", "3", "--lang", "en")
    assert "Closed-loop tuning" in english.out
    json.loads(kb("tune", "bert-base", *SMALL, "--no-knobs", "--trials", "3", "--json").out)
