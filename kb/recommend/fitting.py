"""Fits what turns past outcomes into expectations: off-line, leaving out one set of model families after the other.

Everything that says how sure an answer is (residuals, interval width, probabilities) comes from answers about runs whose model
family the fit had not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from kb.domain.catalogue import StrategyId
from kb.recommend.experience import GainModel, Reliability, answers, ends_of, middle_of, score_of
from kb.recommend.field.calibration import breakpoints, calibration_error, crossed, reliability
from kb.recommend.gain_weights import GainWeights
from kb.recommend.outcomes import OutcomeTable
from kb.recommend.response import Response, responses, share_traits

Floats = npt.NDArray[np.float64]
Progress = Callable[[str, int, int], None]
_LEAST_SPREAD: Final = 1e-3


def fit_gains(table: OutcomeTable, weights: GainWeights, progress: Progress) -> GainModel:
    """The model of ``table``. Deterministic: equal tables and weights give equal models."""
    middle, filled = completed(table)
    folds = folds_of(table.groups, weights.folds)
    fitted = np.full(table.gains.shape, np.nan, np.float32)
    for fold in range(weights.folds):
        progress("folds", fold, weights.folds + 1)
        inside = folds == fold
        if inside.any() and not inside.all():
            own = _responses(table, filled, ~inside, weights)
            fitted[inside] = _predicted(own, filled[inside], table)
    progress("folds", weights.folds, weights.folds + 1)
    everything = np.ones(len(table), np.bool_)
    found = _responses(table, filled, everything, weights)
    bare = GainModel(
        table=table, filled=filled, middle=middle, spread=spread_of(filled), responses=found,
        importance=_importance(found, filled, table), fitted=fitted, reliability=_unfitted(table, weights),
    )  # fmt: skip
    progress("folds", weights.folds + 1, weights.folds + 1)
    return replace(bare, reliability=_reliability(bare, folds, weights))


def completed(table: OutcomeTable) -> tuple[Floats, Floats]:
    """(middle of each trait, the table's values with it where a run did not show the trait)."""
    values = table.values.astype(np.float64)
    known = np.isfinite(values)
    middle = np.array([np.median(values[known[:, place], place]) if known[:, place].any() else 0.0 for place in range(values.shape[1])])
    return middle, np.where(known, values, middle)


def spread_of(filled: Floats) -> Floats:
    """How far each trait varies over the runs; never zero."""
    return np.asarray(np.maximum(filled.std(axis=0), _LEAST_SPREAD), np.float64)


def folds_of(groups: Sequence[str], folds: int) -> npt.NDArray[np.int64]:
    """A fold for each run, no model family in two: the largest families first, each to the fold with fewest runs so far."""
    counts = {group: groups.count(group) for group in dict.fromkeys(groups)}
    held, place = [0] * folds, {}
    for group in sorted(counts, key=lambda name: (-counts[name], name)):
        place[group] = held.index(min(held))
        held[place[group]] += counts[group]
    return np.array([place[group] for group in groups], np.int64)


def _responses(table: OutcomeTable, filled: Floats, rows: npt.NDArray[np.bool_], weights: GainWeights) -> Mapping[StrategyId, Response]:
    rng = np.random.default_rng(weights.seed)
    return responses(filled[rows], table.gains[rows], table.strategies, table.traits, weights.trees, weights.ridge, rng)


def _predicted(found: Mapping[StrategyId, Response], values: Floats, table: OutcomeTable) -> npt.NDArray[np.float32]:
    shares = share_traits(table.traits)
    return np.array([found[name].predicted(values, shares) for name in table.strategies], np.float32).T


def _importance(found: Mapping[StrategyId, Response], filled: Floats, table: OutcomeTable) -> Floats:
    """By which traits runs are alike for a strategy: those its response asks, half by the trees and half by the shares."""
    shares = share_traits(table.traits)
    spread = filled.std(axis=0)
    rows = []
    for name in table.strategies:
        response = found[name]
        moved = np.zeros(len(spread))
        moved[shares] = np.abs(response.removed) * spread[shares]
        total = moved.sum()
        rows.append(0.5 * response.trees.importance(len(spread)) + (0.5 * moved / total if total else 0.0))
    return np.array(rows)


def _unfitted(table: OutcomeTable, weights: GainWeights) -> Reliability:
    return Reliability(
        scores=(0.0, 1.0), probabilities=(0.0, 1.0), widening=1.0, noise=weights.noise, level=weights.level, error=0.0, coverage=0.0,
        judged=0, fingerprint=table.fingerprint,
    )  # fmt: skip


def _reliability(model: GainModel, folds: npt.NDArray[np.int64], weights: GainWeights) -> Reliability:
    """Widening and probabilities from answers about every run by the others of its chip family and not of its fold."""
    table = model.table
    families = np.array(table.families)
    scores: list[float] = []
    gains: list[float] = []
    middles: list[float] = []
    ends: list[tuple[float, float]] = []
    group: list[int] = []
    for row in range(len(table)):
        allowed = (families == families[row]) & (folds != folds[row])
        if not allowed.any():
            continue
        for place, (_, expected, found) in enumerate(answers(model, model.filled[row], allowed, fitted=model.fitted[row])):
            truth = float(table.gains[row, place])
            if not np.isfinite(truth) or not len(found.rows):
                continue
            middle = middle_of(found, expected)
            scores.append(score_of(found, weights.noise))
            gains.append(truth)
            middles.append(middle)
            ends.append(ends_of(found, middle, weights.level, 1.0))
            group.append(int(folds[row]))
    right = [gain > weights.noise for gain in gains]
    widening, coverage = _widening(np.array(gains), np.array(middles), np.array(ends).reshape(-1, 2), weights)
    if not scores:
        return _unfitted(table, weights)
    knots, rates = breakpoints(scores, right)
    held = crossed(scores, right, group) if len(set(group)) > 1 else [float(np.interp(score, knots, rates)) for score in scores]
    return Reliability(
        scores=knots, probabilities=rates, widening=widening, noise=weights.noise, level=weights.level,
        error=calibration_error(reliability(held, right)), coverage=coverage, judged=len(scores), fingerprint=table.fingerprint,
    )  # fmt: skip


def _widening(gains: Floats, middles: Floats, ends: Floats, weights: GainWeights) -> tuple[float, float]:
    """How far to stretch the intervals of answers that promise something, and the share they hold then."""
    promising = middles > weights.noise
    if not promising.any():
        return 1.0, 0.0
    gains, middles, ends = gains[promising], middles[promising], ends[promising]
    reach = np.where(gains < middles, middles - ends[:, 0], ends[:, 1] - middles)
    needed = np.abs(gains - middles) / np.maximum(reach, 1e-6)
    widening = float(np.quantile(needed, weights.level))
    return widening, float((needed <= widening).mean())
