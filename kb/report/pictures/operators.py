"""Operator types of a step with their time and hardware counters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np

from kb.report.figures import Role
from kb.report.pictures.tasks import ROLES, Tasks, sums_by
from kb.session.session import Array

METRICS: Final[Mapping[str, tuple[Role, ...]]] = {
    "cube_utilization": ("cube", "mix"),
    "aic_mac_ratio": ("cube", "mix"),
    "aic_mte2_ratio": ("cube", "mix"),
    "aiv_vec_ratio": ("vector", "mix"),
    "aiv_mte2_ratio": ("vector", "mix"),
    "l2_hit_ratio": ("cube", "vector", "mix"),
}
"""Counters worth a column, and the engines they say something about."""


class OperatorFact(msgspec.Struct, frozen=True, kw_only=True):
    """One operator type on one engine. ``metrics`` are means weighted by duration, ratios 0..1; ``wait_ns`` is the summed gap
    before its tasks; ``hbm_bytes`` is device memory traffic. None = not captured."""

    name: str
    role: Role
    count: int
    total_ns: int
    metrics: Mapping[str, float] = {}
    wait_ns: int | None = None
    hbm_bytes: float | None = None


def operator_facts(tasks: Tasks, limit: int) -> tuple[OperatorFact, ...]:
    """The ``limit`` operator types of most device time, largest first."""
    groups = tasks.kind.astype(np.int64) * len(ROLES) + tasks.role
    keys, totals, inverse = sums_by(groups, tasks.durations)
    counts = np.bincount(inverse, minlength=len(keys))
    averages = {name: _weighted(tasks, name, inverse, len(keys)) for name in METRICS if tasks.column(name) is not None}
    waits = _sum(tasks.column("wait_ns"), inverse, len(keys))
    traffic = _traffic(tasks, inverse, len(keys))
    facts = []
    for place in np.argsort(-totals, kind="stable")[:limit].tolist():
        role = ROLES[int(keys[place]) % len(ROLES)]
        metrics = {
            name: round(float(values[place]), 4)
            for name, values in averages.items()
            if role in METRICS[name] and np.isfinite(values[place])
        }
        facts.append(
            OperatorFact(
                name=tasks.session.text(int(keys[place]) // len(ROLES)) or "?",
                role=role,
                count=int(counts[place]),
                total_ns=int(totals[place]),
                metrics=metrics,
                wait_ns=None if waits is None else int(waits[place]),
                hbm_bytes=None if traffic is None else float(traffic[place]),
            )
        )
    return tuple(facts)


def _weighted(tasks: Tasks, name: str, inverse: Array, size: int) -> Array:
    """Mean of a counter by group, weighted by duration; NaN where a group has no sample."""
    values, weights = tasks.table[name], tasks.durations.astype(np.float64)
    known = np.isfinite(values)
    sums = np.bincount(inverse[known], weights=values[known] * weights[known], minlength=size)
    total = np.bincount(inverse[known], weights=weights[known], minlength=size)
    means: Array = np.divide(sums, total, out=np.full(size, np.nan), where=total > 0)
    return means


def _sum(values: Array | None, inverse: Array, size: int) -> Array | None:
    if values is None:
        return None
    return np.bincount(inverse, weights=np.maximum(values, 0), minlength=size)


def _traffic(tasks: Tasks, inverse: Array, size: int) -> Array | None:
    read, written = tasks.column("hbm_read_bytes"), tasks.column("hbm_write_bytes")
    if read is None or written is None:
        return None
    return np.bincount(inverse, weights=np.nan_to_num(read) + np.nan_to_num(written), minlength=size)
