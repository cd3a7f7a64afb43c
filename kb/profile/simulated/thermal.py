"""Power, temperature and the clock a governor settles on. Every constant here is an assumption: nobody published a curve.

Edge chips have figures of their own (``thermals.json``); the others those of ``constants.json``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kb.profile.simulated.chip import Chip
from kb.profile.simulated.constants import Constants
from kb.profile.simulated.kernel import KernelTime
from kb.profile.simulated.options import Options

RELEASE_C: Final = 7.0
"""°C below the limit at which a governor dares a higher clock (assumption)."""
GOVERNOR_S: Final = 1.0
"""s between two decisions of a governor (assumption)."""
LEVELS: Final = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
"""Clocks the governor may choose, over the nominal one."""


class Activity(msgspec.Struct, frozen=True):
    """Shares (0..1) of the time that the cube, the vector cores and the memory interface work."""

    cube: float
    vector: float
    memory: float


class Thermals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a chip gets warm: W at full use, °C a W at the usual cooling, s until two thirds of the way, °C where the governor
    lowers the clock and where it raises it again, °C around it."""

    budget_w: float
    c_per_w: float
    time_s: float
    throttle_c: float
    release_c: float
    ambient_c: float
    source: str


def thermals_of(family: str, constants: Constants) -> Thermals:
    """The figures of a SoC family. They are package data: a missing file is a broken installation and raises OSError."""
    known = msgspec.json.decode((Path(__file__).parent / "thermals.json").read_bytes(), type=dict[str, Thermals])
    limit = constants["throttle_c"]
    return known.get(family) or Thermals(
        constants["power_budget_w"],
        constants["thermal_c_per_w"],
        constants["thermal_time_s"],
        limit,
        limit - RELEASE_C,
        constants["ambient_c"],
        "constants.json",
    )


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


def power(activity: Activity, clock: float, thermals: Thermals, constants: Constants) -> float:
    """W: a static part, and parts that grow with use; those on the clock with its cube (voltage follows it)."""
    on_clock = (constants["power_cube_share"] * activity.cube + constants["power_vector_share"] * activity.vector) * clock**3
    return thermals.budget_w * (constants["power_static_share"] + on_clock + constants["power_memory_share"] * activity.memory)


def levels_of(options: Options) -> tuple[float, ...]:
    """Clocks the governor may choose under the cap, highest first."""
    return tuple(sorted({min(level, options.clock_cap) for level in LEVELS}, reverse=True))


def ambient_c(options: Options, thermals: Thermals) -> float:
    """°C around the chip: as asked, else the usual."""
    return options.ambient_c or thermals.ambient_c


def settled(activity: Activity, options: Options, thermals: Thermals, constants: Constants) -> Heat:
    """The highest clock up to the cap whose steady temperature stays below the limit; the lowest one if none does."""
    heat = None
    for level in levels_of(options):
        watts = power(activity, level, thermals, constants)
        celsius = ambient_c(options, thermals) + watts * thermals.c_per_w / options.cooling
        heat = Heat(level, watts, celsius)
        if celsius <= thermals.throttle_c:
            return heat
    return heat or Heat(1.0, 0.0, thermals.ambient_c)


def course(activity_at: Callable[[float], Activity], options: Options, thermals: Thermals, constants: Constants) -> tuple[Heat, ...]:
    """Clock, power and temperature at each recorded step while the chip runs on between them, from a cold start.

    The governor looks every ``GOVERNOR_S``: above the limit it goes one level down, below the release one up.
    ``activity_at`` gives the use of the parts at a clock level.
    """
    levels = levels_of(options)
    watts = [power(activity_at(level), level, thermals, constants) for level in levels]
    around = ambient_c(options, thermals)
    celsius, place, now, decided = around, 0, 0.0, 0.0
    found = []
    for number in range(options.steps):
        while now < number * options.sample_s:
            stretch = min(GOVERNOR_S, number * options.sample_s - now)
            steady = around + watts[place] * thermals.c_per_w / options.cooling
            celsius = steady + (celsius - steady) * math.exp(-stretch / thermals.time_s)
            now += stretch
            if now - decided >= GOVERNOR_S - 1e-9:
                decided = now
                place = _decision(celsius, place, len(levels), thermals)
        found.append(Heat(levels[place], watts[place], celsius))
    return tuple(found)


def _decision(celsius: float, place: int, count: int, thermals: Thermals) -> int:
    if celsius > thermals.throttle_c:
        return min(place + 1, count - 1)
    return max(0, place - 1) if celsius < thermals.release_c else place


def temperature(begin_c: float, heat: Heat, elapsed_ns: float, thermals: Thermals) -> float:
    """°C after ``elapsed_ns`` at constant power: an RC circuit on its way to the steady state."""
    return heat.celsius + (begin_c - heat.celsius) * math.exp(-elapsed_ns / (thermals.time_s * 1e9))
