from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search.samples import CATALOGUE

from kb.domain.case import CaseContext, CaseQuery
from kb.errors import UsageError
from kb.search.question import MAX_CHARACTERS, cleaned, read_question


@pytest.mark.parametrize("text", ["", "   ", "?!…", "\x00\x1b\x07", "—" * 1000, "\ud800"])
def test_a_query_without_a_word_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="kb search"):
        read_question(CaseQuery(text=text), CATALOGUE)


def test_a_context_speaks_when_there_is_no_text() -> None:
    question = read_question(CaseQuery(context=CaseContext(causes=("unfused_attention",), model="SD3")), CATALOGUE)
    assert question.text == "注意力未融合 unfused attention unfused_attention SD3"


def test_an_empty_context_is_no_question() -> None:
    with pytest.raises(UsageError):
        read_question(CaseQuery(context=CaseContext()), CATALOGUE)


def test_a_megabyte_is_cut_and_said_so() -> None:
    question = read_question(CaseQuery(text="L2 hit rate " * 90_000), CATALOGUE)
    assert len(question.text) <= MAX_CHARACTERS
    assert "1080000" in question.notes[0].en
    assert "1080000" in question.notes[0].zh


def test_control_characters_separate_words() -> None:
    assert cleaned("low\x00L2\t\n hit\x1b") == "low L2 hit"


def test_the_glossary_adds_only_words_the_query_does_not_hold() -> None:
    question = read_question(CaseQuery(text="注意力 attention 卡住"), CATALOGUE)
    assert set(question.added.values()) == {"stall"}
    assert not set(question.added) & set(question.words)


@given(text=st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        question = read_question(CaseQuery(text=text), CATALOGUE)
    except UsageError:
        assert not any(character.isalnum() for character in text)
    else:
        assert question.text
        assert len(question.tokens) == len(set(question.tokens))
