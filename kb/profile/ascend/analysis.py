"""``analysis.db``: the exporter's step totals, communication splits and matrix, beside a database or a text export."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from kb.profile.ascend.database import Database, Rows, opened
from kb.profile.ascend.part import Part, evidence
from kb.session.builder import Strings
from kb.session.builder import table as made_table
from kb.session.session import Array, Table

FILE: Final = "analysis.db"
_STEP: Final[Mapping[str, str]] = {
    "computing_ns": "computing", "comm_not_overlapped_ns": "communication_not_overlapped", "overlapped_ns": "overlapped",
    "communication_ns": "communication", "free_ns": "free", "stage_ns": "stage", "bubble_ns": "bubble", "preparing_ns": "preparing",
}  # fmt: skip
_SPLITS: Final[Mapping[str, str]] = {
    "transit_ns": "transit_time", "wait_ns": "wait_time", "sync_ns": "synchronization_time", "idle_ns": "idle_time",
}  # fmt: skip
_MICROSECOND: Final = 1_000
_MILLISECOND: Final = 1_000_000
_MEGABYTE: Final = 1e6
_LONGEST: Final = 1e15


def read_analysis(path: Path, label: str, strings: Strings) -> tuple[Part, tuple[Table, ...]]:
    """The tables ``step_trace``, ``comm_ops`` and ``comm_links`` of ``path``. Raises MalformedInputError."""
    with opened(path, label) as database:
        tables = tuple(table for make in (_step_trace, _comm_ops, _comm_links) if (table := make(database, strings)) is not None)
        return Part(label, device=_device(database)), tables


def _step_trace(database: Database, strings: Strings) -> Table | None:
    rows = database.rows("StepTraceTime", "step", *_STEP.values())
    if not len(rows):
        return None
    columns: dict[str, Array] = {ours: _ns(rows, theirs, _MICROSECOND) for ours, theirs in _STEP.items()}
    columns["step_id"] = strings.codes([step.strip() if step else None for step in rows.texts("step")])
    return made_table("step_trace", {**columns, **_source(database, "StepTraceTime", rows, strings)}, strings)


def _device(database: Database) -> int | None:
    devices = np.unique(database.rows("StepTraceTime", "deviceId").integers("deviceId"))
    return int(devices[0]) if len(devices) == 1 and devices[0] >= 0 else None


def _comm_ops(database: Database, strings: Strings) -> Table | None:
    rows = database.rows(
        "CommAnalyzerTime", "hccl_op_name", "group_name", "start_timestamp", "elapse_time", *_SPLITS.values(), "step", "type"
    )
    own = np.flatnonzero([name is not None and name != "Total Op Info" for name in rows.texts("hccl_op_name")])
    if not len(own):
        return None
    sizes = _bytes(database)
    labels = list(zip(rows.texts("hccl_op_name"), rows.texts("group_name"), strict=True))
    columns: dict[str, Array] = {
        "start_ns": _ns(rows, "start_timestamp", _MICROSECOND),
        "duration_ns": np.maximum(_ns(rows, "elapse_time", _MILLISECOND), 0),
        "name": strings.codes([name for name, _ in labels]),
        "group": strings.codes([group for _, group in labels]),
        "kind": strings.codes(rows.texts("type")),
        "step_id": strings.codes([(step or "").removeprefix("step") for step in rows.texts("step")]),
        "bytes": np.array([sizes.get(label, 0.0) for label in labels]),
        **{ours: _ns(rows, theirs, _MILLISECOND) for ours, theirs in _SPLITS.items()},
        **_source(database, "CommAnalyzerTime", rows, strings),
    }
    return made_table("comm_ops", {name: values[own] for name, values in columns.items()}, strings)


def _bytes(database: Database) -> Mapping[tuple[str | None, str | None], float]:
    """Bytes of each operator; what HCCS, PCIE and SIO carry is repeated under SDMA and counted once."""
    rows = database.rows("CommAnalyzerBandwidth", "hccl_op_name", "group_name", "transport_type", "transit_size")
    found: dict[tuple[str | None, str | None], dict[str, float]] = {}
    for name, group, transport, size in zip(
        rows.texts("hccl_op_name"), rows.texts("group_name"), rows.texts("transport_type"), rows.reals("transit_size").tolist(), strict=True
    ):
        if size >= 0:
            found.setdefault((name, group), {})[transport or ""] = size
    inside = ("HCCS", "PCIE", "SIO")
    return {
        key: (sizes.get("RDMA", 0.0) + max(sizes.get("SDMA", 0.0), sum(sizes.get(way, 0.0) for way in inside))) * _MEGABYTE
        for key, sizes in found.items()
    }


def _comm_links(database: Database, strings: Strings) -> Table | None:
    rows = database.rows(
        "CommAnalyzerMatrix", "hccl_op_name", "group_name", "src_rank", "dst_rank", "transport_type", "transit_size", "transit_time", "step"
    )
    source, target = rows.integers("src_rank"), rows.integers("dst_rank")
    own = np.flatnonzero((source >= 0) & (target >= 0) & (source < 2**31) & (target < 2**31))
    if not len(own):
        return None
    columns: dict[str, Array] = {
        "op": strings.codes(
            [f"{name}@{group}" if group else name for name, group in zip(rows.texts("hccl_op_name"), rows.texts("group_name"), strict=True)]
        ),
        "src_rank": source,
        "dst_rank": target,
        "transport": strings.codes(rows.texts("transport_type")),
        "bytes": rows.reals("transit_size") * _MEGABYTE,
        "transit_ns": rows.reals("transit_time") * _MILLISECOND,
        **_source(database, "CommAnalyzerMatrix", rows, strings),
    }
    return made_table("comm_links", {name: values[own] for name, values in columns.items()}, strings)


def _ns(rows: Rows, name: str, unit: int) -> Array:
    """Durations as the float the exporter stored, to the nearest ns; -1 where there is none or it is no time."""
    values = rows.reals(name)
    scaled = np.rint(values * unit)
    limit = _LONGEST if unit == _MILLISECOND or name != "start_timestamp" else 2.0**62
    sound = np.isfinite(scaled) & (scaled >= -_MICROSECOND) & (scaled < limit)
    return np.where(sound, np.maximum(np.where(sound, scaled, -1), 0), -1).astype(np.int64)


def _source(database: Database, table: str, rows: Rows, strings: Strings) -> dict[str, Array]:
    return evidence(f"{database.label}#{table}", np.clip(rows.ids, -1, 2**31 - 1).astype(np.int32), strings)
