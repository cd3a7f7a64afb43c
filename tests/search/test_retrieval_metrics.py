"""The definitions behind the published figures, on answers small enough to work out by hand."""

from __future__ import annotations

import math

import pytest

from benchmarks.retrieval import mrr, ndcg10, recall5

QUERY = {"qrels": {"a": 3, "b": 3, "c": 1}, "ignore": []}
IDEAL = 7 / math.log2(2) + 7 / math.log2(3) + 1 / math.log2(4)


@pytest.mark.parametrize(
    ("ranked", "gain"),
    [
        (["a", "b", "c"], IDEAL),
        (["x", "a"], 7 / math.log2(3)),
        (["x"] * 10 + ["a"], 0.0),
        ([], 0.0),
    ],
)
def test_ndcg_discounts_exponential_gains_by_place(ranked: list[str], gain: float) -> None:
    assert ndcg10(QUERY, ranked) == pytest.approx(gain / IDEAL)


def test_recall_and_mrr_count_grade_three_only() -> None:
    assert recall5(QUERY, ["c", "x", "a", "y", "z", "b"]) == pytest.approx(0.5)
    assert mrr(QUERY, ["c", "x", "a"]) == pytest.approx(1 / 3)
    assert mrr(QUERY, ["c"]) == 0.0
