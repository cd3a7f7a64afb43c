"""Device tasks of a profiler database: kernels, communication operators and planes, copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from kb.profile.ascend.database import Database, Rows
from kb.profile.ascend.db_names import Names, enumeration
from kb.profile.ascend.part import evidence
from kb.profile.ascend.trace_view import communication_kind
from kb.session.builder import table as made_table
from kb.session.session import Array, Table

_NO_RANK: Final = 4294967295
_LARGEST_ID: Final = 2**31 - 1
_METRICS: Final[Mapping[str, str]] = {
    "aic_total_time": "aicore_time_ns", "aicore_time": "aicore_time_ns", "aiv_total_time": "aiv_time_ns", "aiv_time": "aiv_time_ns",
    "cube_utilization": "cube_utilization",
    **{name: name for name in (
        "aic_total_cycles", "aic_mac_ratio", "aic_scalar_ratio", "aic_mte1_ratio", "aic_mte2_ratio", "aic_fixpipe_ratio",
        "aic_icache_miss_rate", "aiv_total_cycles", "aiv_vec_ratio", "aiv_scalar_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio",
        "aiv_icache_miss_rate", "l2_hit_ratio", "hbm_read_bytes", "hbm_write_bytes",
    )},
}  # fmt: skip
_PERCENT: Final[Mapping[str, int]] = {"cube_utilization": 100}
_COPY_OPERATIONS: Final = (
    ("host to device", "h2d"),
    ("device to host", "d2h"),
    ("device to device", "d2d"),
    ("h2d", "h2d"),
    ("d2h", "d2h"),
    ("d2d", "d2d"),
)


@dataclass(frozen=True, slots=True)
class Tasks:
    """TASK by global id (ascending); times in ns."""

    ids: Array
    start: Array
    duration: Array
    columns: Mapping[str, Array]

    def place(self, wanted: Array) -> Array:
        """Positions of the tasks with these global ids; -1 where there is none."""
        if not len(self.ids):
            return np.full(len(wanted), -1)
        place = np.minimum(np.searchsorted(self.ids, wanted), len(self.ids) - 1)
        return np.where((wanted >= 0) & (self.ids[place] == wanted), place, -1)


def read_tasks(database: Database) -> tuple[Tasks, int]:
    """TASK, and how many rows of it have no sound times."""
    rows = database.rows("TASK", "startNs", "endNs", "connectionId", "globalTaskId", "taskType", "streamId", "taskId", "deviceId")
    start, end, ids = rows.integers("startNs"), rows.integers("endNs"), rows.integers("globalTaskId")
    sound = (start >= 0) & (end >= start)
    order = np.flatnonzero(sound)[np.argsort(ids[sound], kind="stable")]
    names = ("connectionId", "taskType", "streamId", "taskId", "deviceId")
    columns = {name: rows.integers(name)[order] for name in names} | {"row": rows.ids[order]}
    return Tasks(ids[order], start[order], (end - start)[order], columns), int((~sound).sum())


def kernels(database: Database, tasks: Tasks, names: Names) -> Table | None:
    """COMPUTE_TASK_INFO joined with TASK and TASK_PMU_INFO, and the communication operators as their own rows.

    The wait before a task is what the text export prints: its start less the end of the row before it.
    """
    info = database.rows(
        "COMPUTE_TASK_INFO", "globalTaskId", "name", "opType", "taskType", "opState", "blockNum", "blockDim", "mixBlockNum", "mixBlockDim",
        "inputShapes", "inputDataTypes", "inputFormats", "outputShapes", "outputDataTypes", "outputFormats",
    )  # fmt: skip
    parts = [part for part in (_compute(database, info, tasks, names), _communication(database, names)) if part is not None]
    if not parts:
        return None
    columns = {name: np.concatenate([_column(part, name) for part in parts]) for name in parts[0]}
    order = np.argsort(columns["start_ns"], kind="stable")
    columns = {name: values[order] for name, values in columns.items()}
    ends = columns["start_ns"] + columns["duration_ns"]
    columns["wait_ns"] = np.concatenate([[0], np.maximum(columns["start_ns"][1:] - ends[:-1], 0)])
    return made_table("kernels", columns, names.strings)


def _column(part: Mapping[str, Array], name: str) -> Array:
    rows = len(part["start_ns"])
    return part[name] if name in part else np.full(rows, np.nan if name in _METRICS.values() else -1)


def _compute(database: Database, info: Rows, tasks: Tasks, names: Names) -> dict[str, Array] | None:
    place = tasks.place(info.integers("globalTaskId"))
    own = np.flatnonzero(place >= 0)
    if not len(own):
        return None
    task = place[own]

    def text(column: str) -> Array:
        return names.of(info.integers(column))[own]

    def first(*columns: str) -> Array:
        found = next((column for column in columns if column in info), columns[0])
        return _small(info.integers(found)[own])

    columns: dict[str, Array] = {
        "start_ns": tasks.start[task],
        "duration_ns": tasks.duration[task],
        "name": text("name"),
        "op_type": text("opType"),
        "core": text("taskType"),
        "stream": _small(tasks.columns["streamId"][task]),
        "task_id": tasks.columns["taskId"][task],
        "connection_id": tasks.columns["connectionId"][task],
        "block": first("blockNum", "blockDim"),
        "mix_block": first("mixBlockNum", "mixBlockDim"),
        **{ours: _layouts(text(theirs), names) if ours.endswith("formats") else text(theirs) for ours, theirs in _TEXTS.items()},
        **evidence(f"{database.label}#COMPUTE_TASK_INFO", _small(info.ids[own]), names.strings),
    }
    if "opState" in info:
        columns["op_state"] = text("opState")
    return columns | _metrics(database, info.integers("globalTaskId")[own], names)


_TEXTS: Final[Mapping[str, str]] = {
    "input_shapes": "inputShapes", "input_dtypes": "inputDataTypes", "input_formats": "inputFormats", "output_shapes": "outputShapes",
    "output_dtypes": "outputDataTypes", "output_formats": "outputFormats",
}  # fmt: skip


def _layouts(codes: Array, names: Names) -> Array:
    """Formats in the new spelling, as the text reader gives them: ND instead of FORMAT_ND."""
    known = names.strings.frozen()
    plain = {code: names.strings.code(known[code].replace("FORMAT_", "")) for code in np.unique(codes[codes >= 0]).tolist()}
    return np.array([plain.get(code, -1) for code in codes.tolist()], np.int32)


def _metrics(database: Database, ids: Array, names: Names) -> dict[str, Array]:
    rows = database.rows("TASK_PMU_INFO", "globalTaskId", "name", "value")
    if not len(rows):
        return {}
    order = np.argsort(ids, kind="stable")
    task, values = rows.integers("globalTaskId"), rows.reals("value")
    place = np.minimum(np.searchsorted(ids[order], task), len(ids) - 1)
    known = ids[order][place] == task
    labels = names.of(rows.integers("name"))
    texts = names.strings.frozen()
    found: dict[str, Array] = {}
    for code in np.unique(labels[labels >= 0]).tolist():
        column = _METRICS.get(texts[code])
        if column is not None:
            own = known & (labels == code)
            found[column] = np.full(len(ids), np.nan)
            # The text export prints these times to the nanosecond.
            found[column][order[place[own]]] = np.rint(values[own]) if column.endswith("_ns") else values[own] / _PERCENT.get(column, 1)
    return found


def _communication(database: Database, names: Names) -> dict[str, Array] | None:
    rows = database.rows("COMMUNICATION_OP", "opName", "opType", "startNs", "endNs", "connectionId")
    start, end = rows.integers("startNs"), rows.integers("endNs")
    own = np.flatnonzero((start >= 0) & (end >= start))
    if not len(own):
        return None
    return {
        "start_ns": start[own],
        "duration_ns": (end - start)[own],
        "name": names.of(rows.integers("opName"))[own],
        "op_type": names.of(rows.integers("opType"))[own],
        "core": np.full(len(own), names.strings.code("COMMUNICATION")),
        "connection_id": rows.integers("connectionId")[own],
        **evidence(f"{database.label}#COMMUNICATION_OP", _small(rows.ids[own]), names.strings),
    }


def comm_tasks(database: Database, tasks: Tasks, names: Names) -> Table | None:
    """COMMUNICATION_TASK_INFO joined with TASK, the operator by its id."""
    rows = database.rows(
        "COMMUNICATION_TASK_INFO", "globalTaskId", "name", "taskType", "planeId", "srcRank", "dstRank", "transportType", "size", "opId"
    )
    place = tasks.place(rows.integers("globalTaskId"))
    own = np.flatnonzero(place >= 0)
    if not len(own):
        return None
    transports = enumeration(database, "ENUM_HCCL_TRANSPORT_TYPE")
    transport = [transports.get(number) for number in rows.integers("transportType")[own].tolist()]
    columns: dict[str, Array] = {
        "start_ns": tasks.start[place[own]],
        "duration_ns": tasks.duration[place[own]],
        "op": _operators(database, rows, names)[own],
        "kind": names.of(rows.integers("taskType"))[own],
        "plane": _small(rows.integers("planeId")[own]),
        "src_rank": _rank(rows.integers("srcRank")[own]),
        "dst_rank": _rank(rows.integers("dstRank")[own]),
        "transport": names.strings.codes(transport),
        "bytes": rows.reals("size")[own],
        **evidence(f"{database.label}#COMMUNICATION_TASK_INFO", _small(rows.ids[own]), names.strings),
    }
    return made_table("comm_tasks", columns, names.strings)


def _operators(database: Database, rows: Rows, names: Names) -> Array:
    operators = database.rows("COMMUNICATION_OP", "opId", "opName")
    codes = dict(zip(operators.integers("opId").tolist(), names.of(operators.integers("opName")).tolist(), strict=True))
    own = names.of(rows.integers("name")).tolist()
    return np.array([codes.get(number, name) for number, name in zip(rows.integers("opId").tolist(), own, strict=True)], np.int32)


def copies(database: Database, tasks: Tasks, names: Names) -> Table | None:
    """Tasks named as memory copies or fills, with size and direction where MEMCPY_INFO gives them."""
    known = names.strings.frozen()
    labels = names.of(tasks.columns["taskType"])
    kinds = {code: known[code].upper() for code in np.unique(labels[labels >= 0]).tolist()}
    wanted = [code for code, text in kinds.items() if text.startswith(("MEMCPY", "MEMSET"))]
    # Memory tasks of a communication plane carry a like name and are no copies of the program.
    planes = database.rows("COMMUNICATION_TASK_INFO", "globalTaskId").integers("globalTaskId")
    own = np.flatnonzero(np.isin(labels, wanted) & ~np.isin(tasks.ids, planes))
    if not len(own):
        return None
    info = database.rows("MEMCPY_INFO", "globalTaskId", "size", "memcpyOperation")
    operations = enumeration(database, "ENUM_MEMCPY_OPERATION")
    stated = dict(
        zip(
            info.integers("globalTaskId").tolist(),
            zip(info.reals("size").tolist(), info.integers("memcpyOperation").tolist(), strict=True),
            strict=True,
        )
    )
    found = [stated.get(number, (np.nan, -1)) for number in tasks.ids[own].tolist()]
    directions = ["memset" if kinds[code].startswith("MEMSET") else _direction(operations.get(operation, ""))
                  for code, (_, operation) in zip(labels[own].tolist(), found, strict=True)]  # fmt: skip
    columns: dict[str, Array] = {
        "start_ns": tasks.start[own],
        "duration_ns": tasks.duration[own],
        "kind": names.strings.codes(directions),
        "bytes": np.array([size for size, _ in found], np.float64),
        "stream": _small(tasks.columns["streamId"][own]),
        **evidence(f"{database.label}#TASK", _small(tasks.columns["row"][own]), names.strings),
    }
    return made_table("copies", columns, names.strings)


def comm_ops(database: Database, names: Names) -> Iterator[Table]:
    """COMMUNICATION_OP as operators without the split the analysis tables give."""
    rows = database.rows("COMMUNICATION_OP", "opName", "startNs", "endNs", "groupName")
    start, end = rows.integers("startNs"), rows.integers("endNs")
    own = np.flatnonzero((start >= 0) & (end >= start))
    if len(own):
        texts = names.text(rows.integers("opName")[own])
        columns: dict[str, Array] = {
            "start_ns": start[own],
            "duration_ns": (end - start)[own],
            "name": names.of(rows.integers("opName"))[own],
            "kind": names.strings.codes([communication_kind(text or "") for text in texts]),
            "group": names.of(rows.integers("groupName"))[own],
            **evidence(f"{database.label}#COMMUNICATION_OP", _small(rows.ids[own]), names.strings),
        }
        yield made_table("comm_ops", columns, names.strings)


def _direction(operation: str) -> str | None:
    lowered = operation.casefold().replace("_", " ")
    return next((kind for part, kind in _COPY_OPERATIONS if part in lowered), None)


def _small(values: Array) -> Array:
    return np.where((values >= 0) & (values <= _LARGEST_ID), values, -1).astype(np.int32)


def _rank(values: Array) -> Array:
    return np.where((values < 0) | (values >= _NO_RANK), -1, values).astype(np.int32)
