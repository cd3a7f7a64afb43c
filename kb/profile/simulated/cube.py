"""Time of a matrix product: tiles in waves over the cube cores, fed from L2, missed from device memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from kb.profile.simulated.chip import Chip
from kb.profile.simulated.constants import Constants
from kb.profile.simulated.graph import ELEMENT_BYTES, Conv2D, CubeOperator, padded
from kb.profile.simulated.kernel import KernelTime
from kb.profile.simulated.residency import Traffic, kept
from kb.profile.simulated.tiling import DEFAULT, Tiling

TILE_EDGES: Final = (16, 32, 64, 128, 256)
ACCUMULATOR_BYTES: Final = 4
"""The cube accumulates in FP32 in L0C."""
SINGLE: Final = ("FLOAT", "FLOAT32", "DOUBLE")
NARROW: Final = ("INT8", "UINT8")
SPLIT_LEAST: Final = 256
"""Shortest part of a summed axis worth a core of its own."""
MIX_INNER: Final = 1000
MIX_ALIGNMENT: Final = 512
"""A longer inner axis whose B are no multiple of this is converted by the vector cores first (CANN profiler documentation)."""
MIX_LEAST_NS: Final = 50_000


def cube_time(
    operator: CubeOperator, traffic: Traffic, chip: Chip, constants: Constants, *, blocks: int = 0, tiling: Tiling = DEFAULT
) -> KernelTime:
    """The fastest tiling that fits L0C, as the vendor's tiling search would pick, or the one ``tiling`` asks for.

    ``blocks`` is the number of cores a measured kernel used (0 = as many as there are tiles); beyond the chip's
    cores they come in waves.
    """
    if tiling.tile_m:
        candidates = [(min(tiling.tile_m, padded(operator.m)), min(tiling.tile_n, padded(operator.n)))]
    else:
        candidates = [tile for tile in _tiles(operator) if tile[0] * tile[1] * ACCUMULATOR_BYTES <= chip.l0c_bytes]
    return min((_with_tile(operator, tile, traffic, chip, constants, blocks, tiling) for tile in candidates), key=_total)


def rate_factor(operator: CubeOperator, chip: Chip, constants: Constants) -> float:
    """Cube rate of the operand's type over that of FP16. First-generation cubes have no FP32: they multiply in FP16."""
    dtype = operator.inputs[0].dtype
    if dtype in NARROW:
        return 2.0
    if dtype not in SINGLE or chip.fused:
        return 1.0
    return constants["single_precision_convolution"] if isinstance(operator, Conv2D) else constants["single_precision_product"]


def _total(time: KernelTime) -> float:
    return time.total


def _tiles(operator: CubeOperator) -> Iterator[tuple[int, int]]:
    """Tile sizes (rows, columns), none needlessly larger than the matrix; the smallest always fits."""
    rows, columns = padded(operator.m), padded(operator.n)
    return ((min(m, rows), min(n, columns)) for m in TILE_EDGES for n in TILE_EDGES if m < 2 * rows and n < 2 * columns)


def _with_tile(
    operator: CubeOperator, tile: tuple[int, int], traffic: Traffic, chip: Chip, constants: Constants, blocks: int, tiling: Tiling
) -> KernelTime:
    width = ELEMENT_BYTES[operator.inputs[0].dtype]
    rows, columns = tile
    outputs = operator.batch * math.ceil(operator.m / rows) * math.ceil(operator.n / columns)
    split = _split(operator, outputs, chip)
    tiles = outputs * split
    used = min(blocks or tiles, tiles) if blocks <= chip.cube_cores else blocks
    in_turn = math.ceil(tiles / min(used, chip.cube_cores))
    waves = max(in_turn, math.ceil(used / chip.cube_cores) * tiles / used)
    depth = padded(math.ceil(operator.k / split))
    rate = chip.mac_rate * rate_factor(operator, chip, constants)
    mac = waves * 2.0 * rows * columns * depth / rate * constants["mac_overhead"]
    fed = float(tiles * (rows + columns) * depth * width)
    missed = min(fed, missed_bytes(operator, tile, traffic, chip, band=tiling.swizzle or int(constants["grid_rows"])))
    hits = 1.0 - missed / fed
    share = constants["transposed_feed_share"] if operator.transposed and not operator.fractal and not chip.fused else 1.0
    again = max(0.0, missed - traffic.cold[0] - traffic.cold[1])
    exposed = again + (missed - again) * constants["memory_exposed"]
    load = waves * (rows + columns) * depth * width * (1.0 - again / fed) / (chip.core_rate_feed * share) + exposed / chip.hbm_rate
    cores = min(used, chip.cube_cores)
    partials = (split - 1) * operator.m * operator.n * ACCUMULATOR_BYTES
    store = (traffic.written + partials) / (cores * chip.core_rate_fixpipe)
    spill = traffic.spilled / chip.hbm_rate
    memory = missed / chip.hbm_rate + spill
    finish = waves * rows * columns * _finishing_passes(operator, chip, constants) * chip.cube_cores / chip.vector_pass_rate
    convert = _conversion(operator, chip, constants, operator.flop / (cores * rate))
    ideal = operator.flop / (cores * chip.mac_rate) * constants["mac_overhead"]
    pipes = max(mac, load, store, finish, memory) if tiling.double_buffer else mac + max(load, memory) + store + finish
    return KernelTime(
        core="AI_CORE" if not convert else "MIX_AIC",
        total=pipes + constants["memory_exposed"] * spill + convert + constants["cube_head_ns"] * chip.head_scale,
        blocks=cores,
        mix_blocks=chip.vector_cores if convert else 0,
        mac=ideal,
        mte1=ideal * constants["mte1_per_mac"],
        mte2=max(load, memory),
        fixpipe=store,
        vec=finish,
        vec_mte2=convert,
        l2_hit=hits,
        hbm_read=missed,
        hbm_write=traffic.spilled,
    )


def _finishing_passes(operator: CubeOperator, chip: Chip, constants: Constants) -> float:
    """Vector passes over every result: what is fused behind the product, and on a fused core the way out."""
    return constants.epilogue_passes(operator.op_type) + (constants["fused_drain_passes"] if chip.fused else 0.0)


def _split(operator: CubeOperator, outputs: int, chip: Chip) -> int:
    """Parts the summed axis of a weight gradient is cut into, so that every core has one: its results are few."""
    if "Filter" not in operator.op_type or outputs >= chip.cube_cores:
        return 1
    return max(1, min(chip.cube_cores // outputs, operator.k // SPLIT_LEAST))


def _conversion(operator: CubeOperator, chip: Chip, constants: Constants, mac: float) -> float:
    """ns the vector cores take to lay badly aligned operands out for the cube first."""
    if chip.fused or operator.fractal or operator.batch > 1 or isinstance(operator, Conv2D) or mac < MIX_LEAST_NS:
        return 0.0
    width = ELEMENT_BYTES[operator.inputs[0].dtype]
    inner = (operator.m if operator.transposed else operator.k, operator.k if operator.right_transposed else operator.n)
    bad = [size > MIX_INNER and size * width % MIX_ALIGNMENT != 0 for size in inner]
    moved = [2.0 * tensor.bytes for tensor, wrong in zip(operator.inputs[:2], bad, strict=True) if wrong]
    near = max(chip.hbm_rate, chip.vector_l2_rate * constants.kinetics("TransData").move_share)
    return sum(size / (chip.hbm_rate if kept(size, chip.l2_bytes) < 1.0 else near) for size in moved)


def missed_bytes(operator: CubeOperator, tile: tuple[int, int], traffic: Traffic, chip: Chip, *, band: int) -> float:
    """B read from device memory: each operand once where it is cold, and again for every sweep L2 cannot hold.

    Tiles are walked in bands of ``band`` tile rows: the right operand is read once a band, and between two bands it
    must outlive itself and the rows beside it.
    """
    width = ELEMENT_BYTES[operator.inputs[0].dtype]
    left_cold, right_cold = traffic.cold[0], traffic.cold[1]
    panel = min(tile[0] * band, operator.m)
    sweeps = math.ceil(operator.m / panel)
    right = operator.k * operator.n * width
    lost = 1.0 - kept(right + panel * operator.k * width, chip.l2_bytes)
    return left_cold + right_cold + operator.batch * (sweeps - 1) * right * lost
