"""What the simulator knows and a profiler would not show: the cause of every idle interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from kb.profile.simulated.plan import IdleCause

Ints = npt.NDArray[np.int64]


class StepTruth(msgspec.Struct, frozen=True, kw_only=True):
    """One step: ``computing_ns``, ``comm_exposed_ns`` and the ``idle_ns`` of each cause add up to ``step_ns`` exactly.

    ``busy_ns`` is the computing time by operator type; ``comm_wait_ns`` the part of all communication spent waiting for
    the last rank to arrive.
    """

    step_id: str
    step_ns: int
    computing_ns: int
    comm_exposed_ns: int = 0
    comm_wait_ns: int = 0
    idle_ns: Mapping[IdleCause, int]
    busy_ns: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class IdleIntervals:
    """Every idle interval of the device by start. ``cause`` indexes ``plan.IDLE_CAUSES``."""

    start_ns: Ints
    end_ns: Ints
    cause: Ints


@dataclass(frozen=True, slots=True)
class Truth:
    """Beside the session, never inside it. ``hbm_bytes`` and ``kernels`` are those of one step.

    Device memory in B: ``peak_bytes`` live at most, ``reserved_bytes`` held by the allocator; ``fragmentation`` = 1 - peak
    over reserved. ``clock_share`` is the clock over the nominal. ``unknown_operators`` were costed by their bytes alone;
    ``planted`` are the catalogue causes a test planted.
    """

    steps: tuple[StepTruth, ...]
    idle: IdleIntervals
    hbm_bytes: float
    kernels: int
    peak_bytes: int
    reserved_bytes: int = 0
    fragmentation: float = 0.0
    clock_share: float = 1.0
    unknown_operators: tuple[str, ...] = ()
    planted: tuple[str, ...] = ()
