"""The forests: they learn what is there, and nothing where nothing is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.recommend.boosting import BINS, Recipe, binned, boosted, constant

RECIPE = Recipe(trees=80, depth=3, shrinkage=0.2, columns=1.0, rows=1.0, ridge=1.0, least_rows=3)


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_a_step_in_one_trait_is_found() -> None:
    values = np.column_stack([np.linspace(0, 1, 200), np.tile([0.0, 1.0], 100)])
    answers = np.where(values[:, 0] > 0.5, 0.6, 0.0)
    forest = boosted(binned(values), answers, RECIPE, _rng())
    assert forest.predicted(np.array([[0.1, 0.0], [0.9, 1.0]])) == pytest.approx([0.0, 0.6], abs=0.03)
    assert forest.importance(2)[0] > 0.6


def test_an_interaction_of_two_traits_is_found() -> None:
    values = _rng().random((600, 3))
    answers = np.where((values[:, 0] > 0.5) & (values[:, 1] > 0.5), 1.0, 0.0)
    forest = boosted(binned(values), answers, RECIPE, _rng())
    wrong = np.abs(forest.predicted(values) - answers)
    assert wrong.mean() < 0.08


def test_few_or_equal_answers_give_a_constant() -> None:
    values = np.arange(40.0).reshape(20, 2)
    assert boosted(binned(values), np.full(20, 0.25), RECIPE, _rng()).predicted(values) == pytest.approx(np.full(20, 0.25))
    assert not len(boosted(binned(values[:4]), np.arange(4.0), RECIPE, _rng()).leaf)
    assert constant(0.5, 3).predicted(np.zeros((2, 1))).tolist() == [0.5, 0.5]


def test_equal_seeds_give_equal_forests() -> None:
    values = _rng().random((100, 4))
    answers = values[:, 0] * values[:, 1]
    loose = Recipe(trees=10, depth=3, shrinkage=0.2, columns=0.5, rows=0.7, ridge=1.0, least_rows=3)
    first, second = (boosted(binned(values), answers, loose, _rng()) for _ in range(2))
    assert np.array_equal(first.leaf, second.leaf)
    assert np.array_equal(first.threshold, second.threshold)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 60), st.integers(1, 5), st.integers(0, 1000))
def test_codes_and_thresholds_agree(rows: int, traits: int, seed: int) -> None:
    values = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 7.25, -3.0], size=(rows, traits))
    cut = binned(values)
    assert int(cut.codes.max(initial=0)) < BINS
    for trait in range(traits):
        for edge in range(BINS - 1):
            right = values[:, trait].astype(np.float32) > cut.edges[trait, edge]
            assert np.array_equal(right, cut.codes[:, trait] > edge)


@settings(max_examples=15, deadline=None)
@given(st.integers(8, 80), st.integers(0, 1000))
def test_a_fit_is_never_worse_than_the_mean(rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, answers = rng.random((rows, 3)), rng.random(rows)
    forest = boosted(binned(values), answers, RECIPE, _rng())
    assert float(np.square(forest.predicted(values) - answers).mean()) <= float(answers.var()) + 1e-9
    assert np.isfinite(forest.predicted(rng.random((50, 3)) * 3 - 1)).all()
