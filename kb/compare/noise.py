"""How much two step times must differ before the difference means anything."""

from __future__ import annotations

from typing import Final, Literal

import msgspec
import numpy as np

from kb.domain.comparison import Verdict
from kb.domain.thresholds import Thresholds
from kb.session.meta import SessionMeta
from kb.session.session import Array

Basis = Literal["exact", "repeats", "single"]
_CHUNK: Final = 100


class Band(msgspec.Struct, frozen=True):
    """``fraction`` is the noise band, ``interval`` holds the gain (both as fractions of the step before), ``basis``
    says where they come from: an exact simulation, repeated steps, or a default for single steps."""

    fraction: float
    interval: tuple[float, float]
    basis: Basis


def lower_median(steps: Array) -> int:
    """The middle length, the lower of two: always a real step. ``steps`` int64 ns, shape (n,), n >= 1."""
    return int(np.sort(steps)[(len(steps) - 1) // 2])


def noise_band(before: Array, after: Array, metas: tuple[SessionMeta, SessionMeta], limits: Thresholds) -> Band:
    """The band for step lengths (int64 ns) of two runs.

    ``before`` and ``after`` are steps of one capture a side, or the middle steps of several captures.
    Two noise-free simulations of one simulator version take the tightest band. Enough repeats on both sides: a
    seeded bootstrap of the ratio of medians, and a band no narrower than a floor. Else a default floor.
    """
    gain = 1.0 - lower_median(after) / lower_median(before)
    if _exact(*metas):
        floor = limits["exact_simulation_noise"]
        return Band(floor, (gain - floor, gain + floor), "exact")
    if min(len(before), len(after)) >= limits["least_repeats"]:
        few = min(len(before), len(after)) < limits["bootstrap_least"]
        low, high = (_by_ranks if few else _bootstrap)(before, after, limits)
        low, high = min(low, gain), max(high, gain)
        reach = max(high - gain, gain - low) if not few else _spread(before, after)
        return Band(max(limits["repeated_steps_noise"], reach), (low, high), "repeats")
    floor = limits["single_step_noise"]
    ratio = 1.0 - gain
    return Band(floor, (1.0 - ratio * (1.0 + floor), 1.0 - ratio * (1.0 - floor)), "single")


def verdict(gain: float, band: Band, limits: Thresholds) -> Verdict:
    """Improved or regressed beyond the band with an interval on one side of zero; no change inside a usable band;
    inconclusive otherwise."""
    low, high = band.interval
    if gain > band.fraction and low > 0:
        return "improved"
    if gain < -band.fraction and high < 0:
        return "regressed"
    return "no_change" if abs(gain) <= band.fraction <= limits["widest_noise"] else "inconclusive"


def _exact(before: SessionMeta, after: SessionMeta) -> bool:
    if before.origin != "simulated" or after.origin != "simulated" or before.simulator is None:
        return False
    return before.simulator == after.simulator and all(meta.options.get("noise", 1) == 0 for meta in (before, after))


def _by_ranks(before: Array, after: Array, limits: Thresholds) -> tuple[float, float]:
    """Interval of the gain from all pairs of steps (Hodges and Lehmann), its ends chosen by the rank-sum test: exact for
    few values, where resampling is too narrow. With too few for the level the whole range of pairs."""
    pairs = np.sort((1.0 - after[:, None] / before[None, :]).reshape(-1))
    skipped = _critical(len(before), len(after), 1.0 - limits["interval_level"])
    return float(pairs[skipped]), float(pairs[len(pairs) - 1 - skipped])


def _critical(first: int, second: int, error: float) -> int:
    """How many pairs to leave out at each end: the largest u with 2 P(U <= u) <= ``error``, 0 where none is."""
    counts = np.zeros(first * second + 1)
    counts[0] = 1.0
    # The number of rank orders with a rank sum of u follows from adding one value of ``first`` after another.
    for size in range(1, first + 1):
        for place in range(len(counts) - 1, -1, -1):
            if place - (second + size) >= 0:
                counts[place] -= counts[place - (second + size)]
        for place in range(size, len(counts)):
            counts[place] += counts[place - size]
    below = np.cumsum(counts) / counts.sum()
    return max(0, int(np.searchsorted(2.0 * below, error, side="right")) - 1)


def _spread(before: Array, after: Array) -> float:
    """Median deviation of each side from its middle, the larger, as a fraction; 1.48 makes it a standard deviation."""
    sides = (float(np.median(np.abs(side - np.median(side))) / np.median(side)) for side in (before, after))
    return 1.48 * max(sides)


def _bootstrap(before: Array, after: Array, limits: Thresholds) -> tuple[float, float]:
    """Interval of 1 - median(after) / median(before), both sides resampled independently."""
    random = np.random.default_rng(int(limits["bootstrap_seed"]))
    gains: list[Array] = []
    for _ in range(int(limits["bootstrap_resamples"]) // _CHUNK):
        first, second = (_medians(steps, random) for steps in (before, after))
        gains.append(1.0 - second / first)
    tail = (1.0 - limits["interval_level"]) / 2.0
    low, high = np.quantile(np.concatenate(gains), [tail, 1.0 - tail])
    return float(low), float(high)


def _medians(steps: Array, random: np.random.Generator) -> Array:
    picks = steps[random.integers(len(steps), size=(_CHUNK, len(steps)))]
    return np.sort(picks, axis=1)[:, (len(steps) - 1) // 2]
