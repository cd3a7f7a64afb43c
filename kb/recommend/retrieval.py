"""Past outcomes of a strategy in runs like this one, adapted to it: what they would have been with this run's traits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
NEAREST: Final = 60
"""Outcomes that speak; each with a weight that falls with distance."""
NEAR_GAIN: Final = 0.05
"""Two expected gains this far apart (fraction of the step) are one unit of distance."""


@dataclass(frozen=True, slots=True, eq=False)
class Retrieved:
    """The nearest outcomes: row in the table, ``weight`` (sums to 1), ``similarity`` (0..1, 1 = alike), and the ``adapted`` gain."""

    rows: npt.NDArray[np.int64]
    weight: Floats
    similarity: Floats
    adapted: Floats

    @property
    def effective(self) -> float:
        """How many outcomes of equal weight they are worth."""
        return float(1.0 / np.square(self.weight).sum()) if len(self.weight) else 0.0

    def quantiles(self, levels: Floats) -> Floats:
        """Weighted quantiles of the adapted gains."""
        order = np.argsort(self.adapted)
        reached = np.cumsum(self.weight[order]) - 0.5 * self.weight[order]
        return np.asarray(np.interp(levels, reached, self.adapted[order]), np.float64)


def retrieved(expected: float, distance: Floats, fitted: Floats, residual: Floats, allowed: Mask) -> Retrieved:
    """The nearest of the ``allowed`` rows. ``expected`` is this run's fitted gain, ``fitted`` and ``residual`` (rows,) those of
    the past runs, each from a fit without its model family; ``distance`` (rows,) squared, in traits.

    A past outcome is adapted by the difference of the fitted gains: fitted + residual becomes expected + residual.
    """
    rows = np.flatnonzero(allowed & np.isfinite(residual))
    squared = distance[rows] + np.square((fitted[rows] - expected) / NEAR_GAIN)
    if len(rows) > NEAREST:
        near = np.argpartition(squared, NEAREST)[:NEAREST]
        rows, squared = rows[near], squared[near]
    if not len(rows):
        empty = np.zeros(0)
        return Retrieved(rows, empty, empty, empty)
    width = max(float(np.median(squared)), 1e-9)
    weight = np.exp(-0.5 * squared / width)
    return Retrieved(rows, weight / weight.sum(), np.exp(-0.5 * squared), expected + residual[rows])
