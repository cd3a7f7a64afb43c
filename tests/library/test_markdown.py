"""Records as Markdown files: exact round trip, and errors that name the line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.domain.canonical import content_hash
from kb.domain.case import Case, CaseContext, Outcome
from kb.domain.quantity import Quantity
from kb.domain.record import Record, Source
from kb.domain.template import Check, Template
from kb.domain.text import Text
from kb.errors import ContentError
from kb.library.markdown import parse_markdown, write_markdown

ANY = st.text(max_size=30)
TEXTS = st.builds(Text, zh=ANY, en=ANY)
BLOCKS = st.sampled_from(
    [
        "plain text", "## Second level", "- item\n  - inner", "| a | b |\n|---|---|\n| 1 | 2 |", "", "    indented code", "> quote",
        "```bash\n# 中文\n<b>not html</b>\n```", "a < b and `<tag>`", "[link](https://example.org/x)", "[mail](mailto:a@example.org)",
        "[other](../other/recipe.md#part)", "正文，两种语言", "* * *", "---", "1. one\n2. two", "trailing spaces  ", "&lt;b&gt;",
    ]
)  # fmt: skip
BODIES = st.lists(BLOCKS, max_size=5).map("\n\n".join)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
QUANTITIES = st.builds(Quantity, value=NUMBERS, unit=st.sampled_from(["ms", "%", "GB/s"]))
CONTEXTS = st.builds(
    CaseContext,
    model=st.none() | ANY,
    phase=st.none() | ANY,
    soc_family=st.sampled_from(["A2", "310P", "unknown"]),
    devices=st.none() | st.integers(1, 10**6),
    software=st.dictionaries(ANY, ANY, max_size=2),
    metrics=st.dictionaries(ANY, QUANTITIES, max_size=2),
)
OUTCOMES = st.builds(
    Outcome,
    strategy=ANY,
    result=st.sampled_from(["improved", "no_gain", "worse"]),
    metric=ANY,
    before=st.none() | QUANTITIES,
    share=st.none() | NUMBERS,
    reported_to_work=st.booleans(),
    note=TEXTS,
)
CASES = st.builds(
    Case, cause=ANY, context=CONTEXTS, outcomes=st.lists(OUTCOMES, max_size=2).map(tuple), symptoms=st.lists(TEXTS, max_size=2).map(tuple)
)
TEMPLATES = st.builds(
    Template,
    slug=st.just("t"),
    name=TEXTS,
    description=TEXTS,
    checks=st.lists(st.builds(Check, cause=ANY, thresholds=st.dictionaries(ANY, NUMBERS, max_size=2)), max_size=2).map(tuple),
)
RECORDS = st.builds(
    Record,
    kind=st.sampled_from(["recipe", "card", "template", "case"]),
    slug=st.from_regex(r"\A[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?\Z"),
    title=TEXTS,
    summary=TEXTS,
    body=st.builds(Text, zh=BODIES, en=BODIES),
    tags=st.lists(ANY, max_size=3).map(tuple),
    cases=st.lists(CASES, max_size=2).map(tuple),
    template=st.none() | TEMPLATES,
    pitfalls=st.lists(TEXTS, max_size=2).map(tuple),
    sources=st.lists(st.builds(Source, title=ANY, url=st.sampled_from(["", "https://example.org", "notes.md"])), max_size=2).map(tuple),
)

GOOD = """---
kind: recipe
slug: one
title: {zh: 标题, en: Title}
summary: {zh: 摘要, en: Summary}
sources:
- title: A page
  url: https://example.org
cases:
- cause: slow
  context:
    soc_family: A2
---

# English

Text.

# 中文

正文。
"""


@settings(max_examples=60, deadline=None)
@given(RECORDS)
def test_a_written_record_is_read_back_equal(record: Record) -> None:
    text = write_markdown(record)
    again = parse_markdown(text, source="x.md")
    assert again == record
    assert content_hash(again) == content_hash(record)
    assert write_markdown(again) == text


def test_the_sections_may_stand_in_either_order() -> None:
    head, _, body = GOOD.partition("# English")
    english, _, chinese = body.partition("# 中文")
    swapped = f"{head}# 中文{chinese}\n# English{english.rstrip()}\n"
    assert parse_markdown(swapped, source="x.md") == parse_markdown(GOOD, source="x.md")


def test_line_ends_and_a_byte_order_mark_of_another_system_do_not_matter() -> None:
    assert parse_markdown("\ufeff" + GOOD.replace("\n", "\r\n"), source="x.md") == parse_markdown(GOOD, source="x.md")


def _line(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


@pytest.mark.parametrize(
    ("old", "new", "at", "said", "allowed"),
    [
        ("kind: recipe", "kind: novel", "kind: novel", "Invalid enum value 'novel'", "card"),
        ("kind: recipe", "kind: recipe\nmood: good", "", "unknown field `mood`", "title"),
        ("kind: recipe", "kind: recipe\nbody: {zh: a, en: b}", "body:", "body in the front matter", ""),
        ("slug: one", "slug: One Two", "slug:", "not a slug", "a-z"),
        ("slug: one", "slug: 2024-11-20", "slug:", "Expected `str`", ""),
        ("slug: one", "slug: one\nslug: two", "slug: two", "given twice", ""),
        ("slug: one", "slug: one\nschema: 99", "schema:", "newer", ""),
        ("soc_family: A2", "soc_family: A9", "soc_family:", "Invalid enum value 'A9'", "310P"),
        ("soc_family: A2", "soc: [A2]", "soc:", "Expected `str | null`", ""),
        ("soc_family: A2", "soc_family: &x A2", "soc_family:", "anchors", ""),
        ("soc_family: A2", "soc_family: *x", "soc_family:", "anchors", ""),
        ("soc_family: A2", "soc_family: !!python/name:os.system A2", "soc_family:", "tags", ""),
        ("title: {zh: 标题", "title: [{zh: 标题", "summary:", "expected", ""),
        ("https://example.org", "javascript:alert(1)", "url:", "link to javascript:", "http"),
        ("https://example.org", "/etc/passwd", "url:", "link to /etc/passwd", "relative"),
        ("Text.", "A <b>bold</b> word.", "A <b>", "raw HTML: <b>", "Markdown"),
        ("Text.", "Above.\n\n<script>alert(1)</script>", "<script>", "raw HTML: <script>", "Markdown"),
        ("Text.", "<!-- hidden -->", "<!--", "raw HTML", ""),
        ("Text.", "[x](javascript:alert(1))", "[x]", "link to javascript:", "http"),
        ("Text.", "[x](&#106;avascript:alert(1))", "[x]", "link to javascript:", ""),
        ("Text.", "![x](file:///etc/passwd)", "![x]", "link to file:", "relative"),
        ("Text.", "[x](//example.org)", "[x]", "link to //", ""),
        ("Text.", "[x][y]\n\n[y]: data:text/html,x", "[x]", "link to data:", ""),
        ("# English", "# Deutsch", "# Deutsch", "level-1 heading 'Deutsch'", "# English"),
        ("Text.", "# English", "", "level-1 heading 'English'", "exactly two"),
        ("Text.", "> # Quoted", "> # Quoted", "level-1 heading", "exactly two"),
        ("Text.", "Title\n=====", "Title\n", "level-1 heading 'Title'", ""),
        ("# English", "Before.\n\n# English", "", "before the first heading", ""),
        ("# 中文\n", "", "", "1 language sections", "exactly two"),
    ],
)  # fmt: skip
def test_bad_content_names_file_and_line(old: str, new: str, at: str, said: str, allowed: str) -> None:
    text = GOOD.replace(old, new, 1)
    with pytest.raises(ContentError) as caught:
        parse_markdown(text, source="bad.md")
    where = f"bad.md:{_line(text, at)}:" if at else "bad.md:"
    assert where in caught.value.what
    assert said in caught.value.what
    assert allowed in (caught.value.allowed or "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no front matter"),
        ("# English\n", "no front matter"),
        ("---\nkind: recipe\n", "not closed"),
        ("---\n- a\n- b\n---\n\n# English\n\n# 中文\n", "not a mapping"),
        ("---\n---\n\n# English\n\n# 中文\n", "not a mapping"),
        ("---\nkind: " + "[" * 100 + "\n---\n\n# English\n\n# 中文\n", "deeper than"),
        ("---\nkind: 'open\n---\n\n# English\n\n# 中文\n", "end of stream"),
        ("---\nkind: " + "x" * 2**19 + "\n---\n\n# English\n\n# 中文\n", "longer than"),
        ("---\nslug: 2024-99-99\n---\n\n# English\n\n# 中文\n", "month"),
    ],
)
def test_front_matter_that_is_no_mapping_of_plain_values_is_refused(text: str, said: str) -> None:
    with pytest.raises(ContentError, match=re.escape(said)):
        parse_markdown(text, source="bad.md")


def test_an_alias_bomb_is_refused_before_it_expands() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefghijklmnopqrstuvwx", "bcdefghijklmnopqrstuvwxy", strict=True)
    )
    with pytest.raises(ContentError, match="anchors and aliases"):
        parse_markdown(f"---\n{bomb}---\n\n# English\n\n# 中文\n", source="bad.md")


@pytest.mark.parametrize("body", ["<b>html</b>", "# Heading", "```\nopen", "[x](javascript:x)", "a\rb"])
def test_a_record_that_a_file_cannot_carry_is_refused_and_not_changed(body: str) -> None:
    record = Record(kind="recipe", slug="one", title=Text(), summary=Text(), body=Text(zh="正文", en=body))
    with pytest.raises(ContentError):
        write_markdown(record)
