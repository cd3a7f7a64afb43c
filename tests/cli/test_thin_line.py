"""From a profile to a published recipe, through the commands a user types."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from cli.program import Run

_SAMPLE = Path("data/profiles/ascend/qwen3-0.6b-train-pp2-dp2")
_OUTPUT = "ASCEND_PROFILER_OUTPUT"


def _ns(text: str) -> int:
    return round(float(text) * 1000)


def test_a_real_cluster_is_accounted_for_and_its_imbalance_found(kb: Run, shared: Path) -> None:
    sample = shared / _SAMPLE
    result = kb("diagnose", sample, "--json")
    assert result.status == 0, result.err
    found = result.json()
    assert [session["rank"] for session in found["sessions"]] == [0, 1, 2, 3]
    for session in found["sessions"]:
        with (sample / session["name"] / _OUTPUT / "step_trace_time.csv").open() as file:
            row = next(csv.DictReader(file))
        parts = session["accounting_ns"]
        whole = _ns(row["Stage"]) + _ns(row["Bubble"])
        assert sum(parts.values()) == pytest.approx(whole, rel=1e-3)
        assert session["step_ns"] == pytest.approx(whole, abs=2)
        assert parts["compute"] == pytest.approx(_ns(row["Computing"]), abs=2)
        assert parts["comm_exposed"] == pytest.approx(_ns(row["Communication(Not Overlapped)"]) - _ns(row["Bubble"]), abs=2)
        assert parts["idle_bubble"] == _ns(row["Bubble"])
    finding = next(item for item in found["cluster"]["findings"] if item["cause"] == "pipeline_imbalance")
    assert 20e6 <= finding["gain_bound_ns"] <= 60e6
    assert finding["gain_bound_ns"] <= finding["exposed_ns"]
    assert found["cluster"]["captured_ranks"] == [0, 1, 2, 3]
    assert found["cluster"]["world_size"] == 4


def test_every_cited_row_exists_and_holds_the_value(kb: Run, shared: Path) -> None:
    sample = shared / _SAMPLE
    found = kb("diagnose", sample, "--json").json()
    cited = [item for finding in found["cluster"]["findings"] for item in finding["evidence"]]
    assert cited
    for item in cited:
        text = (sample / item["file"]).read_text()
        if isinstance(item["row"], str):
            assert item["row"].split("/", 1)[1] in text, item
            continue
        lines = text.splitlines()
        assert 2 <= item["row"] <= len(lines), item


def test_the_whole_loop_on_the_simulator(kb: Run, tmp_path: Path) -> None:
    before, after = tmp_path / "before.prof", tmp_path / "after.prof"
    assert kb("simulate", "model", "sd3", "--output", before).status == 0
    diagnosed = kb("diagnose", before, "--json").json()["sessions"][0]
    assert diagnosed["origin"] == "simulated"
    assert diagnosed["findings"][0]["cause"] == "unfused_attention"
    assert sum(finding["gain_bound_ns"] for finding in diagnosed["findings"]) <= diagnosed["step_ns"]
    ranked = kb("recommend", before, "--json").json()
    assert ranked["feasible"]
    best = ranked["strategies"][0]
    assert best["id"] == "use_fused_attention"
    assert best["provenance"] == "simulated"
    assert any("sd3" in case["ref"] for case in best["cases"])
    assert best["gain_ns"] <= diagnosed["findings"][0]["gain_bound_ns"]

    applied = kb("apply", before, best["id"], "--output", after, "--json")
    assert applied.status == 0, applied.err
    comparison = kb("compare", before, after, "--json").json()
    assert comparison["verdict"] == "improved"
    own = ("causes", "resolved_causes", "new_causes")
    assert {**comparison, **dict.fromkeys(own)} == {**applied.json()["comparison"], **dict.fromkeys(own)}
    assert "unfused_attention" in comparison["resolved_causes"]
    assert (
        0 < comparison["gain_fraction"] <= diagnosed["findings"][0]["gain_bound_ns"] / diagnosed["step_ns"] + comparison["noise_fraction"]
    )
    left = kb("diagnose", after, "--json").json()["sessions"][0]["findings"]
    assert "unfused_attention" not in [finding["cause"] for finding in left]
    assert kb("compare", after, before, "--fail-on-regression").status == 6

    published = kb("publish", before, "--after", after, "--strategy", best["id"], "--slug", "mine", "--json").json()
    assert published["record"]["provenance"] == "simulated"
    outcome = published["record"]["cases"][0]["outcomes"][0]
    assert (outcome["result"], outcome["provenance"]) == ("improved", "simulated")
    hits = kb("search", "attention not fused", "--simulated", "--json").json()["hits"]
    assert "mine" in [hit["slug"] for hit in hits]
    assert "mine" not in [hit["slug"] for hit in kb("search", "attention not fused", "--json").json()["hits"]]


_DRAFT = """---
kind: recipe
slug: my-finding
title: {{zh: 我的发现, en: My finding}}
summary: {{zh: 概要, en: "{summary}"}}
provenance: measured
---

# English

{body}

# 中文

正文
"""


def _write(path: Path, summary: str, body: str) -> Path:
    path.write_text(_DRAFT.format(summary=summary, body=body), encoding="utf-8")
    return path


def test_publishing_twice_makes_two_versions_and_the_first_never_changes(kb: Run, tmp_path: Path) -> None:
    first = kb("publish", _write(tmp_path / "a.md", "First text", "about zebras"), "--json").json()
    assert first["ref"] == "workspace:my-finding@1"
    shown = kb("show", "my-finding@1").out
    shown_json = kb("show", "my-finding@1", "--json").out
    second = kb("publish", _write(tmp_path / "a.md", "Second text", "about quokkas"), "--json").json()
    assert second["ref"] == "workspace:my-finding@2"
    assert second["parent"] == first["sha256"]
    assert kb("show", "my-finding@1").out == shown
    assert kb("show", "my-finding@1", "--json").out == shown_json
    top = kb("search", "--text-only", "quokkas", "--json").json()["hits"][0]
    assert (top["slug"], top["version"]) == ("my-finding", 2)
    assert "my-finding" not in [hit["slug"] for hit in kb("search", "--text-only", "zebras", "--json").json()["hits"]]
    assert [row["version"] for row in kb("log", "my-finding", "--json").json()["versions"]] == [1, 2]


def test_equal_content_publishes_nothing(kb: Run, tmp_path: Path) -> None:
    path = _write(tmp_path / "a.md", "Text", "body")
    assert kb("publish", path, "--json").json()["created"]
    again = kb("publish", path, "--json").json()
    assert (again["created"], again["n"]) == (False, 1)


def test_a_file_cannot_type_its_tier(kb: Run, tmp_path: Path) -> None:
    result = kb("publish", _write(tmp_path / "a.md", "Text", "body"), "--json")
    assert result.json()["record"]["provenance"] == "claimed"
    assert "claimed" in result.err


def test_a_card_is_made_from_a_recipe_and_never_poses_as_published(kb: Run) -> None:
    recipe = kb("show", "sd3-attention-unfused", "--json").json()
    sketch = kb("card", "sd3-attention-unfused", "--json").json()
    assert sketch["published"] is False
    assert sketch["made_from"] == "library:sd3-attention-unfused@1"
    assert sketch["record"]["kind"] == "card"
    assert not any(case["outcomes"] for case in sketch["record"]["cases"])
    assert sketch["record"]["pitfalls"] == recipe["record"]["pitfalls"][:3]
    assert recipe["sha256"] not in kb("card", "sd3-attention-unfused").out


def test_a_kept_card_is_a_record_of_its_own(kb: Run) -> None:
    assert kb("card", "sd3-attention-unfused", "--publish").status == 1, "the library has that card already"
    slugs = {kind: [row["slug"] for row in kb("list", "--kind", kind, "--json").json()["records"]] for kind in ("recipe", "card")}
    without = next(slug for slug in slugs["recipe"] if f"{slug[:91]}-card" not in slugs["card"])
    assert kb("card", without, "--publish").status == 0
    assert kb("show", f"{without[:91]}-card", "--json").json()["record"]["links"] == [without]
    assert kb("card", "diffusion-bottlenecks").status == 2


def test_a_template_judges_a_profile_with_its_own_checks(kb: Run, tmp_path: Path) -> None:
    before = tmp_path / "before.prof"
    kb("simulate", "model", "sd3", "--output", before)
    found = kb("template", "apply", "diffusion-bottlenecks", before, "--json").json()
    assert found["template"] == "diffusion-bottlenecks"
    assert found["sessions"][0]["findings"][0]["cause"] == "unfused_attention"
    checks = {item["cause"] for kind in ("findings", "healthy", "not_judged") for item in found["sessions"][0][kind]}
    assert {"unfused_attention", "suboptimal_tiling", "stream_bubbles", "l2_pressure", "host_bound_launch"} <= checks


def test_health_and_doctor_speak_plainly(kb: Run, tmp_path: Path, shared: Path) -> None:
    health = kb("health", shared / _SAMPLE, "--json")
    assert health.status == 0
    assert health.json()["verdict"] in ("good", "usable")
    assert kb("doctor", "--json").json()["ok"]


def test_a_library_name_is_not_taken_by_accident(kb: Run, tmp_path: Path) -> None:
    text = _write(tmp_path / "a.md", "Text", "body").read_text(encoding="utf-8").replace("my-finding", "sd3-attention-unfused")
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    pinned = kb("show", "sd3-attention-unfused@1").out
    refused = kb("publish", tmp_path / "a.md")
    assert (refused.status, "--overlay" in refused.err) == (1, True)
    assert kb("show", "sd3-attention-unfused@1").out == pinned
    assert kb("publish", tmp_path / "a.md", "--overlay").status == 0
    assert kb("show", "library:sd3-attention-unfused@1").out == pinned


_CASES = """cases:
  - cause: {cause}
    context: {{}}
    outcomes:
      - strategy: {strategy}
        metric: step_time
        result: {result}
        before: {{value: {before}}}
        after: {{value: {after}}}
"""


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"after": "10, unit: GB"}, "GB"),
        ({"after": "10, unit: parsec"}, "parsec"),
        ({"after": "-10, unit: ms"}, "below zero"),
        ({"after": "30, unit: ms"}, "improved"),
        ({"cause": "gremlins"}, "gremlins"),
        ({"strategy": "prayer"}, "prayer"),
    ],
)
def test_a_case_that_nothing_could_use_is_refused(kb: Run, tmp_path: Path, changes: dict[str, str], word: str) -> None:
    good = {"cause": "unfused_attention", "strategy": "use_fused_attention", "result": "improved", "before": "20, unit: ms",
            "after": "10, unit: ms"}  # fmt: skip
    path = _write(tmp_path / "a.md", "Text", "body")
    plain = path.read_text(encoding="utf-8")
    path.write_text(
        plain.replace("provenance: measured\n", "provenance: claimed\n" + _CASES.format(**{**good, **changes})), encoding="utf-8"
    )
    result = kb("publish", path)
    assert result.status == 1, result.err
    assert word in result.err
    path.write_text(plain.replace("provenance: measured\n", "provenance: claimed\n" + _CASES.format(**good)), encoding="utf-8")
    assert kb("publish", path).status == 0


def test_a_capture_compared_with_itself_is_no_evidence(kb: Run, tmp_path: Path) -> None:
    before = tmp_path / "before.prof"
    kb("simulate", "model", "sd3", "--output", before)
    result = kb("publish", before, "--after", before, "--strategy", "use_fused_attention")
    assert (result.status, "same capture" in result.err) == (1, True)


def test_two_captures_cite_their_files_apart(kb: Run, shared: Path) -> None:
    first, second = (shared / _SAMPLE / f"rank_{number}_ascend_pt" for number in (0, 2))
    found = kb("diagnose", first, second, "--json").json()
    files = {item["file"] for finding in found["cluster"]["findings"] for item in finding["evidence"]}
    assert any(str(first) in file for file in files)
    assert any(str(second) in file for file in files)
    assert all(Path(file).is_file() for file in files)
