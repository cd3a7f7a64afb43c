"""What the simulator knows and a profiler would not show: the cause of every idle interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from kb.profile.simulated.stream import IdleCause

Ints = npt.NDArray[np.int64]


class StepTruth(msgspec.Struct, frozen=True, kw_only=True):
    """One step: ``computing_ns`` and the ``idle_ns`` of each cause add up to ``step_ns`` exactly.

    ``busy_ns`` is the computing time by operator type.
    """

    step_id: str
    step_ns: int
    computing_ns: int
    idle_ns: Mapping[IdleCause, int]
    busy_ns: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class IdleIntervals:
    """Every idle interval of the device by start. ``cause`` indexes ``stream.IDLE_CAUSES``."""

    start_ns: Ints
    end_ns: Ints
    cause: Ints


@dataclass(frozen=True, slots=True)
class Truth:
    """Beside the session, never inside it. ``hbm_bytes`` and ``kernels`` are those of one step; ``peak_bytes`` of
    device memory."""

    steps: tuple[StepTruth, ...]
    idle: IdleIntervals
    hbm_bytes: float
    kernels: int
    peak_bytes: int
