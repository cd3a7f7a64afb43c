"""The contract on every kind, the kinds against each other, and the choice between them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index.contract import IndexContract, agree, sample

from kb.errors import UsageError
from kb.index import choice
from kb.index.choice import make_index
from kb.index.exact import ExactIndex
from kb.index.faiss_flat import FaissFlatIndex

if TYPE_CHECKING:
    from index.contract import Build


class TestExact(IndexContract):
    @pytest.fixture
    def build(self) -> Build:
        return ExactIndex


class TestFaiss(IndexContract):
    @pytest.fixture
    def build(self) -> Build:
        return FaissFlatIndex


@settings(max_examples=60, deadline=None)
@given(
    codes=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9)), min_size=1, max_size=120),
    k=st.integers(1, 20),
    allowed=st.none() | st.lists(st.integers(0, 13), max_size=14),
    seed=st.integers(0, 99),
)
def test_kinds_agree_where_vectors_repeat(codes: list[tuple[int, int]], k: int, allowed: list[int] | None, seed: int) -> None:
    palette = sample(9, 5, seed=seed)[1]
    palette = np.vstack([palette, np.zeros((1, 5), np.float32)])
    ids = np.array([row_id for row_id, _ in codes], dtype=np.int64)
    vectors = palette[[color for _, color in codes]]
    query = sample(1, 5, seed=seed + 100)[1][0]
    chosen = None if allowed is None else np.array(allowed, dtype=np.int64)
    answers = [kind(ids, vectors).search(query, k, allowed=chosen) for kind in (ExactIndex, FaissFlatIndex)]
    np.testing.assert_array_equal(answers[0][0], answers[1][0])
    np.testing.assert_allclose(answers[0][1], answers[1][1], atol=1e-5)
    agree(ExactIndex(ids, vectors), ids, vectors, query, k, chosen)


def test_kinds_agree_on_many_rows() -> None:
    ids, vectors = sample(20_000, 64, each=2)
    exact, flat = ExactIndex(ids, vectors), FaissFlatIndex(ids, vectors)
    few, many = np.arange(0, 10_000, 40, dtype=np.int64), np.arange(0, 10_000, 3, dtype=np.int64)
    for query in sample(10, 64, seed=8)[1]:
        for k, allowed in ((10, None), (10, few), (10, many), (3000, None), (3000, many)):
            left, right = exact.search(query, k, allowed=allowed), flat.search(query, k, allowed=allowed)
            np.testing.assert_allclose(left[1], right[1], atol=1e-5)
            assert np.mean(left[0] == right[0]) > 0.999


def test_auto_takes_the_coarse_kind_only_from_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "COARSE_FROM_ROWS", 100)
    assert make_index(*sample(99)).kind == "exact"
    assert make_index(*sample(100)).kind == "pq"
    assert make_index(*sample(100), kind="exact").kind == "exact"
    assert make_index(*sample(9), kind="faiss").kind == "faiss"


def test_an_unknown_kind_names_the_known() -> None:
    with pytest.raises(UsageError, match="hnsw") as caught:
        make_index(*sample(9), kind="hnsw")
    assert "exact" in str(caught.value)


def test_a_small_index_never_loads_faiss(checkout: Path) -> None:
    script = (
        "import sys, numpy as np, kb.index.cache\n"
        "from kb.index.choice import make_index\n"
        "make_index(np.arange(3), np.eye(3, dtype=np.float32)).search(np.eye(3, dtype=np.float32)[0], 1)\n"
        "assert 'faiss' not in sys.modules and 'sqlmodel' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": str(checkout)})
