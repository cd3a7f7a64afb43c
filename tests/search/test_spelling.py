from __future__ import annotations

import pytest
from search.samples import CATALOGUE, filled, record

from kb.domain.case import Answer, CaseQuery
from kb.search.query import search

STORE = filled([record("attention", en="attention is not fused"), record("pipeline", en="pipeline stages wait")], None)


def ask(text: str) -> Answer:
    return search(CaseQuery(text=text), store=STORE, embedder=None, catalogue=CATALOGUE)


@pytest.mark.parametrize("slip", ["atention", "attenntion", "attentiom", "atetntion", "ａｔｅｎｔｉｏｎ"])
def test_one_slip_finds_the_word_and_is_said(slip: str) -> None:
    answer = ask(slip)
    assert [hit.slug for hit in answer.hits] == ["attention"]
    assert "attention" in answer.notes[0].en


@pytest.mark.parametrize("text", ["attention", "zzzzzz", "wait"])
def test_words_that_are_held_or_near_nothing_are_left_alone(text: str) -> None:
    assert not any("looked up" in note.en for note in ask(text).notes)
