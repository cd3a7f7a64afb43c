"""The step replayed: launches of the host against kernels of the device, with other costs of launching.

One stream in order, a queue without an end, no waits in between: a lower bound of the step that says how far cheaper launches
can go, not a forecast of it.
"""

from __future__ import annotations

import numpy as np

from kb.session.session import Table


def replayed(kernels: Table, launches: Table, part: float) -> float | None:
    """ns of the step when every launch costs ``part`` of what it did and the host's other work stays. None without launches."""
    times = _times(launches, part)
    return None if times is None else _end(kernels, *times)


def queue_free(kernels: Table, launches: Table) -> float | None:
    """ns of the step when the host never waits between launches."""
    if not len(launches):
        return None
    order = np.argsort(launches["start_ns"], kind="stable")
    ready = np.cumsum(launches["duration_ns"][order].astype(np.float64))
    return _end(kernels, launches["connection_id"][order], ready)


def _times(launches: Table, part: float) -> tuple[np.ndarray, np.ndarray] | None:
    if not len(launches):
        return None
    order = np.argsort(launches["start_ns"], kind="stable")
    begins = launches["start_ns"][order].astype(np.float64)
    costs = launches["duration_ns"][order].astype(np.float64)
    saved = np.cumsum(costs) * (1.0 - part)
    return launches["connection_id"][order], begins - begins[0] + costs - saved


def _end(kernels: Table, ids: np.ndarray, ready: np.ndarray) -> float | None:
    """When the last kernel ends: each begins once it is launched and the one before has ended."""
    order = np.argsort(ids, kind="stable")
    place = np.searchsorted(ids[order], kernels["connection_id"])
    place = np.minimum(place, len(ids) - 1)
    known = ids[order][place] == kernels["connection_id"]
    if not known.any():
        return None
    durations = kernels["duration_ns"][known].astype(np.float64)
    begins = ready[order][place[known]]
    before = np.concatenate([[0.0], np.cumsum(durations)[:-1]])
    slack = np.maximum.accumulate(begins - before)
    return float(slack[-1] + durations.sum())
