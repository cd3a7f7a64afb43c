"""Which chip a text export ran on, as far as its counters tell.

A text export never names the chip, but cycles, times and block counts give the clock and the number of cube
cores: cycles = clock x time x blocks, and utilisation = cycles / (clock x cores x duration).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.domain.soc import SocRef
from kb.session.builder import Strings
from kb.session.session import Array, Table

_NEEDED: Final = ("aicore_time_ns", "aic_total_cycles", "block", "cube_utilization")
_CUBE: Final = ("AI_CORE", "MIX_AIC")
SHORTEST_NS: Final = 20_000
"""Times have 1 ns digits: below this length their rounding blurs the clock by more than 1 in 20,000."""
SPREAD: Final = 0.005
"""Rows may disagree by this share (median deviation) before the answer is withheld: the clock changed, or rows are damaged."""
_FAMILY_NOTE: Final = "family A2 assumed from the aic_/aiv_ columns, which A3, 200I A2 and 950 write too"


def chip(kernels: Table | None, split_cores: bool, strings: Strings) -> SocRef:
    """Cube cores and clock (MHz) from the counters of ``kernels``; catalogue ids are matched elsewhere.

    Confidence is ``medium`` where only cores and clock are claimed and ``low`` with the assumed family.
    """
    if not split_cores:
        return SocRef()
    measured = _cores_and_clock(kernels, strings)
    if measured is None:
        return SocRef(family="A2", confidence="low", how=f"counters: no cores or clock; {_FAMILY_NOTE}")
    cores, clock, rows = measured
    how = f"counters: {cores} cube cores at {clock:g} MHz from {rows} kernels; {_FAMILY_NOTE}"
    return SocRef(family="A2", cores=cores, clock_mhz=clock, confidence="low", how=how)


def _cores_and_clock(kernels: Table | None, strings: Strings) -> tuple[int, float, int] | None:
    if kernels is None or not all(name in kernels for name in _NEEDED):
        return None
    cube = np.isin(kernels["core"], [strings.code(name) for name in _CUBE])
    usable = cube & (kernels["aicore_time_ns"] > SHORTEST_NS) & (kernels["aic_total_cycles"] > 0) & (kernels["block"] > 0)
    usable &= (kernels["cube_utilization"] > 0) & (kernels["duration_ns"] > 0)
    if not np.any(usable):
        return None
    cycles = kernels["aic_total_cycles"][usable]
    blocks = kernels["block"][usable]
    clock = _clock(1000 * cycles / (kernels["aicore_time_ns"][usable] * blocks), blocks)
    total = 1000 * cycles / (kernels["duration_ns"][usable] * kernels["cube_utilization"][usable])
    cores = float(np.median(total)) / clock
    if _spread(total) > SPREAD or round(cores) < 1 or abs(cores - round(cores)) > SPREAD * cores:
        return None
    return round(cores), round(clock, 1), int(usable.sum())


def _clock(per_row: Array, blocks: Array) -> float:
    # More blocks than cores run in waves, which makes a row's clock look slower; never faster.
    return max(float(np.median(per_row[blocks == count])) for count in np.unique(blocks))


def _spread(values: Array) -> float:
    middle = float(np.median(values))
    return float(np.median(np.abs(values - middle))) / middle
