"""The step's tasks on their streams, and the gaps in which the device did nothing."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.report.figures import Bubble, Lane, Timeline
from kb.report.pictures.tasks import ROLES, Tasks, is_communication
from kb.session.session import Array

SPANS: Final = 120_000
"""Spans a file holds; a capture with more has its shortest tasks merged, and the timeline says so."""
_LANES: Final = 24
_BUBBLES: Final = 80
_SMALLEST_BUBBLE: Final = 2e-4
"""Share of the step below which a gap is not listed."""
_NAME: Final = 120


def timeline(tasks: Tasks, *, spans: int = SPANS) -> Timeline:
    """Lanes by stream in order of their id, at most ``spans`` spans, and the longest gaps."""
    names, labels = _labels(tasks)
    threshold = 0
    lanes: list[Lane] = []
    streams = _streams(tasks)
    if len(tasks) > spans:
        threshold = max(1, (tasks.end - tasks.begin) * 2 * len(streams) // spans)
    for title, rows in streams:
        lanes.append(_lane(title, tasks, rows, labels, threshold, merged_name=len(names)))
    vocabulary = (*names, "…") if threshold else names
    return Timeline(tasks.end - tasks.begin, vocabulary, ROLES, tuple(lanes), _bubbles(tasks), len(tasks), threshold)


def _streams(tasks: Tasks) -> list[tuple[str, Array]]:
    """Rows by stream: the busiest ``_LANES`` on their own, the others together; communication never shares a lane with compute."""
    stream = tasks.column("stream")
    ids = stream.astype(np.int64) if stream is not None else np.zeros(len(tasks), np.int64)
    keyed = ids * 2 + is_communication(tasks)
    keys, inverse = np.unique(keyed, return_inverse=True)
    busy = np.bincount(inverse, weights=tasks.durations)
    own = np.sort(np.argsort(-busy, kind="stable")[:_LANES])
    found = [(_title(int(keys[place]), stream is not None), np.flatnonzero(inverse == place)) for place in own.tolist()]
    rest = np.flatnonzero(~np.isin(inverse, own))
    return [*found, ("…", rest)] if len(rest) else found


def _title(key: int, known: bool) -> str:
    kind = " · HCCL" if key % 2 else ""
    return f"{key // 2 if known and key >= 0 else '?'}{kind}"


def _labels(tasks: Tasks) -> tuple[tuple[str, ...], Array]:
    """The distinct "type · shapes" texts, and each row's index into them."""
    shapes = tasks.column("input_shapes")
    second = shapes.astype(np.int64) if shapes is not None else np.full(len(tasks), -1, np.int64)
    keys, inverse = np.unique((tasks.kind.astype(np.int64) << 32) + second + 1, return_inverse=True)
    texts = []
    for key in keys.tolist():
        kind, shape = tasks.session.text(key >> 32) or "?", tasks.session.text((key & 0xFFFFFFFF) - 1)
        texts.append(f"{kind} · {shape}"[:_NAME] if shape else kind[:_NAME])
    return tuple(texts), inverse


def _lane(title: str, tasks: Tasks, rows: Array, labels: Array, threshold: int, *, merged_name: int) -> Lane:
    starts, durations = tasks.starts[rows], tasks.durations[rows]
    names, roles, counts = labels[rows], tasks.role[rows], np.ones(len(rows), np.int64)
    if threshold:
        starts, durations, names, roles, counts = _merged(starts, durations, names, roles, threshold, merged_name)
    columns = (starts, durations, names, roles, counts)
    return Lane(title, *(tuple(column.tolist()) for column in columns))


def _merged(starts: Array, durations: Array, names: Array, roles: Array, threshold: int, merged_name: int) -> tuple[Array, ...]:
    """Tasks shorter than ``threshold`` that begin in the same window of that length become one span of their busy time."""
    window = np.where(durations < threshold, starts // threshold, -1 - np.arange(len(starts)))
    _, first, inverse, counts = np.unique(window, return_index=True, return_inverse=True, return_counts=True)
    begin = np.full(len(first), np.iinfo(np.int64).max)
    np.minimum.at(begin, inverse, starts)
    busy = np.bincount(inverse, weights=durations).astype(np.int64)
    order = np.argsort(begin, kind="stable")
    name = np.where(counts > 1, merged_name, names[first])
    return begin[order], busy[order], name[order], roles[first][order], counts[order]


def _bubbles(tasks: Tasks) -> tuple[Bubble, ...]:
    """The longest gaps of the union of all streams, in order of time."""
    starts, ends = tasks.starts, tasks.starts + tasks.durations
    reach = np.maximum.accumulate(ends)
    latest = np.maximum.accumulate(np.where(ends == reach, np.arange(len(ends)), 0))
    gaps = starts[1:] - reach[:-1]
    wide = np.flatnonzero(gaps > _SMALLEST_BUBBLE * max(tasks.end - tasks.begin, 1))
    chosen = np.sort(wide[np.argsort(-gaps[wide], kind="stable")[:_BUBBLES]])
    launches = _launches(tasks)
    found = []
    for place in chosen.tolist():
        begin, length = int(reach[place]), int(gaps[place])
        cause = _cause(tasks, place + 1, begin, launches)
        found.append(Bubble(begin, length, cause, _kind(tasks, int(latest[place])), _kind(tasks, place + 1)))
    return tuple(found)


def _launches(tasks: Tasks) -> dict[int, int]:
    """End of the host launch by connection id, ns since the step's begin; empty when the capture has no host side."""
    host = tasks.session.table("host_ops")
    if host is None or "connection_id" not in host or tasks.column("connection_id") is None:
        return {}
    linked = host.where(host["connection_id"] >= 0)
    ends = linked["start_ns"] + linked["duration_ns"] - tasks.begin
    return dict(zip(linked["connection_id"].tolist(), ends.tolist(), strict=True))


def _cause(tasks: Tasks, row: int, begin: int, launches: dict[int, int]) -> str:
    """``launch`` when the host launched the next task only after the device had run dry, ``ready`` when it had done so
    before, ``unknown`` when the capture does not link the two."""
    connections = tasks.column("connection_id")
    launched = launches.get(int(connections[row])) if connections is not None else None
    if launched is None:
        return "unknown"
    return "launch" if launched > begin else "ready"


def _kind(tasks: Tasks, row: int) -> str:
    return (tasks.session.text(int(tasks.kind[row])) or "?")[:_NAME]
