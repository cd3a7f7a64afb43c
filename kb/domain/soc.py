"""A system on chip as the product knows it: every value with its source and confidence."""

from __future__ import annotations

from typing import Literal

import msgspec

Confidence = Literal["high", "medium", "low"]
SocFamily = Literal["310", "310B", "310P", "910", "A2", "A3", "A5", "gpu", "cpu", "unknown"]


class Sourced(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One hardware figure: ``value`` in ``unit`` (a key of ``quantity.UNITS``), and who says so."""

    value: float
    unit: str
    source: str
    confidence: Confidence


class Soc(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One chip (or one die of a two-die package).

    ``family`` is the hard key of applicability. ``flop_per_cycle_core`` is the FP16 cube rate (8,192 =
    16 x 16 x 16 x 2). Rates named ``*_bytes_per_cycle_core`` are per cube core.
    """

    id: str
    name: str
    family: SocFamily
    aliases: tuple[str, ...] = ()
    cube_cores: Sourced
    vector_cores: Sourced
    clock: Sourced
    flop_per_cycle_core: Sourced
    l2: Sourced
    l1: Sourced
    l0a: Sourced
    l0b: Sourced
    l0c: Sourced
    ub: Sourced
    memory: Sourced
    memory_bandwidth: Sourced
    l2_read_bytes_per_cycle_core: Sourced
    link_bandwidth: Sourced | None = None
    notes: str = ""

    @property
    def peak_fp16_flops(self) -> float:
        """FP16 cube peak in FLOP/s: cores x FLOP per cycle x clock."""
        clock_hz = self.clock.value * {"MHz": 1e6, "GHz": 1e9}[self.clock.unit]
        return self.cube_cores.value * self.flop_per_cycle_core.value * clock_hz


class SocRef(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which chip a session ran on, as far as the capture tells.

    ``id`` is a catalogue id or None. ``cores`` (cube cores) and ``clock_mhz`` may be computed from
    counters. ``how`` says where the answer comes from ("NPU_INFO", "counters", "--soc", "simulator").
    """

    id: str | None = None
    reported_name: str | None = None
    family: SocFamily = "unknown"
    cores: int | None = None
    clock_mhz: float | None = None
    confidence: Confidence = "low"
    how: str = "not in the capture"
