"""The timing of one kernel: what every cost function returns."""

from __future__ import annotations

from typing import Literal

import msgspec

Core = Literal["AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "AI_CPU", "COMMUNICATION"]


class KernelTime(msgspec.Struct, frozen=True, kw_only=True):
    """Times in ns without noise: the kernel's duration and, if they ran alone, its pipes.

    ``mac`` .. ``fixpipe`` belong to the cube core, ``vec`` .. ``mte3`` to the vector core; 0 = unused.
    ``blocks`` of the primary engine, ``mix_blocks`` of the other. ``hbm_*`` in B over the memory interface.
    """

    core: Core
    total: float
    blocks: int
    mix_blocks: int = 0
    mac: float = 0.0
    mte1: float = 0.0
    mte2: float = 0.0
    fixpipe: float = 0.0
    vec: float = 0.0
    vec_mte2: float = 0.0
    mte3: float = 0.0
    l2_hit: float
    hbm_read: float
    hbm_write: float

    @property
    def hbm_bytes(self) -> float:
        """B read and written over the memory interface."""
        return self.hbm_read + self.hbm_write
