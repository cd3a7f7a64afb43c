"""The chip in base units, as the cost model wants it."""

from __future__ import annotations

import msgspec

from kb.domain.quantity import Quantity
from kb.domain.soc import Soc, Sourced
from kb.profile.simulated.constants import Constants


class Chip(msgspec.Struct, frozen=True, kw_only=True):
    """Rates of a SoC. Rates ``*_rate`` are B/ns for the whole chip (1 B/ns = 1 GB/s); ``core_rate_*`` B/ns a core.

    ``vector_cores`` counts the vector engines; a fused chip (catalogue value 0) has one in each cube core.
    """

    cube_cores: int
    vector_cores: int
    fused: bool
    ghz: float
    head_scale: float
    """Start-up of cube kernels over that of the chips it was fitted on."""
    mac_rate: float
    """FLOP/ns of one cube core."""
    l2_bytes: float
    l0c_bytes: float
    memory_bytes: float
    hbm_rate: float
    core_rate_feed: float
    core_rate_fixpipe: float
    core_rate_attention_fixpipe: float
    vector_l2_rate: float
    vector_pass_rate: float
    """Element passes a ns, all vector cores."""


def _to(figure: Sourced, unit: str) -> float:
    return Quantity(figure.value, figure.unit).to(unit)


def capacity_bytes(soc: Soc) -> float:
    """B of device memory."""
    return _to(soc.memory, "B")


def chip_of(soc: Soc, constants: Constants) -> Chip:
    """Derive the rates. The clock drives cube, vector and L2 but not the device memory."""
    ghz = _to(soc.clock, "GHz")
    fused = soc.vector_cores.value == 0
    cube_cores = int(soc.cube_cores.value)
    vector_cores = int(soc.vector_cores.value) or cube_cores
    return Chip(
        cube_cores=cube_cores,
        vector_cores=vector_cores,
        fused=fused,
        ghz=ghz,
        head_scale=constants["fused_head_share"] if fused else 1.0,
        mac_rate=soc.flop_per_cycle_core.value * ghz,
        l2_bytes=_to(soc.l2, "B"),
        l0c_bytes=_to(soc.l0c, "B"),
        memory_bytes=capacity_bytes(soc),
        hbm_rate=_to(soc.memory_bandwidth, "GB/s") * constants["hbm_share"],
        core_rate_feed=_to(soc.l2_read_bytes_per_cycle_core, "B")
        * constants["feed_share"]
        * ghz
        * (constants["fused_feed_share"] if fused else 1.0),
        core_rate_fixpipe=constants["fixpipe_bytes_per_cycle"] * ghz,
        core_rate_attention_fixpipe=constants["attention_fixpipe_bytes_per_cycle"] * ghz,
        vector_l2_rate=constants["vector_l2_bytes_per_cycle"] * ghz * vector_cores,
        vector_pass_rate=constants["vector_lanes"] * ghz * vector_cores,
    )
