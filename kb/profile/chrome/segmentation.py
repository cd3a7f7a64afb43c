"""Steps of a trace: from the profiler's own markers, else from named iterations, else from kernels that come round again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kb.profile.chrome.rules import Categories
from kb.session.session import Array

FEWEST_REPEATS: Final = 3
ALIKE: Final = 0.95
"""Share of kernels that must come round in the same order before repetition counts as steps."""
LONGEST_PERIOD: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step in ns. ``number`` is the position of the marker's event, 0 without one."""

    label: str
    start_ns: int
    end_ns: int
    kind: str
    number: int


def marked(names: Sequence[str], columns: Mapping[str, Array], categories: Categories) -> list[StepRow]:
    """Steps of ``ProfilerStep#n`` ranges, in time order, each range once however many threads repeat it."""
    pattern = re.compile(categories.step_marker)
    found: dict[str, StepRow] = {}
    for name, start, duration, row in _rows(names, columns):
        match = pattern.match(name)
        if match and duration:
            known = found.get(match[1])
            if known is None or duration > known.end_ns - known.start_ns:
                found[match[1]] = StepRow(match[1], start, start + duration, "unknown", row)
    return sorted(found.values(), key=lambda step: step.start_ns)


def iterations(
    names: Sequence[str], columns: Mapping[str, Array], launches: tuple[Array, Array],
    kernels: tuple[Array, Array, Array], categories: Categories
) -> list[StepRow]:  # fmt: skip
    """Steps of ranges such as ``execute_context_1(..)_generation_0(..)``: the device work their launches caused.

    ``launches`` are (start, connection) of host calls; ``kernels`` are (start, end, connection) of device tasks. A step
    lasts until the next begins on the device, the last until its own work ends. Ranges that launched nothing are left out.
    """
    patterns = [re.compile(pattern) for pattern in categories.iteration_markers]
    ranges = sorted(
        (start, start + duration, name, row)
        for name, start, duration, row in _rows(names, columns)
        if any(p.search(name) for p in patterns)
    )
    outer = _outermost(ranges)
    spans = [(span, name, row) for begin, end, name, row in outer if (span := _device_span(begin, end, launches, kernels))]
    spans.sort()
    rows = []
    for index, ((begin, end), name, row) in enumerate(spans):
        until = spans[index + 1][0][0] if index + 1 < len(spans) else end
        rows.append(StepRow(str(index + 1), begin, max(until, begin + 1), phase(name, categories), row))
    return rows


def phase(name: str, categories: Categories) -> str:
    """``prefill``, ``decode`` or ``unknown`` from what a range's name says it holds."""
    has = {part for part, pattern in categories.phases.items() if re.search(pattern, name)}
    if "context" in has:
        return "prefill"
    return "decode" if "generation" in has else "unknown"


def repetitions(names: Array, start: Array, end: Array) -> list[StepRow]:
    """Steps where the kernels (codes by start, of one device) repeat with one period, at least three times; else none.

    A step begins with the kernel after the longest idle gap of the period.
    """
    period = _period(names)
    if period is None:
        return []
    reach = np.maximum.accumulate(end)
    gaps = np.maximum(start[1:] - reach[:-1], 0)
    whole = len(gaps) // period * period
    first = (int(gaps[:whole].reshape(-1, period).sum(axis=0).argmax()) + 1) % period
    begins = start[first::period].tolist()
    ends = [*begins[1:], int(reach[min(first + len(begins) * period, len(end)) - 1])]
    complete = (len(names) - first) // period
    return [StepRow(str(index + 1), begins[index], ends[index], "unknown", 0) for index in range(complete) if ends[index] > begins[index]]


def _period(names: Array) -> int | None:
    if len(names) < 2 * FEWEST_REPEATS:
        return None
    codes, counts = np.unique(names, return_counts=True)
    for code in codes[np.argsort(counts, kind="stable")][:8].tolist():
        places = np.flatnonzero(names == code)
        if len(places) < FEWEST_REPEATS:
            continue
        period = int(np.median(np.diff(places)))
        if 2 <= period <= min(LONGEST_PERIOD, len(names) // FEWEST_REPEATS) and np.mean(names[:-period] == names[period:]) >= ALIKE:
            return period
    return None


def _rows(names: Sequence[str], columns: Mapping[str, Array]) -> Iterator[tuple[str, int, int, int]]:
    for code, start, duration, row in zip(
        columns["name"].tolist(), columns["start_ns"].tolist(), columns["duration_ns"].tolist(), columns["row"].tolist(), strict=True
    ):
        yield names[code] if code >= 0 else "", start, duration, row


def _outermost(ranges: Sequence[tuple[int, int, str, int]]) -> list[tuple[int, int, str, int]]:
    kept: list[tuple[int, int, str, int]] = []
    for found in ranges:
        if not kept or found[0] >= kept[-1][1]:
            kept.append(found)
    return kept


def _device_span(begin: int, end: int, launches: tuple[Array, Array], kernels: tuple[Array, Array, Array]) -> tuple[int, int] | None:
    own = launches[1][(launches[0] >= begin) & (launches[0] < end)]
    mine = np.isin(kernels[2], own[own >= 0])
    if not mine.any():
        return None
    return int(kernels[0][mine].min()), int(kernels[1][mine].max())
