"""Host events, samples and memory of a profiler database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from kb.profile.ascend.database import Database, Rows
from kb.profile.ascend.db_names import Names, enumeration
from kb.profile.ascend.part import evidence
from kb.profile.ascend.trace_events import CANN_LAYERS, LOADER
from kb.session.builder import table as made_table
from kb.session.session import Array, Table

_MEBI: Final = 1 << 20
_KIBI: Final = 1 << 10
_API_LAYERS: Final[Mapping[str, str]] = {"op": "framework", "queue": "framework", "trace": "python", "gc": "gc"}
_STACK: Final = ";\n"


def host_ops(database: Database, names: Names) -> Table | None:
    """CANN_API and PYTORCH_API (whose times are text) as one table."""
    parts = [part for part in (_cann(database, names), _framework(database, names)) if part is not None]
    if not parts:
        return None
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return made_table("host_ops", columns, names.strings)


def _cann(database: Database, names: Names) -> dict[str, Array] | None:
    rows = database.rows("CANN_API", "startNs", "endNs", "type", "globalTid", "connectionId", "name")
    layers = enumeration(database, "ENUM_API_TYPE")
    layer = [CANN_LAYERS.get(layers.get(number, "").casefold(), "other") for number in rows.integers("type").tolist()]
    return _spans(database, "CANN_API", rows, layer, names, rows.integers("connectionId"), None)


def _framework(database: Database, names: Names) -> dict[str, Array] | None:
    rows = database.rows("PYTORCH_API", "startNs", "endNs", "globalTid", "name", "inputShapes", "callchainId", "type")
    layers = enumeration(database, "ENUM_API_TYPE")
    texts = names.text(rows.integers("name"))
    layer = [
        "loader" if text is not None and text.startswith(LOADER) else _API_LAYERS.get(layers.get(number, "").casefold(), "other")
        for number, text in zip(rows.integers("type").tolist(), texts, strict=True)
    ]
    stacks = _stacks(database, names)
    chain = names.strings.codes([stacks.get(number) for number in rows.integers("callchainId").tolist()])
    return _spans(database, "PYTORCH_API", rows, layer, names, np.full(len(rows), -1), chain)


def _spans(
    database: Database, table: str, rows: Rows, layer: Sequence[str], names: Names, connections: Array, stack: Array | None
) -> dict[str, Array] | None:
    start, end = rows.integers("startNs"), rows.integers("endNs")
    own = np.flatnonzero((start >= 0) & (end >= start))
    if not len(own):
        return None
    shapes = [text.replace("\r\n", "") if text and text.strip(";\r\n ") else None for text in names.text(rows.integers("inputShapes"))]
    columns: dict[str, Array] = {
        "start_ns": start,
        "duration_ns": end - start,
        "name": names.of(rows.integers("name")),
        "layer": names.strings.codes(list(layer)),
        "thread": rows.integers("globalTid"),
        "connection_id": connections,
        "input_shapes": names.strings.codes(shapes),
        "stack": stack if stack is not None else np.full(len(rows), -1),
        **evidence(f"{database.label}#{table}", np.clip(rows.ids, -1, 2**31 - 1), names.strings),
    }
    return {name: values[own] for name, values in columns.items()}


def _stacks(database: Database, names: Names) -> Mapping[int, str]:
    rows = database.rows("PYTORCH_CALLCHAINS", "id", "stack", "stackDepth")
    frames: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for number, text, depth in zip(
        rows.integers("id").tolist(), names.text(rows.integers("stack")), rows.integers("stackDepth").tolist(), strict=True
    ):
        if text:
            frames[number].append((depth, text))
    return {number: _STACK.join(text for _, text in sorted(found)) for number, found in frames.items()}


def counters(database: Database, names: Names) -> Table | None:
    """Every sampled value under the name the timeline gives it, unit in brackets."""
    samples = [
        sample for source in (_memory, _bandwidth, _cache, _levels, _sampled) for sample in source(database, names) if len(sample[2])
    ]
    if not samples:
        return None
    columns: dict[str, Array] = {
        "start_ns": np.concatenate([sample[2] for sample in samples]),
        "name": np.concatenate([sample[1] for sample in samples]),
        "value": np.concatenate([sample[3] for sample in samples]),
        "file": np.concatenate([np.full(len(sample[2]), names.strings.code(f"{database.label}#{sample[0]}")) for sample in samples]),
        "row": np.concatenate([np.clip(sample[4], -1, 2**31 - 1) for sample in samples]),
    }
    return made_table("counters", columns, names.strings)


_Sample = tuple[str, Array, Array, Array, Array]
"""Table, names (codes), times (ns), values, row ids."""


def _sample(table: str, rows: Rows, label: Sequence[str | None], times: str, values: Array, names: Names) -> _Sample:
    when = rows.integers(times)
    own = np.flatnonzero((when >= 0) & np.isfinite(values))
    return table, names.strings.codes(list(label))[own], when[own], values[own], rows.ids[own]


def _memory(database: Database, names: Names) -> Iterator[_Sample]:
    rows = database.rows("MEMORY_RECORD", "component", "timestamp", "totalAllocated", "totalReserved", "totalActive")
    components = names.text(rows.integers("component"))
    for kind in ("Allocated", "Reserved", "Active"):
        label = [f"{component or 'unknown'} {kind.lower()} [MiB]" for component in components]
        yield _sample("MEMORY_RECORD", rows, label, "timestamp", rows.reals(f"total{kind}") / _MEBI, names)
    rows = database.rows("NPU_MEM", "type", "ddr", "hbm", "timestampNs")
    owners = {"app": "APP", "device": "Device"}
    kinds = [owners.get(text or "", text or "unknown") for text in names.text(rows.integers("type"))]
    for column in ("ddr", "hbm"):
        yield _sample(
            "NPU_MEM", rows, [f"{kind}/{column.upper()} [KB]" for kind in kinds], "timestampNs", rows.reals(column) / _KIBI, names
        )
    rows = database.rows("NPU_MODULE_MEM", "moduleId", "timestampNs", "totalReserved")
    modules = enumeration(database, "ENUM_MODULE")
    label = [f"{modules.get(number, number)} reserved [MiB]" for number in rows.integers("moduleId").tolist()]
    yield _sample("NPU_MODULE_MEM", rows, label, "timestampNs", rows.reals("totalReserved") / _MEBI, names)


def _bandwidth(database: Database, names: Names) -> Iterator[_Sample]:
    rows = database.rows("HBM", "timestampNs", "bandwidth", "hbmId", "type")
    ways = [(text or "").capitalize() for text in names.text(rows.integers("type"))]
    label = [f"HBM {number}/{way} [MB/s]" for number, way in zip(rows.integers("hbmId").tolist(), ways, strict=True)]
    yield _sample("HBM", rows, label, "timestampNs", rows.reals("bandwidth") / _MEBI, names)
    rows = database.rows("AICORE_FREQ", "timestampNs", "freq")
    yield _sample("AICORE_FREQ", rows, ["AI Core Freq [MHz]"] * len(rows), "timestampNs", rows.reals("freq"), names)


def _cache(database: Database, names: Names) -> Iterator[_Sample]:
    rows = database.rows("LLC", "llcId", "timestampNs", "hitRate", "throughput", "mode")
    ways = [f"LLC {number} {(text or '').capitalize()}" for number, text in
            zip(rows.integers("llcId").tolist(), names.text(rows.integers("mode")), strict=True)]  # fmt: skip
    yield _sample("LLC", rows, [f"{way}/Hit Rate [%]" for way in ways], "timestampNs", rows.reals("hitRate"), names)
    yield _sample("LLC", rows, [f"{way}/Throughput [MB/s]" for way in ways], "timestampNs", rows.reals("throughput") / _MEBI, names)


def _levels(database: Database, names: Names) -> Iterator[_Sample]:
    levels = (
        ("ACC_PMU", (("readBwLevel", "read_bandwidth [-]"), ("writeBwLevel", "write_band_width [-]"),
                     ("readOstLevel", "read_ost [-]"), ("writeOstLevel", "write_ost [-]"))),
        ("SOC_BANDWIDTH_LEVEL", (("l2BufferBwLevel", "L2 Buffer Bw Level [-]"), ("mataBwLevel", "Mata Bw Level [-]"))),
    )  # fmt: skip
    for table, columns in levels:
        rows = database.rows(table, "timestampNs", *(column for column, _ in columns))
        for column, label in columns:
            yield _sample(table, rows, [label] * len(rows), "timestampNs", rows.reals(column), names)


def _sampled(database: Database, names: Names) -> Iterator[_Sample]:
    rows = database.rows("SAMPLED_VALUES", "name", "timestampNs", "value")
    yield _sample("SAMPLED_VALUES", rows, names.text(rows.integers("name")), "timestampNs", rows.reals("value"), names)


def allocations(database: Database, names: Names) -> Table | None:
    """OP_MEMORY: blocks with the operator that asked for them."""
    rows = database.rows("OP_MEMORY", "name", "size", "allocationTime", "releaseTime")
    start, size = rows.integers("allocationTime"), rows.reals("size")
    own = np.flatnonzero((start >= 0) & np.isfinite(size))
    if not len(own):
        return None
    columns: dict[str, Array] = {
        "start_ns": start[own],
        "end_ns": np.maximum(rows.integers("releaseTime")[own], -1),
        "name": names.of(rows.integers("name"))[own],
        "bytes": size[own],
        **evidence(f"{database.label}#OP_MEMORY", np.clip(rows.ids[own], -1, 2**31 - 1), names.strings),
    }
    return made_table("allocations", columns, names.strings)


def marks(database: Database, names: Names) -> Table | None:
    """STEP_TIME and MSTX_EVENTS as ranges."""
    steps, events = database.rows("STEP_TIME", "id", "startNs", "endNs"), database.rows("MSTX_EVENTS", "startNs", "endNs", "message")
    parts: list[dict[str, Array]] = []
    for table, rows, label, domain in (
        ("STEP_TIME", steps, [f"ProfilerStep#{number}" for number in steps.integers("id").tolist()], "profiler_step"),
        ("MSTX_EVENTS", events, names.text(events.integers("message")), "mstx"),
    ):
        start, end = rows.integers("startNs"), rows.integers("endNs")
        own = np.flatnonzero((start >= 0) & (end >= start))
        if len(own):
            columns: dict[str, Array] = {
                "start_ns": start,
                "duration_ns": end - start,
                "name": names.strings.codes(label),
                "domain": names.strings.codes([domain] * len(rows)),
                **evidence(f"{database.label}#{table}", np.clip(rows.ids, -1, 2**31 - 1), names.strings),
            }
            parts.append({name: values[own] for name, values in columns.items()})
    if not parts:
        return None
    return made_table("marks", {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, names.strings)
