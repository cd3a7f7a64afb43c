"""Counters of kernels beyond pipe utilisation: one column of ours from the columns of both engines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from kb.profile.ascend.columns import ColumnSpec, Specs
from kb.profile.ascend.csv_table import CsvTable
from kb.session.session import Array

_ENGINES: Final = ("", "aic_", "aiv_")
_UNIT: Final = re.compile(r"\([^()]*\)$")
_MARK: Final = "counter:"


class _Sum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    names: tuple[str, ...]
    scale: float


class Metrics(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``sums``: our column to the exporters' names (without engine and unit) and the factor to our unit. ``l2_hits`` and
    ``l2_misses`` give the hit ratio."""

    sums: Mapping[str, _Sum]
    l2_hits: tuple[str, ...]
    l2_misses: tuple[str, ...]

    def names(self) -> set[str]:
        """Every exporter's name, without engine and unit."""
        return {name for found in self.sums.values() for name in found.names} | {*self.l2_hits, *self.l2_misses}


def load_metrics() -> Metrics:
    """The data file ``metrics.json``."""
    return msgspec.json.decode(Path(__file__).with_name("metrics.json").read_bytes(), type=Metrics)


def with_counters(specs: Specs, header: Sequence[str], metrics: Metrics) -> Specs:
    """``specs`` and one more for each counter column of ``header``."""
    known = metrics.names()
    own = [cell for cell in header if _bare(cell)[1] in known]
    return {**specs, **{_MARK + "".join(_bare(cell)): ColumnSpec(names=(cell,), kind="real") for cell in own}}


def counter_columns(read: CsvTable, metrics: Metrics) -> dict[str, Array]:
    """Our columns: sums over engines; the L2 hit ratio where hits and misses were counted. NaN where neither engine has a value."""
    found: dict[str, Array] = {}
    for ours, spec in metrics.sums.items():
        # The first name that occurs wins: older families write one name where newer ones split it.
        for name in spec.names:
            values = _summed(read, (name,))
            if values is not None:
                found[ours] = values * spec.scale
                break
    hits, misses = _summed(read, metrics.l2_hits), _summed(read, metrics.l2_misses)
    if hits is not None and misses is not None:
        with np.errstate(invalid="ignore", divide="ignore"):
            found["l2_hit_ratio"] = np.where(hits + misses > 0, hits / (hits + misses), np.nan)
    return found


def _summed(read: CsvTable, names: Sequence[str]) -> Array | None:
    columns = [read.columns[key] for name in names for engine in _ENGINES if (key := _MARK + engine + name) in read.columns]
    if not columns:
        return None
    stacked = np.vstack(columns)
    return np.where(np.isnan(stacked).all(axis=0), np.nan, np.nansum(stacked, axis=0))


def _bare(cell: str) -> tuple[str, str]:
    name = _UNIT.sub("", cell.strip()).casefold()
    engine = next((engine for engine in _ENGINES[1:] if name.startswith(engine)), "")
    return engine, name.removeprefix(engine)
