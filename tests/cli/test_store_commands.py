"""The commands over stored records, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.program import Run

_DRAFT = """---
kind: recipe
slug: mine
title: {{zh: 我的, en: Mine}}
summary: {{zh: 概要, en: "{summary}"}}
---

# English

{body}

# 中文

正文
"""


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    return write(tmp_path / "mine.md", "first", "text")


def write(path: Path, summary: str, body: str) -> Path:
    path.write_text(_DRAFT.format(summary=summary, body=body), encoding="utf-8")
    return path


def published(kb: Run, tmp_path: Path, *summaries: str) -> None:
    for summary in summaries:
        assert kb("publish", write(tmp_path / "mine.md", summary, f"body {summary}"), "--author", "ann").status == 0


def test_a_record_shown_as_markdown_publishes_as_nothing_new(kb: Run, draft: Path, tmp_path: Path) -> None:
    kb("publish", draft)
    again = tmp_path / "again.md"
    again.write_text(kb("show", "mine", "--markdown").out, encoding="utf-8")
    assert kb("publish", again, "--json").json()["created"] is False


def test_a_yanked_version_is_hidden_and_served_with_a_warning_beside(kb: Run, tmp_path: Path) -> None:
    published(kb, tmp_path, "one", "two")
    shown = kb("show", "mine@2").out
    assert kb("yank", "mine@2").status == 2
    assert kb("yank", "mine@2", "--reason", "wrong", "--replacement", "mine@1", "--json").json()["event"]["detail"]["reason"] == "wrong"
    again = kb("show", "mine@2")
    assert again.out == shown
    assert "workspace:mine@1" in again.err
    assert kb("show", "mine", "--json").json()["n"] == 1
    assert "mine" not in [hit["slug"] for hit in kb("search", "--text-only", "two", "--json").json()["hits"] if hit["version"] == 2]
    assert kb("publish", write(tmp_path / "mine.md", "two", "body two"), "--author", "ann", "--json").json()["created"] is False
    assert kb("yank", "mine@2", "--undo").status == 0
    assert kb("show", "mine", "--json").json()["n"] == 2
    assert kb("yank", "mine@2", "--undo").status == 1


def test_names_that_move_and_lines_of_history(kb: Run, tmp_path: Path) -> None:
    published(kb, tmp_path, "one", "two", "three")
    assert kb("alias", "mine@2", "stable").status == 0
    assert kb("show", "mine@stable", "--json").json()["n"] == 2
    assert kb("show", "mine@latest", "--json").json()["n"] == 3
    assert kb("alias", "mine", "latest").status == 2
    assert kb("show", "mine@unknown").status == 1
    kb("deprecate", "mine@1", "--reason", "superseded", "--replacement", "mine@3")
    kb("used", "mine@3", "--result", "improved", "--gain", "12%")
    lines = kb("history", "mine", "--json").json()["versions"]
    assert [(line["ref"], line["aliases"], line["revision"]["status"]) for line in lines] == [
        ("workspace:mine@1", [], "deprecated"), ("workspace:mine@2", ["stable"], "published"), ("workspace:mine@3", [], "published"),
    ]  # fmt: skip
    assert "gain_fraction 0.12" in kb("history", "mine", "--limit", "1", "--lang", "en").out


def test_what_the_audit_doubts_is_said_and_kept(kb: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "mine.md", "s", "Latency fell from 200 ms to 100 ms (-70 %). Captured 217 of 218 operators (99.8 %).")
    found = kb("publish", path, "--json").json()
    assert sorted(note["rule"] for note in found["audit"]) == ["percentage", "percentage"]
    assert "percentage" in kb("history", "mine").out
    assert "217 / 218" in json.dumps(kb("log", "mine", "--json").json()["events"])


@pytest.mark.parametrize(
    ("body", "words"),
    [("<script>alert(1)</script>", "raw HTML"), ("[x](javascript:alert(1))", "link"), ("![x](file:///etc/passwd)", "link")],
)
def test_what_may_not_be_published_is_refused(kb: Run, tmp_path: Path, body: str, words: str) -> None:
    result = kb("publish", write(tmp_path / "mine.md", "s", body))
    assert result.status == 1
    assert words in result.err


def test_a_difference_is_told_by_field(kb: Run, tmp_path: Path) -> None:
    published(kb, tmp_path, "one", "two")
    found = kb("diff", "mine@1", "mine@2", "--json").json()
    assert [change["path"] for change in found["changes"]] == ["summary.en", "body.en"]
    assert kb("diff", "mine@2", tmp_path / "mine.md", "--json").json()["equal"]
    assert "~ summary.en: one -> two" in kb("diff", "mine@1", "mine").out


def test_a_record_without_evidence_is_not_verified_and_says_why(kb: Run, draft: Path) -> None:
    kb("publish", draft)
    result = kb("verify", "mine", "--lang", "en")
    assert result.status == 1
    assert "not verified" in result.out


def test_records_travel_and_a_workspace_comes_back(kb: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published(kb, tmp_path, "one", "two")
    for target in (tmp_path / "out", tmp_path / "out.zip"):
        assert kb("export", target, "--json").json()["versions"] == 2
    assert kb("export", tmp_path / "out.zip").status == 1
    assert kb("backup", tmp_path / "b.zip").status == 0
    monkeypatch.setenv("KB_HOME", str(tmp_path / "elsewhere"))
    assert kb("import", tmp_path / "out.zip", "--json").json()["versions"] == 2
    assert kb("import", tmp_path / "out", "--json").json()["unchanged"] == 2
    published(kb, tmp_path, "three")
    assert kb("restore", tmp_path / "b.zip").status == 1
    assert "replaced" in kb("restore", tmp_path / "b.zip", "--force").out
    assert kb("show", "mine", "--json").json()["n"] == 2
    checks = kb("doctor", "--repair", "--json").json()["checks"]
    assert [check["name"] for check in checks if not check["ok"] and check["name"].startswith("store")] == []


def test_usage_slips_say_what_is_allowed(kb: Run, draft: Path) -> None:
    kb("publish", draft)
    for words in (
        ("yank", "mine@1", "--reason", "because"),
        ("verify", "mine", "--before", str(draft)),
        ("verify", "mine", "--software", "cann"),
        ("alias", "mine", "No Spaces"),
        ("used", "mine", "--result", "improved", "--gain", "150%"),
    ):
        result = kb(*words)
        assert result.status == 2, words
        assert "allowed" in result.err or "do:" in result.err, words
