"""How matrix kernels cut and walk their work: what a user could set, and what fits on the chip."""

from __future__ import annotations

from typing import Final

import msgspec

from kb.domain.soc import Soc
from kb.errors import UsageError
from kb.profile.simulated.graph import padded

_KIB: Final = {"KiB": 1024, "MiB": 1024**2, "B": 1}


class Tiling(msgspec.Struct, frozen=True, kw_only=True):
    """``tile_m`` x ``tile_n`` of the result a cube core holds, ``tile_k`` deep; 0 = the vendor's search.

    ``double_buffer``: loads run while the cube computes (the pipes' maximum; else their sum). ``swizzle``: tile rows
    walked together so that they share the right operand in L2; 0 = the vendor's choice, 1 = row by row.
    """

    tile_m: int = 0
    tile_n: int = 0
    tile_k: int = 64
    double_buffer: bool = True
    swizzle: int = 0


DEFAULT: Final = Tiling()


def checked_tiling(tiling: Tiling, soc: Soc, width: int = 2) -> Tiling:
    """``tiling`` itself. Raises UsageError when a tile overflows L0A, L0B, L0C or UB of ``soc`` (operands of ``width`` B)."""
    if not tiling.tile_m:
        return tiling
    if not tiling.tile_n:
        raise UsageError("a tile needs both edges", allowed="tile_m and tile_n, or tile_m = 0 for the vendor's search")
    if (
        min(tiling.tile_m, tiling.tile_n, tiling.tile_k) < 1
        or padded(tiling.tile_m) != tiling.tile_m
        or padded(tiling.tile_n) != tiling.tile_n
    ):
        raise UsageError(
            f"impossible tile {tiling.tile_m} x {tiling.tile_n} x {tiling.tile_k}", allowed="positive multiples of 16 for the edges"
        )
    copies = 2 if tiling.double_buffer else 1
    needs = {
        "l0a": tiling.tile_m * tiling.tile_k * width * copies,
        "l0b": tiling.tile_n * tiling.tile_k * width * copies,
        "l0c": tiling.tile_m * tiling.tile_n * 4,
    }
    for buffer, need in needs.items():
        figure = getattr(soc, buffer)
        room = int(figure.value * _KIB[figure.unit])
        if need > room:
            raise UsageError(
                f"tile {tiling.tile_m} x {tiling.tile_n} x {tiling.tile_k} overflows {buffer.upper()} of {soc.name}: "
                f"{need:,} B of {room:,} B",
                allowed=f"at most {room:,} B in {buffer.upper()}",
                do="use a smaller tile, a shallower one, or no double buffer",
            )
    return tiling
