from __future__ import annotations

import math

import pytest
from search.samples import CATALOGUE, filled, record

from kb.domain.case import CaseQuery
from kb.search.filters import find_candidates
from kb.search.lexical import Lexical, score_lexical
from kb.search.question import read_question
from kb.search.weights import load_weights
from kb.text.tokens import counts

WEIGHTS = load_weights()
TEXTS = {
    "a": "low L2 hit rate in MatMul",
    "b": "the pipeline stage waits, waits and waits",
    "c": "MatMul tiling",
    "d": "注意力没有融合 MatMul",
}
STORE = filled([record(slug, en=text) for slug, text in TEXTS.items()], None)
CANDIDATES = find_candidates(CaseQuery(), STORE, CATALOGUE)


def ask(text: str, *, arrays: bool = False) -> Lexical:
    return score_lexical(read_question(CaseQuery(text=text), CATALOGUE), CANDIDATES, WEIGHTS, arrays=arrays)


def raw(lexical: Lexical) -> dict[int, float]:
    """Row id -> score of the records that hold a token."""
    return {place + 1: value for place in range(len(TEXTS)) if (value := lexical.scores.value(place))}


def oracle(words: list[str]) -> dict[int, float]:
    """BM25 written out again from its definition."""
    documents = {row: counts(f"{slug}\n{text}") for row, (slug, text) in enumerate(TEXTS.items(), start=1)}
    holding = [row for row, tokens in documents.items() if any(word in tokens for word in words)]
    mean = sum(sum(tokens.values()) for tokens in documents.values()) / len(documents)
    found: dict[int, float] = {}
    for row in holding:
        length = sum(documents[row].values())
        for word in words:
            tf, df = documents[row].get(word, 0), sum(word in tokens for tokens in documents.values())
            idf = math.log(1 + (4 - df + 0.5) / (df + 0.5))
            found[row] = found.get(row, 0.0) + idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / mean))
    return found


@pytest.mark.parametrize("text", ["MatMul", "L2 hit MatMul", "waits waits stage"])
def test_scores_are_bm25(text: str) -> None:
    words = list(counts(text))
    assert raw(ask(text)) == pytest.approx(oracle(words))
    assert raw(ask(text, arrays=True)) == raw(ask(text))


def test_parts_sum_to_the_score() -> None:
    lexical = ask("MatMul L2 waits 命中率")
    parts = lexical.parts(range(len(TEXTS)), WEIGHTS)
    assert {place + 1: sum(found.values()) for place, found in parts.items() if found} == pytest.approx(raw(lexical))


def test_glossary_terms_of_the_other_language_are_looked_up() -> None:
    lexical = ask("命中率")
    assert lexical.question.rows == ("l2_hit",)
    assert 1 in raw(lexical)


def test_coverage_is_the_share_of_the_words_held() -> None:
    lexical = ask("L2 hit rate MatMul")
    held = {row: lexical.coverage(parts) for row, parts in lexical.parts([0, 1, 2], WEIGHTS).items()}
    assert held[0] == pytest.approx(1.0)
    assert held[1] == 0.0
    assert 0.0 < held[2] < 0.5


def test_a_glossary_row_covers_a_query_in_the_other_language() -> None:
    lexical = ask("命中率")
    assert lexical.coverage(lexical.parts([0], WEIGHTS)[0]) >= WEIGHTS.abstain_coverage


def test_words_nobody_holds_score_nothing() -> None:
    assert raw(ask("zebra")) == {}
    assert ask("zebra").coverage([]) == 0.0
