"""Job: the run as captured, in the figures that limits are set on."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.recommend.targets import Baseline
from kb.session.session import Session
from kb.workflow.diagnose import Diagnosed

_BYTES: Final = {"[B]": 1.0, "[KB]": 2.0**10, "[KiB]": 2.0**10, "[MB]": 2.0**20, "[MiB]": 2.0**20, "[GiB]": 2.0**30}
"""Ends of counter names; the exporters write MB where they mean MiB."""


def baseline_of(diagnosed: Diagnosed, *, samples: float | None = None) -> Baseline:
    """Longest step, most memory held on one device and samples of a step. ``samples`` stands in for what the capture does not say."""
    steps = [session.accounting.step_ns for session in diagnosed.diagnosis.sessions]
    held = [memory for session in diagnosed.sessions if (memory := held_memory(session)) is not None]
    batch = next((session.meta.model.batch for session in diagnosed.sessions if session.meta.model.batch), None)
    return Baseline(latency_ns=float(max(steps, default=0)), memory_b=max(held, default=None), samples=samples or batch)


def held_memory(session: Session) -> float | None:
    """Most bytes that any allocator of the capture reserved; None without samples."""
    table = session.table("counters")
    if table is None or "name" not in table or not len(table["name"]):
        return None
    found = []
    for code in np.unique(table["name"]).tolist():
        name = session.strings[code] if code >= 0 else ""
        reserved = "reserved" in name.lower()
        factor = next((factor for end, factor in _BYTES.items() if name.endswith(end)), None) if reserved else None
        if factor is not None:
            values = table["value"][table["name"] == code]
            found += [float(np.nanmax(values)) * factor] if np.isfinite(values).any() else []
    return max(found, default=None)
