"""Whether facts read from a file can be drawn: columns of one length, indices inside their vocabularies, positive scales."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from kb.report.figures import Curves, Frame, Roofline, Timeline
from kb.report.pictures.facts import SessionFacts
from kb.report.plausibility import impossibilities
from kb.report.report import Report

_DEEPEST = 64
"""Levels of a flame graph; ours have four."""


def breaches(report: Report) -> Iterator[str]:
    """Every reason why the report cannot be shown: impossible numbers, pictures that cannot be drawn; none for a report of ours."""
    if report.diagnosis is not None:
        yield from impossibilities(report.diagnosis)
    for item in (*report.facts, *((report.after,) if report.after is not None else ())):
        yield from (f"{item.name[:80]}: {reason}" for reason in _of(item))


def _of(item: SessionFacts) -> Iterator[str]:
    if item.timeline is not None:
        yield from _timeline(item.timeline)
    if item.flame is not None and not _shallow(item.flame, _DEEPEST):
        yield f"flame graph deeper than {_DEEPEST} levels"
    if item.roofline is not None and not _drawable(item.roofline):
        yield "roofline with a scale that is not positive"
    if any(operator.count <= 0 for operator in item.operators):
        yield "operator without a task"
    yield from chain.from_iterable(_curves(chart) for chart in item.curves)


def _timeline(chart: Timeline) -> Iterator[str]:
    for lane in chart.lanes:
        columns = (lane.starts, lane.durations, lane.names, lane.roles, lane.counts)
        if len({len(column) for column in columns}) != 1:
            yield "timeline lane with columns of different length"
        elif lane.names and not (_inside(lane.names, len(chart.names)) and _inside(lane.roles, len(chart.roles))):
            yield "timeline lane with an index outside its vocabulary"


def _inside(indices: tuple[int, ...], size: int) -> bool:
    return min(indices) >= 0 and max(indices) < size


def _shallow(frame: Frame, left: int) -> bool:
    return left > 0 and all(_shallow(child, left - 1) for child in frame.children)


def _drawable(chart: Roofline) -> bool:
    scales = (chart.peak_flops, chart.bandwidth, *(value for dot in chart.dots for value in (dot.intensity, dot.flops)))
    return bool(chart.dots) and all(0 < value < float("inf") for value in scales) and all(0 <= dot.weight <= 1e6 for dot in chart.dots)


def _curves(chart: Curves) -> Iterator[str]:
    if any(len(line.x) != len(line.y) for line in chart.series):
        yield "curve with columns of different length"
