"""The profiler article's commands that speak about one session."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.program import Run, runner

from kb.library.markdown import parse_markdown
from kb.library.templates import parse_template


@pytest.fixture
def profiler(kb: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """``profiler`` in a folder that holds one simulated capture."""
    monkeypatch.chdir(tmp_path)
    assert kb("simulate", "model", "bert-base", "--output", "bert_capture.prof").status == 0
    return runner(capsys, "profiler")


def test_a_session_is_found_by_the_beginning_of_its_name_and_that_is_said(profiler: Run) -> None:
    result = profiler("alert", "--session", "bert", "--lang", "en")
    assert result.status == 0
    assert "bert_capture.prof" in result.err
    assert result.out.startswith("These are simulated results.")


def test_without_a_name_the_newest_capture_is_taken_and_none_is_an_error(profiler: Run, tmp_path: Path) -> None:
    assert profiler("alert").status == 0
    (tmp_path / "bert_capture.prof").unlink()
    nothing = profiler("alert")
    assert nothing.status == 1
    assert "--data PATH" in nothing.err
    unknown = profiler("alert", "--session", "llama")
    assert unknown.status == 1
    assert "no capture is called llama" in unknown.err


def test_an_alert_names_the_causes_in_the_language_of_the_voice(profiler: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    result = profiler("alert", "--session", "bert", "--voice", "zh", "--lang", "en")
    assert "仿真" in result.out
    assert "检测到" in result.out
    assert "text only" in result.err


def test_the_system_voice_gets_the_text_as_one_argument(profiler: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "espeak-ng"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "${0%/*}/said"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    assert profiler("alert", "--session", "bert", "--voice", "en").status == 0
    said = (program.parent / "said").read_text().splitlines()
    assert said[:3] == ["-v", "en", "--"]
    assert said[3].startswith("These are simulated results.")
    assert len(said) == 4


def test_a_report_names_expected_causes_the_capture_does_not_show(profiler: Run, tmp_path: Path) -> None:
    result = profiler("report", "--session", "bert", "--format", "pdf,html", "--scenario", "bert_case",
                      "--key_findings", "stage_imbalance, no_such_cause", "--output", "out.pdf", "--json")  # fmt: skip
    found = result.json()
    assert found["files"] == ["out.pdf", "out.html"]
    assert found["unknown"] == ["no_such_cause"] or "no_such_cause" in found["unknown"]
    assert (tmp_path / "out.pdf").read_bytes().startswith(b"%PDF-")
    assert profiler("report", "--session", "bert", "--format", "docx").status == 2
    again = profiler("report", "--session", "bert", "--output", "out.html")
    assert again.status == 1
    assert "--force" in again.err


def test_a_pdf_report_is_published_with_tags_and_a_foreign_one_refused(profiler: Run, kb: Run, tmp_path: Path) -> None:
    assert profiler("report", "--session", "bert", "--scenario", "bert_case", "--output", "out.pdf").status == 0
    seen = profiler("publish", "--report", "out.pdf", "--preview", "--json").json()
    assert seen["published"] is False
    assert kb("show", "bert-case").status == 1
    made = profiler("publish", "--report", "out.pdf", "--tags", "sd3, aigc", "--visibility", "public", "--json").json()
    assert made["ref"].endswith("bert-case@1")
    assert {"sd3", "aigc"} <= set(kb("show", "bert-case", "--json").json()["record"]["tags"])
    (tmp_path / "foreign.pdf").write_bytes(b"%PDF-1.7\n%%EOF\n")
    refused = profiler("publish", "--report", "foreign.pdf")
    assert refused.status == 3
    assert "no report record" in refused.err


def test_a_second_report_of_the_same_case_is_pointed_at_the_first(profiler: Run) -> None:
    for scenario in ("first_case", "second_case"):
        assert profiler("report", "--session", "bert", "--scenario", scenario, "--output", f"{scenario}.json").status == 0
    assert profiler("publish", "--report", "first_case.json").status == 0
    second = profiler("publish", "--report", "second_case.json", "--slug", "another-name")
    assert second.status == 0
    assert "near to workspace:first-case@1" in second.err


def test_a_card_of_a_session_is_a_record_that_can_be_published(profiler: Run, kb: Run, tmp_path: Path) -> None:
    words = ("--scenario", "bert_card", "--key_evidence", "l2_miss_63%", "--output", "card.md")
    assert profiler("knowledge-card", "--session", "bert", *words).status == 0
    card = parse_markdown((tmp_path / "card.md").read_text(), source="card.md")
    assert card.kind == "card"
    assert "Simulated, not measured." in card.body.en
    assert "仿真" in card.body.zh
    assert "not proved by the capture: `l2_miss_63%`" in card.body.en
    assert kb("publish", "card.md").status == 0


def test_a_template_made_of_a_session_carries_what_it_was_judged_with_and_what_it_showed(profiler: Run, tmp_path: Path) -> None:
    result = profiler("template-create", "--from", "bert", "--name", "my_template", "--output", "t.json")
    assert result.status == 0
    template = parse_template((tmp_path / "t.json").read_bytes(), source="t.json")
    diagnosed = profiler("analyze", "--data", "bert_capture.prof", "--json").json()["sessions"][0]
    shares = {finding["cause"]: finding["share"] for finding in diagnosed["findings"]}
    assert {check.cause for check in template.checks if check.history[0].share > 0} == set(shares)
    assert template.checks[0].history[0].share == pytest.approx(max(shares.values()), abs=1e-5)
    assert all(check.history[0].origin == "simulated" for check in template.checks)


@pytest.mark.parametrize("view", ["heatmap", "breakdown", "tree", "timeline", "flame"])
def test_every_view_is_a_page_with_a_picture(view: str, profiler: Run, tmp_path: Path) -> None:
    result = profiler("visualize", "--session", "bert", "--view", view, "--output", "view.html")
    assert result.status == 0
    page = (tmp_path / "view.html").read_text()
    assert "<svg" in page
    assert "simulated" in page


def test_a_view_the_report_cannot_show_says_what_would(profiler: Run) -> None:
    assert profiler("analyze", "--data", "bert_capture.prof", "--output", "saved.json").status == 0
    assert profiler("visualize", "--report", "saved.json").status == 0
    refused = profiler("visualize", "--report", "saved.json", "--view", "timeline")
    assert refused.status == 1
    assert "profiler visualize --session" in refused.err


@pytest.mark.parametrize("command", ["stream", "dashboard", "share", "cloud-submit", "cloud-download"])
def test_what_needs_a_server_says_so(command: str, profiler: Run) -> None:
    result = profiler(command, "--session", "bert")
    assert result.status == 1
    assert "comes with the team server" in result.err


def test_a_simulated_report_without_its_sessions_is_claimed_and_still_says_simulated(profiler: Run, kb: Run) -> None:
    assert profiler("report", "--session", "bert", "--scenario", "bert_case", "--output", "out.json").status == 0
    assert profiler("publish", "--report", "out.json").status == 0
    shown = kb("show", "bert-case", "--json").json()
    assert shown["record"]["provenance"] == "claimed"
    assert "simulated" in shown["record"]["tags"]
    assert "not measured" in kb("show", "bert-case", "--lang", "en").out.split("Host-bound launch (")[0]
    assert profiler("publish", "--report", "out.json", "--json").json()["created"] is False


def test_names_in_chinese_work_wherever_names_are_taken(profiler: Run, kb: Run, tmp_path: Path) -> None:
    made = profiler("template-create", "--from", "bert", "--name", "中文模板", "--json")
    assert made.status == 0, made.err
    assert made.json()["slug"].startswith("template-")
    assert (tmp_path / "中文模板.json").is_file()
    words = ("--scenario", "推理诊断 v2", "--output", "card.md", "--force")
    assert profiler("knowledge-card", "--session", "bert", *words).status == 0
    card = parse_markdown((tmp_path / "card.md").read_text(), source="card.md")
    assert card.slug.startswith("v2-")
    assert card.title.zh.startswith("推理诊断 v2：")
    assert card.title.en.isascii()
    assert profiler("report", "--session", "bert", "--scenario", "推理诊断", "--output", "zh.json").status == 0
    seen = profiler("publish", "--report", "zh.json", "--preview", "--json").json()
    assert seen["record"]["slug"].startswith("diagnosis-")
    by_chinese = profiler("path-map", "--session", "bert", "--target", "注意力", "--json")
    assert by_chinese.status == 0, by_chinese.err
    by_english = profiler("path-map", "--session", "bert", "--target", "attention", "--json")
    assert by_chinese.json()["trees"] == by_english.json()["trees"]
    fix = profiler("fix", "--bottleneck", "注意力未融合", "--session", "bert", "--json")
    assert (fix.status, fix.out) == (lambda other: (other.status, other.out))(
        profiler("fix", "--bottleneck", "unfused_attention", "--session", "bert", "--json")
    )


def test_a_card_that_publish_takes_is_one_that_lint_takes(profiler: Run, kb: Run) -> None:
    assert profiler("knowledge-card", "--session", "bert", "--scenario", "my case", "--output", "card.md").status == 0
    linted = kb("lint", "card.md")
    assert linted.status == 0, linted.out
    assert kb("publish", "card.md").status == 0
