"""Expansion of a query over the glossary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.domain.catalogue import GlossaryRow
from kb.text.glossary import Expansion, expand
from kb.text.tokens import tokenize

ROWS = (
    GlossaryRow("attention", ("注意力",), ("attention",)),
    GlossaryRow("unfused", ("没融合", "未融合"), ("not fused", "unfused")),
    GlossaryRow("fusion", ("融合",), ("fusion", "fused")),
    GlossaryRow("hit_rate", ("命中率",), ("hit rate",)),
    GlossaryRow("bubble", ("气泡", "空泡"), ("bubble",)),
    GlossaryRow("io", ("读写",), ("IO",)),
)


@pytest.mark.parametrize(
    ("text", "terms", "rows"),
    [
        ("L2命中率", ("hit rate",), ("hit_rate",)),
        ("L2 hit rate", ("命中率",), ("hit_rate",)),
        ("low HIT-RATE", ("命中率",), ("hit_rate",)),
        ("hit_rates fell", ("命中率",), ("hit_rate",)),
        ("有空泡", ("bubble",), ("bubble",)),
        ("bubbles", ("气泡", "空泡"), ("bubble",)),
        ("Ｂｕｂｂｌｅ", ("气泡", "空泡"), ("bubble",)),
        ("attention 没融合", ("注意力", "not fused", "unfused"), ("attention", "unfused")),
        ("fused_attention", ("注意力", "融合"), ("attention", "fusion")),
        ("nothing here", (), ()),
        ("", (), ()),
    ],
)
def test_the_other_language_is_added(text: str, terms: tuple[str, ...], rows: tuple[str, ...]) -> None:
    assert expand(text, ROWS) == Expansion(terms=terms, rows=rows)


@pytest.mark.parametrize("text", ["ratio", "radio", "inattentional", "xhit rate", "hit rated"])
def test_an_english_term_inside_a_longer_word_does_not_fire(text: str) -> None:
    assert expand(text, ROWS) == Expansion(terms=(), rows=())


def test_an_english_term_beside_hanzi_fires() -> None:
    assert expand("看attention吧", ROWS).rows == ("attention",)


def test_the_longest_term_wins_over_the_one_inside_it() -> None:
    assert expand("没融合", ROWS).rows == ("unfused",)
    assert expand("没融合，再融合", ROWS).rows == ("unfused", "fusion")


def test_terms_found_in_the_text_are_not_added_again() -> None:
    assert expand("命中率 hit rate", ROWS) == Expansion(terms=(), rows=("hit_rate",))


def test_a_term_of_two_rows_fires_both() -> None:
    rows = (GlossaryRow("tile", ("切分",), ("tile",)), GlossaryRow("partition", ("切分",), ("partition",)))
    assert expand("切分", rows) == Expansion(terms=("tile", "partition"), rows=("tile", "partition"))


def test_expansion_lets_two_languages_meet_in_the_lexical_index() -> None:
    document = set(tokenize("L2 hit rate is low"))
    query = "二级缓存命中率"
    assert not document & set(tokenize(query))
    assert document & set(tokenize(" ".join((query, *expand(query, ROWS).terms))))


@given(st.text(alphabet="注意力没融合命中率 abfusedhitr-_", max_size=40))
def test_every_row_fires_exactly_when_it_adds_or_holds_a_term(text: str) -> None:
    found = expand(text, ROWS)
    by_id = {row.id: row for row in ROWS}
    offered = {term for name in found.rows for term in (*by_id[name].zh, *by_id[name].en)}
    assert set(found.terms) <= offered
    assert len(set(found.terms)) == len(found.terms)
    assert expand(text, ()) == Expansion(terms=(), rows=())


@given(st.sampled_from(ROWS), st.sampled_from(["zh", "en"]))
def test_each_term_alone_leads_to_the_whole_other_side(row: GlossaryRow, side: str) -> None:
    mine, other = (row.zh, row.en) if side == "zh" else (row.en, row.zh)
    for term in mine:
        found = expand(term, ROWS)
        assert row.id in found.rows
        assert set(other) <= set(found.terms)
