"""Every rule of the lint has a fixture that breaks it, and says where."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kb.errors import NotFoundError
from kb.library.lint.collection import lint
from kb.library.lint.problem import Problem
from kb.library.location import library_root

Change = Callable[..., Path]
BOTH = {"zh": "中文内容", "en": "English"}
GOOD = """---
kind: recipe
slug: one
title:
  zh: 一个标题
  en: A title
summary:
  zh: 从 620 到 422 ms（-32 %）
  en: From 620 to 422 ms (-32 %).
tags:
- field
- case:abc-1
cases:
- cause: slow
  context:
    metrics:
      latency:
        value: 620.0
        unit: ms
  outcomes:
  - strategy: speed_up
    result: improved
    metric: latency
    before:
      value: 620.0
      unit: ms
    after:
      value: 422.0
      unit: ms
  symptoms:
  - zh: 太慢了没法用
    en: too slow to use
  - zh: 一直在等
    en: always waiting
sources:
- title: A page
  url: https://example.org/a
links:
- one
---

# English

Text with `speed_up`.

# 中文

一段正文。
"""


@pytest.fixture
def shelf(library: Path, change: Change) -> Path:
    """A library without a problem."""
    text = {"zh": "写好了", "en": "filled in"}
    change("causes/slow", healthy=text)
    change("strategies/speed_up", evidence=text, healthy=text, precision_risk="none")
    change("metrics/latency", definition=text)
    (library / "recipes/one/recipe.md").write_text(GOOD, encoding="utf-8")
    return library


def _problems(path: Path, thresholds: frozenset[str] = frozenset({"limit"})) -> tuple[Problem, ...]:
    return lint(path, shipped=library_root(), thresholds=thresholds).problems


def _line(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def test_a_good_library_has_no_problem(shelf: Path) -> None:
    assert _problems(shelf) == ()


@pytest.mark.parametrize(
    ("old", "new", "rule", "at", "said"),
    [
        ("kind: recipe", "kind: novel", "schema", "kind: novel", "novel"),
        ("  en: A title\n", "  en: 'A title.'\n", "title", "title:", "stop"),
        ("  en: A title\n", "  en: a title\n", "title", "title:", "case"),
        ("  en: A title\n", f"  en: {'Long ' * 40}\n", "title", "title:", "longer"),
        ("  en: A title\n", "  en: A 标题\n", "language", "title:", "Chinese characters"),
        ("  zh: 一个标题\n", "  zh: A title again\n", "language", "title:", "hardly any"),
        ("    en: always waiting\n", "    en: ''\n", "language", "- zh: 一直在等", "no text in en"),
        ("always waiting", "TODO", "open-end", "- zh: 一直在等", "TODO"),
        ("  - zh: 一直在等\n    en: always waiting\n", "", "symptoms", "- zh: 太慢了", "1 symptoms"),
        ("always waiting", "too slow to use", "symptoms", "- zh: 太慢了", "repeated"),
        ("        unit: ms\n  outcomes", "        unit: furlong\n  outcomes", "unit", "value: 620.0", "furlong"),
        ("        unit: ms\n  outcomes", "        unit: GB\n  outcomes", "unit", "value: 620.0", "time"),
        ("value: 422.0", "value: 822.0", "direction", "- strategy: speed_up", "figures say"),
        ("    metric: latency\n    b", "    metric: latency\n    better: higher\n    b", "direction", "- strategy: speed_up", "lower"),
        ("422 ms (-32 %)", "422 ms (-52 %)", "percentage", "summary:", "-31.9"),
        ("- cause: slow", "- cause: slower", "id", "- cause: slower", "no cause 'slower'"),
        ("strategy: speed_up", "strategy: hurry", "id", "- strategy: hurry", "no strategy 'hurry'"),
        ("      latency:", "      delay:", "context", "      delay:", "no metric 'delay'"),
        ("`speed_up`", "`speed_upp`", "id", "`speed_upp`", "speed_upp"),
        ("links:\n- one", "links:\n- two", "link", "- two", "no record 'two'"),
        ("一段正文。", "见[那里](../gone/recipe.md)。", "link", "../gone", "gone"),
        ("slug: one", "slug: two", "slug", "slug: two", "'one'"),
        ("    result: improved\n", "    result: improved\n    reported_to_work: false\n", "suggested", "result: improved", "cannot"),
        ("tags:\n- field", "provenance: measured\ntags:\n- field", "tier", "provenance: measured", "claimed"),
        ("- case:abc-1\n", "", "source", "- field", "case: tag"),
        ("  url: https://example.org/a\n", "", "source", "- title: A page", "address"),
    ],
)  # fmt: skip
def test_each_rule_names_file_and_line(shelf: Path, old: str, new: str, rule: str, at: str, said: str) -> None:
    assert GOOD.count(old) == 1, old
    text = GOOD.replace(old, new)
    (shelf / "recipes/one/recipe.md").write_text(text, encoding="utf-8")
    found = [item for item in _problems(shelf) if item.rule == rule and said in item.message.en]
    assert found, _problems(shelf)
    assert found[0].file == "recipes/one/recipe.md"
    assert abs(found[0].line - _line(text, at)) <= 1
    assert found[0].message.zh


@pytest.mark.parametrize("text", ["38 to 145/s (+282 %)", "7.8 to 3.1 GB (-60 %)", "4.1 到 1.6 GB（-61 %）", "128 -> 486 images/s, +280 %",
                                  "420 to 98 ms (77 %)", "1.2 s to 280 ms (-76.7 %)", "1,520 to 890 ms (-41.4 %)"])  # fmt: skip
def test_percentages_that_follow_within_rounding_pass(shelf: Path, text: str) -> None:
    path = shelf / "recipes/one/recipe.md"
    place = "一段正文" if "到" in text else "Text with"
    path.write_text(GOOD.replace(place, f"{text}. {place}"), encoding="utf-8")
    assert _problems(shelf) == ()


@pytest.mark.parametrize("text", ["38 to 145/s (+250 %)", "7.8 to 3.1 GB (+60 %)", "4.1 到 1.6 GB（-71 %）"])
def test_percentages_that_do_not_follow_are_named(shelf: Path, text: str) -> None:
    path = shelf / "recipes/one/recipe.md"
    place = "一段正文" if "到" in text else "Text with"
    path.write_text(GOOD.replace(place, f"{text}. {place}"), encoding="utf-8")
    assert [item.rule for item in _problems(shelf)] == ["percentage"]


def test_titles_slugs_and_source_cases_may_stand_once(shelf: Path) -> None:
    (shelf / "recipes/two").mkdir()
    (shelf / "recipes/two/recipe.md").write_text(GOOD.replace("slug: one", "slug: two"), encoding="utf-8")
    found = [item for item in _problems(shelf) if item.rule == "duplicate"]
    assert {item.file for item in found} == {"recipes/two/recipe.md"}
    assert any("case:abc-1" in item.message.en for item in found)


def test_a_card_longer_than_a_screen_is_named(shelf: Path) -> None:
    text = GOOD.replace("kind: recipe", "kind: card").replace("slug: one", "slug: note").replace("case:abc-1", "x")
    text = text.replace("A title", "Another title").replace("一个标题", "另一个标题")
    (shelf / "cards/note.md").write_text(text.replace("Text with", "Words. " * 400), encoding="utf-8")
    assert [item.rule for item in _problems(shelf)] == ["card"]


@pytest.mark.parametrize(
    ("check", "rule"),
    [
        ({"cause": "slower", "reason": BOTH}, "id"),
        ({"cause": "slow"}, "reason"),
        ({"cause": "slow", "reason": BOTH, "thresholds": {"limits": 1.0}}, "id"),
    ],
)
def test_a_template_names_causes_thresholds_and_reasons(shelf: Path, check: dict[str, Any], rule: str) -> None:
    template = {"slug": "t", "name": {"zh": "模板", "en": "Template"}, "description": BOTH, "checks": [check]}
    (shelf / "templates/t.json").write_text(json.dumps(template, ensure_ascii=False, indent=1), encoding="utf-8")
    found = _problems(shelf)
    assert rule in {item.rule for item in found}
    assert {item.file for item in found} == {"templates/t.json"}
    assert all(item.line > 1 for item in found)


def test_all_faults_of_the_catalogue_are_listed_with_their_lines(shelf: Path, change: Change) -> None:
    change("causes/slow", strategies=["speed_up", "wait", "sleep"], healthy=None)
    found = [item for item in _problems(shelf) if item.rule == "catalogue"]
    assert len(found) == 3
    assert {item.file for item in found} == {"recipes/catalogue/causes/slow.json"}


def test_broken_json_of_the_catalogue_is_one_problem_with_its_line(shelf: Path) -> None:
    (shelf / "recipes/catalogue/causes/slow.json").write_text('{\n "id": "slow",\n oops', encoding="utf-8")
    found = _problems(shelf)
    assert [(item.rule, item.line) for item in found] == [("schema", 3)]
    assert found[0].file.endswith("causes/slow.json")


def test_a_file_outside_a_library_is_judged_by_the_shipped_catalogue(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    text = GOOD.replace("slug: one", "slug: mine").replace("links:\n- one", "links:\n- sd3-attention-unfused")
    (folder / "recipe.md").write_text(text.replace("cause: slow", "cause: unfused_attention"), encoding="utf-8")
    found = _problems(folder / "recipe.md")
    assert {item.rule for item in found} == {"id"}
    assert all("speed_up" in item.message.en for item in found)


@pytest.mark.parametrize("name", ["recipes", "recipes/one", "recipes/one/recipe.md", "recipes/catalogue"])
def test_part_of_a_library_is_judged_by_that_library(shelf: Path, name: str) -> None:
    assert _problems(shelf / name) == ()


def test_where_there_is_no_content_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        _problems(tmp_path)
    with pytest.raises(NotFoundError):
        _problems(tmp_path / "absent")


def test_the_shipped_library_is_clean(library_kb: Any) -> None:
    result = library_kb("lint", "--json")
    assert result.json()["problems"] == []
    assert result.status == 0


def test_the_command_prints_file_line_and_rule_and_fails(shelf: Path, library_kb: Any) -> None:
    path = shelf / "recipes/one/recipe.md"
    path.write_text(GOOD.replace("- cause: slow", "- cause: slower"), encoding="utf-8")
    for lang, word in (("en", "problems"), ("zh", "处问题")):
        result = library_kb("lint", str(shelf), "--lang", lang)
        assert result.status == 1
        assert "recipes/one/recipe.md:14: id: " in result.out
        assert word in result.out


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(GOOD)), st.integers(0, 60), st.sampled_from(["", "\t", "\x00", "---\n", "{", "&a *a", "<b>", "：", "\u2028"]))
def test_a_damaged_file_is_a_problem_and_never_a_crash(shelf: Path, at: int, length: int, new: str) -> None:
    path = shelf / "recipes/one/recipe.md"
    text = GOOD[:at] + new + GOOD[at + length :]
    path.write_text(text, encoding="utf-8")
    last = text.count("\n") + 1
    assert all(1 <= item.line <= last and item.file == "recipes/one/recipe.md" and item.message.en for item in _problems(shelf))


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[]", b"{", b"null", b'{"slug": 1}', '{"诊断路径": 3}'.encode()])
def test_a_broken_template_is_one_problem(shelf: Path, data: bytes) -> None:
    (shelf / "templates/t.json").write_bytes(data)
    found = _problems(shelf)
    assert [(item.file, item.rule) for item in found] == [("templates/t.json", "schema")]
