"""How busy the units inside kernels were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from kb.session.session import Array, Table

_COMPUTE: Final = ("aic_mac_ratio", "aiv_vec_ratio")
_MOVES: Final = ("aic_mte2_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio", "aic_fixpipe_ratio")
_OTHER: Final = ("aic_mte1_ratio", "aic_scalar_ratio", "aiv_scalar_ratio")


@dataclass(frozen=True, slots=True)
class Pipes:
    """Busiest ratio (0..1, pipes overlap) of the computing pipes, of those to and from memory, and of all; NaN where
    nothing was counted."""

    compute: Array
    moves: Array
    busiest: Array


def pipes(kernels: Table) -> Pipes | None:
    """None when no kernel carries pipe counters."""
    compute, moves, other = (_most(kernels, names) for names in (_COMPUTE, _MOVES, _OTHER))
    busiest = np.fmax(np.fmax(compute, moves), other)
    # An exporter writes zeros for kernels it could not count.
    busiest = np.where(busiest > 0, busiest, np.nan)
    if not np.isfinite(busiest).any():
        return None
    known = np.isfinite(busiest)
    return Pipes(np.where(known, np.nan_to_num(compute), np.nan), np.where(known, np.nan_to_num(moves), np.nan), busiest)


def _most(kernels: Table, names: tuple[str, ...]) -> Array:
    most = np.full(len(kernels), np.nan)
    for name in names:
        if name in kernels:
            most = np.fmax(most, kernels[name])
    return most


def hbm_rate(kernels: Table) -> Array:
    """Bytes a nanosecond (= GB/s) to and from device memory, NaN where not counted."""
    if "hbm_read_bytes" not in kernels or "hbm_write_bytes" not in kernels:
        return np.full(len(kernels), np.nan)
    return hbm_bytes(kernels) / np.maximum(kernels["duration_ns"], 1)


def hbm_bytes(kernels: Table) -> Array:
    """Bytes to and from device memory, NaN where not counted."""
    moved = np.nansum(np.stack((kernels["hbm_read_bytes"], kernels["hbm_write_bytes"])), axis=0)
    return np.where(np.isfinite(kernels["hbm_read_bytes"]), moved, np.nan)
