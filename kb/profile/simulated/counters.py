"""Hardware counters of kernels, from the model's pipe times and the durations that happened."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kb.profile.simulated.chip import Chip
from kb.profile.simulated.constants import Constants
from kb.profile.simulated.kernel import KernelTime
from kb.profile.simulated.truth import Ints

Floats = npt.NDArray[np.float64]
MOST_RATIO = 1.0
"""A pipe cannot be busier than its core."""
OVERHEAD_LIMIT = 0.3
"""Largest share of a tiny kernel's duration that scheduling may take."""


def counters(
    times: Sequence[KernelTime], durations: Ints, chip: Chip, constants: Constants, *, clock: Floats | None = None
) -> dict[str, Floats]:
    """Metric columns of the ``kernels`` table for rows that repeat ``times`` over and over.

    Cycles are core time x clock x blocks; a ratio is the pipe's time over the core time, the pipes sharing
    the kernel's noise except ``mac``, which is work over rate; utilisation is cycles over all the chip's. ``clock`` of each row
    over the chip's, where it varied.
    """
    repeats = len(durations) // len(times)
    durations = np.maximum(durations, 1)
    on_core = _column([time.core not in ("AI_CPU", "COMMUNICATION") for time in times], repeats) > 0
    core_time = durations - np.minimum(constants["task_overhead_ns"], OVERHEAD_LIMIT * durations)
    blocks = _column([time.blocks for time in times], repeats)
    mix_blocks = _column([time.mix_blocks for time in times], repeats)
    noise = durations / np.maximum(1.0, _column([time.total for time in times], repeats))
    cube = _column([time.mac > 0 for time in times], repeats)
    vector = _column([time.mac == 0 or time.mix_blocks > 0 for time in times], repeats)
    ghz = chip.ghz * (clock if clock is not None else np.ones(len(durations)))
    cycles = cube * core_time * ghz * blocks
    found = {
        "aicore_time_ns": cube * core_time,
        "aic_total_cycles": cycles,
        "aic_mac_ratio": _column([time.mac for time in times], repeats) * (chip.ghz / ghz) / core_time,
        "aiv_time_ns": vector * core_time,
        "aiv_total_cycles": vector * core_time * ghz * np.where(mix_blocks > 0, mix_blocks, blocks),
        "cube_utilization": cycles / (ghz * chip.cube_cores * durations),
        "l2_hit_ratio": _column([time.l2_hit for time in times], repeats),
        "hbm_read_bytes": _column([time.hbm_read for time in times], repeats),
        "hbm_write_bytes": _column([time.hbm_write for time in times], repeats),
    }
    for column, pipe in _PIPES.items():
        found[column] = np.minimum(MOST_RATIO, _column([getattr(time, pipe) for time in times], repeats) * noise / core_time)
    return {name: np.where(on_core, values, np.nan) for name, values in found.items()}


_PIPES = {
    "aic_mte1_ratio": "mte1",
    "aic_mte2_ratio": "mte2",
    "aic_fixpipe_ratio": "fixpipe",
    "aiv_vec_ratio": "vec",
    "aiv_mte2_ratio": "vec_mte2",
    "aiv_mte3_ratio": "mte3",
}


def _column(values: Sequence[float], repeats: int) -> Floats:
    return np.tile(np.asarray(values, dtype=np.float64), repeats)
