"""Renderers: nothing in the data may become markup or drive a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kb.report.document import Bullets, CodeBlock, Document, Heading, Note, Paragraph, TableBlock
from kb.report.markdown import MarkdownRenderer
from kb.report.numbers import duration, percent, signed_percent
from kb.report.plain import PlainRenderer, width

_HOSTILE = "<script>alert(1)</script> | `x` [a](javascript:alert(1))\n# not a heading\x1b[31m"


def _everything(text: str) -> Document:
    table = TableBlock(("a", text), ((text, "1"),), right=(1,))
    return Document((Heading(1, text), Paragraph(text), Bullets((text, text)), table, CodeBlock(text), Note("caution", text)))


@given(st.text(max_size=60))
def test_markdown_never_carries_raw_html(text: str) -> None:
    rendered = MarkdownIt("commonmark").enable("table").parse(MarkdownRenderer().render(_everything(text)))
    kinds = {token.type for token in rendered} | {child.type for token in rendered for child in token.children or ()}
    assert not kinds & {"html_block", "html_inline"}


def test_hostile_text_stays_one_cell_and_one_line() -> None:
    rendered = MarkdownRenderer().render(Document((TableBlock(("a", "b"), ((_HOSTILE, "1"),)),)))
    assert len(rendered.strip().splitlines()) == 3
    assert "<script" not in rendered


def test_a_code_block_holding_fences_is_fenced_longer() -> None:
    tokens = MarkdownIt("commonmark").parse(MarkdownRenderer().render(Document((CodeBlock("```\nrm\n````"),))))
    assert [token.type for token in tokens] == ["fence"]


@given(st.text(max_size=60))
def test_plain_output_never_holds_control_sequences(text: str) -> None:
    assert not any(character < " " and character not in "\n\t" for character in PlainRenderer().render(_everything(text)))


def test_chinese_and_english_columns_line_up() -> None:
    table = TableBlock(("名称", "time"), (("计算", "1.0 ms"), ("communication", "20.0 ms")), right=(1,))
    lines = PlainRenderer().render(Document((table,))).rstrip("\n").splitlines()
    assert len({width(line) for line in lines}) == 1


@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [(0, "0 ns"), (999, "999 ns"), (48_680, "48.7 us"), (231_290_100, "231.3 ms"), (1.52e9, "1.52 s"), (-2_500_000, "-2.50 ms")],
)
def test_durations_carry_a_unit_and_few_digits(nanoseconds: float, shown: str) -> None:
    assert duration(nanoseconds) == shown


def test_fractions_are_shown_as_percent() -> None:
    assert (percent(0.4137), signed_percent(-0.031)) == ("41.4 %", "-3.1 %")
