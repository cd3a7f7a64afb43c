"""Time of a matrix product: tiles in waves over the cube cores, fed from L2, missed from device memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from kb.profile.simulated.chip import Chip
from kb.profile.simulated.constants import Constants
from kb.profile.simulated.graph import ELEMENT_BYTES, CubeOperator, padded
from kb.profile.simulated.kernel import KernelTime
from kb.profile.simulated.residency import Traffic, kept

TILE_EDGES: Final = (16, 32, 64, 128, 256)
ACCUMULATOR_BYTES: Final = 4
"""The cube accumulates in FP32 in L0C."""


def cube_time(operator: CubeOperator, traffic: Traffic, chip: Chip, constants: Constants) -> KernelTime:
    """The fastest tiling that fits L0C, as the vendor's tiling search would pick."""
    fitting = (tile for tile in _tiles(operator) if tile[0] * tile[1] * ACCUMULATOR_BYTES <= chip.l0c_bytes)
    return min((_with_tile(operator, tile, traffic, chip, constants) for tile in fitting), key=_total)


def _total(time: KernelTime) -> float:
    return time.total


def _tiles(operator: CubeOperator) -> Iterator[tuple[int, int]]:
    """Tile sizes (rows, columns), none needlessly larger than the matrix; the smallest always fits."""
    rows, columns = padded(operator.m), padded(operator.n)
    return ((min(m, rows), min(n, columns)) for m in TILE_EDGES for n in TILE_EDGES if m < 2 * rows and n < 2 * columns)


def _with_tile(operator: CubeOperator, tile: tuple[int, int], traffic: Traffic, chip: Chip, constants: Constants) -> KernelTime:
    width = ELEMENT_BYTES[operator.inputs[0].dtype]
    rows, columns = tile
    tiles = operator.batch * math.ceil(operator.m / rows) * math.ceil(operator.n / columns)
    waves = math.ceil(tiles / chip.cube_cores)
    depth = padded(operator.k)
    mac = waves * 2.0 * rows * columns * depth / chip.mac_rate * constants["mac_overhead"]
    fed = float(tiles * (rows + columns) * depth * width)
    missed = min(fed, _missed(operator, tile, traffic, chip, constants))
    hits = 1.0 - missed / fed
    load = waves * (rows + columns) * depth * width * hits / chip.core_rate_feed + missed / chip.hbm_rate
    store = traffic.written / (min(tiles, chip.cube_cores) * chip.core_rate_fixpipe)
    memory = (missed + traffic.spilled) / chip.hbm_rate
    blocks = min(tiles, chip.cube_cores)
    ideal = operator.flop / (blocks * chip.mac_rate) * constants["mac_overhead"]
    return KernelTime(
        core="AI_CORE",
        total=max(mac, load, store, memory) + constants["cube_head_ns"],
        blocks=blocks,
        mac=ideal,
        mte1=ideal * constants["mte1_per_mac"],
        mte2=load,
        fixpipe=store,
        l2_hit=hits,
        hbm_read=missed,
        hbm_write=traffic.spilled,
    )


def _missed(operator: CubeOperator, tile: tuple[int, int], traffic: Traffic, chip: Chip, constants: Constants) -> float:
    """B read from device memory: each operand once where it is cold, and again for every sweep L2 cannot hold.

    ``grid_rows`` tile rows are in flight at a time while the columns are swept, so the right operand is
    read once a sweep; between two sweeps it must outlive itself and the rows beside it.
    """
    width = ELEMENT_BYTES[operator.inputs[0].dtype]
    left_cold, right_cold = traffic.cold[0], traffic.cold[1]
    panel = min(tile[0] * constants["grid_rows"], operator.m)
    sweeps = math.ceil(operator.m / panel)
    right = operator.k * operator.n * width
    lost = 1.0 - kept(right + panel * operator.k * width, chip.l2_bytes)
    return left_cold + right_cold + operator.batch * (sweeps - 1) * right * lost
