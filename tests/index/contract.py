"""What every implementation of ``kb.domain.protocols.Index`` must do: agree with a plain loop in float64.

A test module subclasses ``IndexContract`` and provides the fixture ``build``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from kb.domain.protocols import Index
from kb.errors import UsageError

if TYPE_CHECKING:
    from kb.domain.protocols import Ids, Vectors

    Build = Callable[[Ids, Vectors], Index]


def unit(rows: Vectors) -> Vectors:
    """``rows`` scaled to length 1; rows of zeros stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Vectors = (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


def sample(rows: int, dim: int = 24, *, each: int = 1, seed: int = 0) -> tuple[Ids, Vectors]:
    """``rows`` unit vectors; ids from 1, ``each`` consecutive rows an id."""
    dice = np.random.default_rng(seed)
    return np.arange(rows, dtype=np.int64) // each + 1, unit(dice.standard_normal((rows, dim)).astype(np.float32))


def by_hand(ids: Ids, vectors: Vectors, query: Vectors, k: int, allowed: Ids | None = None) -> list[tuple[int, float]]:
    """The answer by definition."""
    best: dict[int, float] = {}
    for row, row_id in enumerate(ids.tolist()):
        if allowed is None or row_id in allowed:
            score = float(vectors[row].astype(np.float64) @ query.astype(np.float64))
            best[row_id] = max(score, best.get(row_id, -np.inf))
    return sorted(best.items(), key=lambda item: (-round(item[1], 7), item[0]))[:k]


def agree(index: Index, ids: Ids, vectors: Vectors, query: Vectors, k: int, allowed: Ids | None = None) -> None:
    found, scores = index.search(query, k, allowed=allowed)
    expected = by_hand(ids, vectors, query, k, allowed)
    assert (found.dtype.name, scores.dtype.name) == ("int64", "float32")
    assert found.tolist() == [row_id for row_id, _ in expected]
    np.testing.assert_allclose(scores, [score for _, score in expected], atol=1e-5)


class IndexContract:
    """The suite."""

    @pytest.mark.parametrize("k", [1, 7, 250, 300])
    @pytest.mark.parametrize("each", [1, 3])
    def test_answers_are_those_of_a_plain_loop(self, build: Build, k: int, each: int) -> None:
        ids, vectors = sample(300, each=each)
        index = build(ids, vectors)
        for query in sample(5, seed=1)[1]:
            agree(index, ids, vectors, query, k)

    @pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.99])
    @pytest.mark.parametrize("k", [3, 400])
    def test_filters_cost_no_recall(self, build: Build, share: float, k: int) -> None:
        ids, vectors = sample(400, each=2)
        allowed = np.flatnonzero(np.random.default_rng(5).random(201) < share).astype(np.int64)
        index = build(ids, vectors)
        for query in sample(5, seed=1)[1]:
            agree(index, ids, vectors, query, k, allowed)

    def test_ids_in_any_order_and_scattered(self, build: Build) -> None:
        ids, vectors = sample(300, each=3)
        order = np.random.default_rng(2).permutation(300)
        ids, vectors = ids[order] * 1_000_003, vectors[order]
        agree(build(ids, vectors), ids, vectors, vectors[0], 20)
        agree(build(ids, vectors), ids, vectors, vectors[0], 20, ids[:40])

    def test_every_vector_finds_its_own_id(self, build: Build) -> None:
        ids, vectors = sample(200, each=2)
        index = build(ids, vectors)
        assert [int(index.search(vector, 1)[0][0]) for vector in vectors] == ids.tolist()

    @pytest.mark.parametrize("dim", [3, 24, 512])
    def test_equal_vectors_are_ordered_by_id_wherever_they_lie(self, build: Build, dim: int) -> None:
        _, vectors = sample(401, dim)
        twins = np.arange(0, 401, 7)
        vectors[twins] = vectors[0]
        ids = np.random.default_rng(3).permutation(401).astype(np.int64)
        expected = sorted(ids[twins].tolist())
        for k in (1, 5, len(twins)):
            found, scores = build(ids, vectors).search(vectors[0], k)
            assert found.tolist() == expected[:k]
            assert len(set(scores.tolist())) == 1

    def test_all_equal(self, build: Build) -> None:
        ids, vectors = np.arange(9000, dtype=np.int64), np.tile(unit(np.ones((1, 8), np.float32)), (9000, 1))
        assert build(ids, vectors).search(vectors[0], 4)[0].tolist() == [0, 1, 2, 3]

    def test_a_query_without_content_scores_zero(self, build: Build) -> None:
        ids, vectors = sample(20, each=2)
        index = build(ids, vectors)
        found, scores = index.search(np.zeros(24, np.float32), 3, allowed=np.array([9, 2, 4, 5]))
        assert (found.tolist(), scores.tolist()) == ([2, 4, 5], [0, 0, 0])
        assert index.search(np.zeros(24, np.float32), 2)[0].tolist() == [1, 2]

    def test_nothing_to_find_is_an_empty_answer(self, build: Build) -> None:
        ids, vectors = sample(20)
        index = build(ids, vectors)
        empty = np.zeros(0, dtype=np.int64)
        for found, scores in (
            index.search(vectors[0], 0),
            index.search(vectors[0], 5, allowed=empty),
            index.search(vectors[0], 5, allowed=np.array([99])),
            build(empty, np.zeros((0, 24), np.float32)).search(vectors[0], 5),
            build(empty, np.zeros((0, 24), np.float32)).search(vectors[0], 5, allowed=np.array([1])),
        ):
            assert (found.shape, found.dtype.name, scores.shape, scores.dtype.name) == ((0,), "int64", (0,), "float32")

    def test_it_knows_its_size(self, build: Build) -> None:
        index = build(*sample(20, each=2))
        assert (len(index), index.dim) == (20, 24)

    def test_wrong_shapes_are_refused(self, build: Build) -> None:
        ids, vectors = sample(20)
        with pytest.raises(UsageError, match="do not belong"):
            build(ids[:5], vectors)
        index = build(ids, vectors)
        for query, k in ((vectors[0][:5], 1), (vectors[:1], 1), (vectors[0], -1), (np.full(24, np.nan, np.float32), 1)):
            with pytest.raises(UsageError):
                index.search(query, k)

    def test_mapped_arrays_are_used_and_left_alone(self, build: Build, tmp_path: Path) -> None:
        ids, vectors = sample(50)
        np.save(tmp_path / "vectors.npy", vectors)
        mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
        agree(build(ids, mapped), ids, vectors, vectors[7], 10)
        assert (np.load(tmp_path / "vectors.npy") == vectors).all()
