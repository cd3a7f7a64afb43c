from __future__ import annotations

import numpy as np
import pytest

from kb.index.exact import ExactIndex
from kb.index.faiss_pq import FaissPqIndex

ROWS, DIM = 40_000, 64


def unit(rows: np.ndarray) -> np.ndarray:
    found: np.ndarray = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return found


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    return unit(np.random.default_rng(3).standard_normal((ROWS, DIM)))


@pytest.mark.parametrize("share", [1.0, 0.3, 0.05])
@pytest.mark.parametrize("fields", [1, 4])
def test_the_ten_best_are_found_with_exact_scores_under_any_filter(vectors: np.ndarray, share: float, fields: int) -> None:
    draw = np.random.default_rng(5)
    ids = np.arange(ROWS) // fields
    index, exact = FaissPqIndex(ids, vectors), ExactIndex(ids, vectors)
    allowed = None if share == 1.0 else np.flatnonzero(draw.random(ROWS // fields) < share)
    found = 0.0
    for query in unit(draw.standard_normal((30, DIM))):
        right, _ = exact.search(query, 10, allowed=allowed)
        mine, scores = index.search(query, 10, allowed=allowed)
        found += np.isin(right, mine).mean() / 30
        assert allowed is None or np.isin(mine, allowed).all()
        assert scores == pytest.approx([(vectors[ids == one] @ query).max() for one in mine], abs=1e-5)
    assert found >= 0.99


def test_every_record_is_its_own_nearest_neighbour(vectors: np.ndarray) -> None:
    index = FaissPqIndex(np.arange(ROWS), vectors)
    assert all(index.search(vectors[row], 1)[0][0] == row for row in range(0, ROWS, 500))
