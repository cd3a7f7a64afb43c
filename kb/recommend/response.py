"""How a strategy's gain follows from a run's traits: the exposed shares it removes (Amdahl), corrected by small trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from kb.domain.accounting import PARTS
from kb.domain.catalogue import StrategyId
from kb.recommend.boosting import Binned, Forest, Recipe, binned, boosted, constant

Floats = npt.NDArray[np.float64]
_SHARES: Final = ("bound.", "role.", "share.", "replay.", "host.")
_SHARE_NAMES: Final = (*PARTS, "fed", "mac", "starved", "launches", "memory_use", "called", "busy")
MOST_SHARE: Final = 2.0
"""Shares beyond (host work beside the device can exceed the step) are cut, so that one odd run does not lead far away."""
NOTHING: Final = 0.003
"""A strategy that never moved a run by more has no response to fit."""
WORST: Final = -0.5
"""Losses beyond are all the same to a ranking; they would only pull the fit."""


@dataclass(frozen=True, slots=True, eq=False)
class Response:
    """``removed`` (shares,): the part of each exposed share that goes away, no intercept: what is not exposed cannot be saved.
    ``trees`` answer for the rest from all traits."""

    removed: Floats
    trees: Forest

    def predicted(self, values: Floats, shares: npt.NDArray[np.bool_]) -> Floats:
        """Gains for ``values`` (rows, traits), none missing; ``shares`` marks the traits that are shares."""
        return np.asarray(_cut(values[:, shares]) @ self.removed + self.trees.predicted(values), np.float64)


def share_traits(names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which traits are shares of the step."""
    return np.array([name.startswith(_SHARES) or name in _SHARE_NAMES for name in names], np.bool_)


def respond(values: Floats, bins: Binned, gains: Floats, shares: npt.NDArray[np.bool_], recipe: Recipe, ridge: float,
            rng: np.random.Generator) -> Response:  # fmt: skip
    """The response fitted to ``gains`` (rows,) of runs with ``values`` (rows, traits)."""
    answers = np.clip(gains, WORST, 1.0)
    width = int(shares.sum())
    if not len(answers) or float(np.abs(answers).max()) < NOTHING:
        return Response(np.zeros(width), constant(0.0, recipe.depth))
    exposed = _cut(values[:, shares])
    removed: Floats = np.linalg.solve(exposed.T @ exposed + ridge * np.eye(width), exposed.T @ answers).astype(np.float64)
    return Response(removed, boosted(bins, answers - exposed @ removed, recipe, rng))


def responses(values: Floats, gains: npt.NDArray[np.float32], strategies: Sequence[StrategyId], names: Sequence[str], recipe: Recipe,
              ridge: float, rng: np.random.Generator) -> Mapping[StrategyId, Response]:  # fmt: skip
    """A response for every strategy (column of ``gains``), from the runs where its gain is known."""
    shares, bins = share_traits(names), binned(values)
    found = {}
    for place, strategy in enumerate(strategies):
        known = np.isfinite(gains[:, place])
        own = Binned(bins.edges, bins.codes[known])
        found[strategy] = respond(values[known], own, gains[known, place].astype(np.float64), shares, recipe, ridge, rng)
    return found


def _cut(values: Floats) -> Floats:
    return np.clip(values, -1.0, MOST_SHARE)
