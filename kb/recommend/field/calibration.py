"""From a score to a probability that held in cases left out: isotonic breakpoints, and the diagram that shows how well."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from kb.errors import ContentError


class Bin(msgspec.Struct, frozen=True, kw_only=True):
    """One point of a reliability diagram: mean ``predicted`` against the share that was right (``observed``), over ``n`` answers."""

    predicted: float
    observed: float
    n: int


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """``scores`` ascending and the probability at each; between them a straight line, outside the nearest end.

    ``cases`` and ``groups`` say how many cases in how many groups were left out in turn, ``fingerprint`` which ones with which
    model; it holds for answers made with the same ``embedder`` (by name).
    ``error`` is the expected calibration error of calibrated answers that were themselves left out, ``raw_error`` that of the
    scores as they were; ``diagram`` belongs to ``error``.
    """

    scores: tuple[float, ...]
    probabilities: tuple[float, ...]
    cases: int
    groups: int
    fingerprint: str
    embedder: str
    error: float
    raw_error: float
    diagram: tuple[Bin, ...]

    def __call__(self, score: float) -> float:
        """The calibrated probability of ``score``."""
        return float(np.interp(score, self.scores, self.probabilities))


def breakpoints(scores: Sequence[float], right: Sequence[bool]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Isotonic regression by pooling neighbours that go the wrong way: ascending mean scores and their probabilities.

    Each pool is shrunk by one right and one wrong answer, so that a few lucky ones never give certainty. Raises ValueError for none.
    """
    if not scores:
        raise ValueError("no answers to calibrate with")
    seen: dict[float, tuple[float, int]] = {}  # answers right and answers of each score: equal scores are one point
    for score, hit in sorted(zip(scores, right, strict=True)):
        hits, count = seen.get(score, (0.0, 0))
        seen[score] = hits + hit, count + 1
    pools: list[tuple[float, float, int]] = []  # mean score, answers right, answers
    for score, (right_here, here_count) in seen.items():
        pools.append((score, right_here, here_count))
        while len(pools) > 1 and pools[-2][1] / pools[-2][2] >= pools[-1][1] / pools[-1][2]:
            (left, hits, count), (here, more, other) = pools[-2:]
            pools[-2:] = [((left * count + here * other) / (count + other), hits + more, count + other)]
    rates = np.maximum.accumulate([(hits + 1) / (count + 2) for _, hits, count in pools])
    # Means of neighbouring pools may cross by a rounding error.
    return tuple(np.maximum.accumulate([pool[0] for pool in pools]).tolist()), tuple(rates.tolist())


def reliability(predicted: Sequence[float], right: Sequence[bool], bins: int = 10) -> tuple[Bin, ...]:
    """Equal-width bins that hold an answer, in order."""
    where = np.minimum((np.array(predicted) * bins).astype(int), bins - 1)
    values, hits = np.array(predicted), np.array(right, dtype=float)
    return tuple(
        Bin(predicted=float(values[where == own].mean()), observed=float(hits[where == own].mean()), n=int((where == own).sum()))
        for own in range(bins)
        if (where == own).any()
    )


def calibration_error(diagram: Sequence[Bin]) -> float:
    """Mean distance between prediction and observation, weighed by answers (0..1)."""
    total = sum(point.n for point in diagram)
    return sum(abs(point.predicted - point.observed) * point.n for point in diagram) / total if total else 0.0


def crossed(scores: Sequence[float], right: Sequence[bool], folds: Sequence[int]) -> list[float]:
    """Each score calibrated by breakpoints fitted on the other folds; ``folds`` names the fold of each. Scores of the only
    fold stay as they are: there is nothing else to learn from."""
    found = [0.0] * len(scores)
    for fold in set(folds):
        others = [place for place, own in enumerate(folds) if own != fold]
        if not others:
            return list(scores)
        knots, rates = breakpoints([scores[place] for place in others], [right[place] for place in others])
        for place in (place for place, own in enumerate(folds) if own == fold):
            found[place] = float(np.interp(scores[place], knots, rates))
    return found


def read_calibration(path: Path) -> Calibration:
    """The calibration in a file. Raises ContentError for one that is not."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Calibration)
    except msgspec.DecodeError as error:
        raise ContentError(f"{path}: not a calibration: {error}", do="run kb fit to make it anew") from error


def shipped_calibration() -> Calibration:
    """The calibration fitted on the shipped casebook, from the data file beside this module."""
    return read_calibration(Path(__file__).with_name("calibration.json"))
