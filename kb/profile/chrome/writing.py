"""A session as a Chrome trace, for Perfetto and for our own importer: overlaps on lanes of their own, the origin inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
import numpy as np

from kb.profile.chrome.tracks import lanes
from kb.session.session import Array, Session, Table

ORIGIN: Final = "diagnosis_recipes_origin"
_HOST_PID: Final = 1
_DEVICE_PID: Final = 0
_LANES: Final = 1000
"""Track numbers reserved for the lanes of one stream."""
_CATEGORIES: Final[Mapping[str, str]] = {
    "framework": "cpu_op",
    "python": "python_function",
    "loader": "user_annotation",
    "other": "overhead",
}
_COPIES: Final[Mapping[str, str]] = {"h2d": "Memcpy HtoD", "d2h": "Memcpy DtoH", "d2d": "Memcpy DtoD", "memset": "Memset"}


def trace_bytes(session: Session) -> bytes:
    """The trace as JSON. Times keep their ns as µs with three decimals; start times are absolute."""
    meta = session.meta
    document: dict[str, object] = {"schemaVersion": 1, ORIGIN: meta}
    document["deviceProperties"] = [{"id": meta.device or 0, "name": meta.soc.reported_name or meta.soc.id or "", "numSms": meta.soc.cores}]
    if meta.rank is not None or meta.world_size is not None:
        document["distributedInfo"] = {"rank": meta.rank, "world_size": meta.world_size}
    return msgspec.json.encode({**document, "traceEvents": list(_events(session))})


def _events(session: Session) -> Iterator[dict[str, object]]:
    for pid, label, name in ((_HOST_PID, "CPU", "host"), (_DEVICE_PID, "GPU 0", "device")):
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": name}}
        yield {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "ts": 0, "args": {"labels": label}}
    for name, write in (("kernels", _kernels), ("copies", _copies), ("host_ops", _host), ("marks", _marks), ("counters", _samples)):
        table = session.table(name)
        if table is not None:
            yield from write(session, table)
    yield from _steps(session)


def _span(name: str | None, cat: str, place: tuple[int, int], start: int, duration: int, args: Mapping[str, object]) -> dict[str, object]:
    event: dict[str, object] = {"ph": "X", "cat": cat, "name": name or "", "pid": place[0], "tid": place[1]}
    return event | {"ts": _time(start), "dur": _time(duration), "args": args}


def _time(ns: int) -> msgspec.Raw:
    return msgspec.Raw(f"{ns // 1000}.{ns % 1000:03d}".encode())


def _tracks(table: Table, streams: Array) -> Array:
    """A track for each row, so that no two events of one track overlap."""
    tracks = np.zeros(len(table), np.int64)
    for stream in np.unique(streams).tolist():
        own = np.flatnonzero(streams == stream)
        start = table["start_ns"][own]
        tracks[own] = (stream + 1) * _LANES + lanes(start, start + table["duration_ns"][own])
    return tracks


def _column(table: Table, name: str) -> Array:
    return table[name] if name in table else np.full(len(table), -1)


def _kernels(session: Session, table: Table) -> Iterator[dict[str, object]]:
    streams, links = _column(table, "stream"), _column(table, "connection_id")
    tracks = _tracks(table, streams)
    for row in range(len(table)):
        args: dict[str, object] = {"stream": int(streams[row]), "device": session.meta.device or 0}
        if links[row] >= 0:
            args["correlation"] = int(links[row])
        for name in ("op_type", "core", "input_shapes"):
            text = session.text(int(table[name][row])) if name in table else None
            if text is not None:
                args[name] = text
        start, duration = int(table["start_ns"][row]), int(table["duration_ns"][row])
        yield _span(session.text(int(table["name"][row])), "kernel", (_DEVICE_PID, int(tracks[row])), start, duration, args)


def _copies(session: Session, table: Table) -> Iterator[dict[str, object]]:
    streams = _column(table, "stream")
    tracks = _tracks(table, streams) + _LANES // 2
    for row in range(len(table)):
        kind = session.text(int(table["kind"][row])) or ""
        size = float(table["bytes"][row]) if "bytes" in table else np.nan
        args: dict[str, object] = {
            "stream": int(streams[row]),
            "device": session.meta.device or 0,
            **({"bytes": size} if size == size else {}),
        }
        cat = "gpu_memset" if kind == "memset" else "gpu_memcpy"
        start, duration = int(table["start_ns"][row]), int(table["duration_ns"][row])
        yield _span(_COPIES.get(kind, "Memcpy"), cat, (_DEVICE_PID, int(tracks[row])), start, duration, args)


def _host(session: Session, table: Table) -> Iterator[dict[str, object]]:
    threads, links = _column(table, "thread"), _column(table, "connection_id")
    for row in range(len(table)):
        layer = session.text(int(table["layer"][row])) or "other"
        args: dict[str, object] = {"correlation": int(links[row])} if links[row] >= 0 else {}
        start, duration = int(table["start_ns"][row]), int(table["duration_ns"][row])
        place = (_HOST_PID, max(int(threads[row]), 0))
        yield _span(session.text(int(table["name"][row])), _CATEGORIES.get(layer, "cuda_runtime"), place, start, duration, args)


def _marks(session: Session, table: Table) -> Iterator[dict[str, object]]:
    for row in range(len(table)):
        start, duration = int(table["start_ns"][row]), int(table["duration_ns"][row])
        yield _span(session.text(int(table["name"][row])), "user_annotation", (_HOST_PID, 0), start, duration, {})


def _steps(session: Session) -> Iterator[dict[str, object]]:
    table, marks = session.table("steps"), session.table("marks")
    present = {session.text(code) for code in set(marks["name"].tolist())} if marks is not None else set()
    for row in range(len(table)) if table is not None and "start_ns" in table and "end_ns" in table else ():
        if table is not None:
            start, end = int(table["start_ns"][row]), int(table["end_ns"][row])
            name = f"ProfilerStep#{session.text(int(table['step_id'][row])) or row}"
            if 0 <= start < end and name not in present:
                yield _span(name, "user_annotation", (_HOST_PID, 0), start, end - start, {})


def _samples(session: Session, table: Table) -> Iterator[dict[str, object]]:
    for start, code, value in zip(table["start_ns"].tolist(), table["name"].tolist(), table["value"].tolist(), strict=True):
        yield {"ph": "C", "name": session.text(code) or "value", "pid": _DEVICE_PID, "tid": 0, "ts": _time(start), "args": {"value": value}}
