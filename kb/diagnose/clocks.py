"""The clock the cores ran at: from counters of kernels, else from samples."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.diagnose.view import RankView
from kb.session.session import Array, Table

_CLOCK: Final = "freq"


def seen_clock_mhz(view: RankView, kernels: Table) -> float | None:
    """Clock of the step: the mean sample, else the middle of what kernels counted; None where neither was captured."""
    sampled = sampled_clock_mhz(view)
    if sampled is not None:
        return sampled
    clocks = kernel_clocks_mhz(view, kernels)
    return float(np.nanmedian(clocks)) if np.isfinite(clocks).any() else None


def rated_clock_mhz(view: RankView) -> float | None:
    """The catalogue's clock of the chip, None for an unknown chip."""
    return view.soc.clock.value * {"MHz": 1.0, "GHz": 1e3}[view.soc.clock.unit] if view.soc else None


def clock_share(view: RankView, kernels: Table) -> float:
    """Seen over rated clock, at most 1; 1 where either is unknown. What a slow clock costs is no fault of the kernels."""
    seen, rated = seen_clock_mhz(view, kernels), rated_clock_mhz(view)
    return min(1.0, seen / rated) if seen and rated else 1.0


def kernel_clocks_mhz(view: RankView, kernels: Table) -> Array:
    """Cycles over time of each kernel's cube (else vector) cores, NaN where not counted. Cycles are summed over blocks,
    time counts the waves once."""
    clocks = np.full(len(kernels), np.nan)
    engines = (("aiv_total_cycles", "aiv_time_ns", view.vector_cores), ("aic_total_cycles", "aicore_time_ns", view.cube_cores))
    for cycles, time, cores in engines:
        if cycles not in kernels or time not in kernels or "block" not in kernels or not cores:
            continue
        lanes = np.minimum(kernels["block"], cores)
        with np.errstate(divide="ignore", invalid="ignore"):
            clock = kernels[cycles] / lanes / kernels[time] * 1e3
        usable = np.isfinite(clock) & (clock > 0) & (kernels["block"] > 0) & (kernels["duration_ns"] >= 20_000)
        clocks[usable] = clock[usable]
    mixed = np.isin(kernels["core"], view.session.codes(("MIX_AIC", "MIX_AIV")))
    return np.where(mixed, np.nan, clocks)


def sampled_clock_mhz(view: RankView) -> float | None:
    """Mean clock sampled during the step; None where none was."""
    rows = clock_rows(view)
    return float(view.session.tables["counters"]["value"][rows].mean()) if len(rows) else None


def clock_rows(view: RankView) -> Array:
    """Clock samples of the step, positions in ``counters``."""
    counters, window = view.session.table("counters"), view.window
    if counters is None or window is None:
        return np.empty(0, np.int64)
    own = clock_names(view)[counters["name"]] & (counters["start_ns"] >= window[0]) & (counters["start_ns"] < window[1])
    return np.flatnonzero(own & (counters["value"] > 0))


def clock_names(view: RankView) -> Array:
    """Boolean mask over string codes (the last place for none): names of clock counters."""
    return np.array([_CLOCK in text.lower() and "mhz" in text.lower() for text in (*view.session.strings, "")])
