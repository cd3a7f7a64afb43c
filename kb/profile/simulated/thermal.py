"""Power, temperature and the clock a governor settles on. Every constant here is an assumption: nobody published a curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

from kb.profile.simulated.chip import Chip
from kb.profile.simulated.constants import Constants
from kb.profile.simulated.kernel import KernelTime
from kb.profile.simulated.options import Options

LEVELS: Final = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
"""Clocks the governor may choose, over the nominal one."""


class Activity(msgspec.Struct, frozen=True):
    """Shares (0..1) of the time that the cube, the vector cores and the memory interface work."""

    cube: float
    vector: float
    memory: float


class Heat(msgspec.Struct, frozen=True):
    """``clock`` over the nominal, ``power_w`` and the temperature a long run settles at."""

    clock: float
    power_w: float
    celsius: float


def activity_of(times: Sequence[KernelTime], chip: Chip, step_ns: float) -> Activity:
    """How busy the parts are when ``times`` fill a step of ``step_ns``."""
    cube = sum(time.mac * time.blocks for time in times) / chip.cube_cores
    vector = sum(time.vec * max(time.mix_blocks or time.blocks, 1) for time in times) / chip.vector_cores
    memory = sum(time.hbm_bytes for time in times) / chip.hbm_rate
    return Activity(*(min(1.0, part / step_ns) for part in (cube, vector, memory)))


def power(activity: Activity, clock: float, constants: Constants) -> float:
    """W: a static part, and parts that grow with use; those on the clock with its cube (voltage follows it)."""
    budget = constants["power_budget_w"]
    on_clock = (constants["power_cube_share"] * activity.cube + constants["power_vector_share"] * activity.vector) * clock**3
    return budget * (constants["power_static_share"] + on_clock + constants["power_memory_share"] * activity.memory)


def settled(activity: Activity, options: Options, constants: Constants) -> Heat:
    """The highest clock up to the cap whose steady temperature stays below the limit; the lowest one if none does."""
    heat = None
    for level in sorted({min(level, options.clock_cap) for level in LEVELS}, reverse=True):
        watts = power(activity, level, constants)
        celsius = constants["ambient_c"] + watts * constants["thermal_c_per_w"] / options.cooling
        heat = Heat(level, watts, celsius)
        if celsius <= constants["throttle_c"]:
            return heat
    return heat or Heat(1.0, 0.0, constants["ambient_c"])


def temperature(begin_c: float, heat: Heat, elapsed_ns: float, constants: Constants) -> float:
    """°C after ``elapsed_ns`` at constant power: an RC circuit on its way to the steady state."""
    return heat.celsius + (begin_c - heat.celsius) * math.exp(-elapsed_ns / (constants["thermal_time_s"] * 1e9))
