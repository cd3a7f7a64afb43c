"""What past runs say about every strategy for this run: expected gain, interval, and how probable a gain beyond the noise is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from kb.domain.catalogue import StrategyId
from kb.domain.soc import SocFamily
from kb.recommend.outcomes import OutcomeTable
from kb.recommend.response import Response, share_traits
from kb.recommend.retrieval import Retrieved, retrieved
from kb.recommend.traits import Traits

Floats = npt.NDArray[np.float64]
FARTHEST: Final = 3.5
"""A run whose traits lie on average (root mean square) more spreads than this away from every past run is like none of them, and
nothing is said. Of simulated runs of unseen model families 98 % lie closer, of the captures of real devices at hand none."""
NEIGHBOURS: Final = 0.1
"""Part of the neighbours' deviation that moves the expectation: they tell how far answers scatter better than in which direction."""
_SOFT: Final = 0.2
"""Width of the step at the noise, in noises."""
SHOWN: Final = 3
"""Past runs named as support."""


class Reliability(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How sure answers are, fitted on runs of model families that the answers had not seen.

    ``scores`` ascending and the ``probabilities`` of a gain beyond ``noise`` that held there; ``widening`` multiplies the distance of
    the interval's ends from the expectation so that it holds the true gain at ``level``; ``error`` is the expected calibration error
    and ``coverage`` the share held, both left out; ``fingerprint`` that of the outcomes.
    """

    scores: tuple[float, ...]
    probabilities: tuple[float, ...]
    widening: float
    noise: float
    level: float
    error: float
    coverage: float
    judged: int
    fingerprint: str


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """``gain`` of the device time of a sample (signed fraction), ``interval`` around it, ``probability`` of a gain beyond the noise.

    ``similar`` are past runs: (run, similarity, what the strategy gained there); ``outcomes`` how many equal ones would weigh as much.
    """

    gain: float
    interval: tuple[float, float]
    probability: float
    outcomes: float
    similar: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class GainModel:
    """Outcomes with what was fitted to them. ``middle`` and ``spread`` (traits,); ``fitted`` (runs, strategies) by responses that had
    not seen the run's model family; ``importance`` (strategies, traits), each row summing to 1."""

    table: OutcomeTable
    filled: Floats
    middle: Floats
    spread: Floats
    responses: Mapping[StrategyId, Response]
    importance: Floats
    fitted: npt.NDArray[np.float32]
    reliability: Reliability

    def complete(self, traits: Traits) -> Floats:
        """Traits in order; what the capture did not show takes the middle of the past runs."""
        given = self.table.vector(traits).astype(np.float64)
        return np.where(np.isfinite(given), given, self.middle)


def estimates(model: GainModel, traits: Traits, family: SocFamily) -> Mapping[StrategyId, Estimate]:
    """An estimate for every strategy that was tried on chips of this family (any, where the family is not known); empty where nobody
    tried anything there, where no past run is like this one, or where it shows no traits."""
    allowed = np.array([family in ("unknown", own) for own in model.table.families], np.bool_)
    if not allowed.any() or not traits:
        return {}
    values = model.complete(traits)
    if away_from(model, values, allowed) > FARTHEST:
        return {}
    found = enumerate(answers(model, values, allowed))
    return {
        name: estimate_of(speaking, expected, model.reliability, model.table, place)
        for place, (name, expected, speaking) in found
        if len(speaking.rows)
    }


def away_from(model: GainModel, values: Floats, allowed: npt.NDArray[np.bool_]) -> float:
    """How far the nearest of the ``allowed`` runs is: root mean square of the traits' differences, in spreads of each."""
    return float(np.sqrt(np.square((model.filled[allowed] - values) / model.spread).mean(axis=1)).min())


def answers(model: GainModel, values: Floats, allowed: npt.NDArray[np.bool_], *, fitted: npt.NDArray[np.float32] | None = None
            ) -> list[tuple[StrategyId, float, Retrieved]]:  # fmt: skip
    """(strategy, fitted gain, the outcomes that speak) for a run with complete ``values`` (traits,). ``fitted`` (strategies,) replaces
    the responses' gains: for a run of the table, those of responses that had not seen it."""
    shares = share_traits(model.table.traits)
    if fitted is None:
        fitted = np.array([model.responses[name].predicted(values[None, :], shares)[0] for name in model.table.strategies], np.float32)
    away = np.square((model.filled - values) / model.spread)
    distances = away @ model.importance.T
    found = []
    for place, name in enumerate(model.table.strategies):
        past = model.fitted[:, place].astype(np.float64)
        expected = float(fitted[place])
        residual = model.table.gains[:, place] - past
        found.append((name, expected, retrieved(expected, distances[:, place], past, residual, allowed)))
    return found


def score_of(found: Retrieved, noise: float) -> float:
    """Share of the adapted outcomes beyond the noise, softened so that equal shares still differ by how far beyond they are."""
    beyond = np.clip((found.adapted - noise) / (_SOFT * noise), -30.0, 30.0)
    return float((found.weight / (1.0 + np.exp(-beyond))).sum())


def middle_of(found: Retrieved, expected: float) -> float:
    """The expected gain: the fitted one, moved a little towards the adapted outcomes (their weighted mean without a fifth at each end)."""
    order = np.argsort(found.adapted)
    reached = np.cumsum(found.weight[order])
    kept = (reached > 0.2) & (reached - found.weight[order] < 0.8)
    inner = found.weight[order][kept]
    if not inner.sum() > 0:
        return expected
    return expected + NEIGHBOURS * (float((found.adapted[order][kept] * inner).sum() / inner.sum()) - expected)


def ends_of(found: Retrieved, gain: float, level: float, widening: float) -> tuple[float, float]:
    """The interval at ``level`` around ``gain``."""
    low, high = found.quantiles(np.array([0.5 - level / 2, 0.5 + level / 2])).tolist()
    return min(gain, gain + widening * (low - gain)), max(gain, gain + widening * (high - gain))


def estimate_of(found: Retrieved, expected: float, reliability: Reliability, table: OutcomeTable, place: int) -> Estimate:
    """The estimate that retrieved outcomes of one strategy add up to."""
    gain = min(middle_of(found, expected), 1.0)
    low, high = ends_of(found, gain, reliability.level, reliability.widening)
    nearest = found.rows[np.argsort(-found.weight)[:SHOWN]].tolist()
    alike = dict(zip(found.rows.tolist(), found.similarity.tolist(), strict=True))
    return Estimate(
        gain=gain,
        interval=(low, min(high, 1.0)),
        probability=float(np.interp(score_of(found, reliability.noise), reliability.scores, reliability.probabilities)),
        outcomes=found.effective,
        similar=tuple((table.runs[row], alike[row], float(table.gains[row, place])) for row in nearest),
    )
