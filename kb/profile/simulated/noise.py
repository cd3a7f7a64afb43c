"""Seeded spread of kernel and launch times, by the class of the operator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kb.profile.simulated.constants import Constants, NoiseClass
from kb.profile.simulated.truth import Ints

Floats = npt.NDArray[np.float64]


def kernel_durations(
    base: Sequence[float],
    floors: Sequence[float],
    classes: Sequence[NoiseClass],
    *,
    steps: int,
    segments: int,
    noise: float,
    constants: Constants,
    rng: np.random.Generator,
) -> Ints:
    """Durations in ns, at least 1, of shape (steps, segments, kernels).

    Each is the model's time times a log-normal factor of mean 1 whose width is the class's, and a drift
    all kernels of a step share. ``noise`` scales both widths. No kernel gets faster than its floor (ns).
    """
    sigma = noise * np.array([constants.noise[name].sigma for name in classes])
    drift = _factors(rng, (steps, 1, 1), noise * constants.noise["step"].sigma)
    spread = _factors(rng, (steps, segments, len(base)), sigma)
    durations = np.maximum(np.asarray(base) * spread * drift, np.ceil(np.maximum(1.0, floors)))
    return np.rint(durations).astype(np.int64)


def launch_durations(
    launch_ns: float, *, shape: tuple[int, int, int], noise: float, constants: Constants, rng: np.random.Generator
) -> Ints:
    """Host times in ns of ``shape`` (steps, segments, launches); the first step is a warm-up and slower."""
    times = launch_ns * _factors(rng, shape, noise * constants.noise["host"].sigma)
    times[0] *= 1.0 + noise * constants["warmup_host_factor"]
    return np.maximum(1, np.rint(times)).astype(np.int64)


def _factors(rng: np.random.Generator, shape: tuple[int, ...], sigma: float | Floats) -> Floats:
    return np.asarray(np.exp(sigma * rng.standard_normal(shape) - 0.5 * np.square(sigma)), dtype=np.float64)
