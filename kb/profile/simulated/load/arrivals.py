"""When requests come: Poisson, constant, in bursts, or as a trace file says."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from kb.domain.pipeline import ArrivalSpec
from kb.errors import MalformedInputError, UsageError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MOST_REQUESTS: Final = 5_000_000
TRACE_COLUMNS: Final = ("time_ms", "timestamp_ms", "arrival_ms", "time_s", "arrived_at")
"""Column names of a trace; the last two are in seconds."""
_SECONDS: Final = TRACE_COLUMNS[3:]


def checked_arrivals(spec: ArrivalSpec) -> ArrivalSpec:
    """``spec`` itself. Raises UsageError for rates, periods or traces that cannot be."""
    if spec.kind == "trace":
        times = np.asarray(spec.times_ms)
        if not len(times) or not np.isfinite(times).all() or (times < 0).any():
            raise UsageError("a trace of arrivals needs times", allowed="finite times in ms from 0 up")
        return spec
    wrong = [
        name for name in ("rate", "factor", "period_s", "burst_s") if not (np.isfinite(getattr(spec, name)) and getattr(spec, name) > 0)
    ]
    if wrong or (spec.kind == "bursts" and spec.burst_s >= spec.period_s):
        raise UsageError(
            f"impossible arrivals: {', '.join(f'{name} = {getattr(spec, name)}' for name in wrong) or 'a burst as long as its period'}",
            allowed="rate, factor, period_s and burst_s above 0, burst_s below period_s",
        )
    return spec


def arrival_times(spec: ArrivalSpec, seconds: float, rng: np.random.Generator) -> Floats:
    """Arrival times in s from 0 to ``seconds``, ascending. Raises UsageError for more than ``MOST_REQUESTS``."""
    checked_arrivals(spec)
    if spec.kind == "trace":
        times = np.sort(np.asarray(spec.times_ms, dtype=np.float64) / 1e3)
        return times[times < seconds]
    if spec.rate * seconds * (spec.factor if spec.kind == "bursts" else 1.0) > MOST_REQUESTS:
        raise UsageError(f"{spec.rate:g} requests a second over {seconds:g} s are too many", allowed=f"up to {MOST_REQUESTS:,} requests")
    if spec.kind == "constant":
        return np.arange(int(spec.rate * seconds)) / spec.rate
    if spec.kind == "poisson":
        return _poisson(spec.rate, seconds, rng)
    low = spec.rate * spec.period_s / (spec.burst_s * spec.factor + spec.period_s - spec.burst_s)
    high = low * spec.factor
    most = max(low, high)
    times = _poisson(most, seconds, rng)
    rate = np.where(np.mod(times, spec.period_s) < spec.burst_s, high, low)
    return times[rng.random(len(times)) * most < rate]


def arrivals_ns(spec: ArrivalSpec, seconds: float, seed: int) -> Ints:
    """The same as int64 ns, for callers with a clock of their own."""
    return np.round(arrival_times(spec, seconds, np.random.default_rng(seed)) * 1e9).astype(np.int64)


def _poisson(rate: float, seconds: float, rng: np.random.Generator) -> Floats:
    count = rng.poisson(rate * seconds)
    return np.sort(rng.random(count) * seconds)


def read_trace(path: Path) -> ArrivalSpec:
    """Arrivals of a CSV file with one of ``TRACE_COLUMNS``, or of plain lines of ms. Raises MalformedInputError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row and any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise MalformedInputError(f"{path}: cannot be read: {error}", allowed="a CSV file of arrival times") from error
    header = [cell.strip().lower() for cell in rows[0]] if rows else []
    column = next((header.index(name) for name in TRACE_COLUMNS if name in header), None)
    scale = 1e3 if column is not None and header[column] in _SECONDS else 1.0
    body = rows[1:] if column is not None else rows
    try:
        times = tuple(float(row[column or 0]) * scale for row in body)
        return checked_arrivals(ArrivalSpec(kind="trace", times_ms=times))
    except (ValueError, IndexError, UsageError) as error:
        raise MalformedInputError(
            f"{path}: no arrival times: {error}", allowed=f"a column {', '.join(TRACE_COLUMNS)}, or a line of ms a request"
        ) from error
