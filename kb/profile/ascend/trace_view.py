"""An Ascend timeline as tables: host events, communication planes, counters, copies, and what links tasks to the host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from kb.profile.ascend.part import Part, evidence
from kb.profile.ascend.trace_events import Timeline
from kb.profile.chrome.source import pieces
from kb.profile.chrome.stream import RawEvent, Trace
from kb.session.builder import Strings
from kb.session.builder import table as made_table
from kb.session.meta import Violation
from kb.session.session import Array, Table

FILE: Final = "trace_view.json"
_CORES: Final = (
    "AI_CORE",
    "AI_VECTOR_CORE",
    "MIX_AIC",
    "MIX_AIV",
    "AI_CPU",
    "AICPU",
    "DSA_SQE",
    "KERNEL_AICORE",
    "KERNEL_AIVEC",
    "KERNEL_AICPU",
)
_CORE_NAMES: Final[Mapping[str, str]] = {
    "KERNEL_AICORE": "AI_CORE", "KERNEL_AIVEC": "AI_VECTOR_CORE", "KERNEL_AICPU": "AI_CPU", "AICPU": "AI_CPU",
}  # fmt: skip
_COPIES: Final[Mapping[str, str | None]] = {"MEMCPY_ASYNC": None, "MEMSET_ASYNC": "memset"}
_SDMA: Final = "SDMA"
_STEP: Final = re.compile(r"ProfilerStep\s*#\s*(\d+)")
_RANGE: Final = ("ProfilerStep", "enumerate(DataLoader)")
_Columns = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class TraceFile:
    """``links`` are starts (ns, ascending) and connection ids of device tasks, ``named`` the ids of communication operators by
    name; ``steps`` marker spans by step name with their row."""

    part: Part
    tables: tuple[Table, ...]
    links: tuple[Array, Array]
    named: Mapping[int, int]
    steps: Mapping[str, tuple[int, int, int]]
    processes: frozenset[str]


def read_trace(path: Path, label: str, strings: Strings) -> TraceFile:
    """Everything of ``path`` that becomes a table. Rows are positions in the list of events, from 1. Raises MalformedInputError."""
    trace = Trace(pieces(path, label), label, RawEvent)
    timeline = Timeline(strings)
    for batch in trace.batches():
        timeline.add(batch)
    found = {kind: columns.joined() for kind, columns in timeline.columns.items()}
    cut = Violation(oracle="the list of events is closed", detail=f"{label}: the trace ends inside its events", difference_ns=0)
    hardware, operators = found.get("hardware", {}), found.get("operator", {})
    tables = (
        *_kernels(hardware, operators, label, strings),
        *_comm_ops(operators, label, strings),
        *_comm_tasks(found.get("task", {}), operators, timeline, label, strings),
        *_host_ops([found[kind] for kind in ("host", "cann") if kind in found], label, strings),
        *_counters(timeline.counters.joined(), label, strings),
        *_copies(hardware, label, strings),
        *_marks(found.get("host", {}), found.get("mark", {}), label, strings),
    )
    part = Part(label, None, None, timeline.dropped, (cut,) if trace.cut else ())
    return TraceFile(
        part,
        tables,
        _links(hardware, operators, strings),
        _named(operators),
        {name: span for kind in ("host", "mark") for name, span in _steps(found.get(kind, {}), strings).items()},
        frozenset(timeline.processes.values()),
    )


def linked(kernels: Table, trace: TraceFile) -> Table:
    """``kernels`` with the connection id of the device task that starts at the same nanosecond, or, since communication files
    round their starts, of the operator of the same name; -1 where there is none."""
    starts, connections = trace.links
    if not len(starts):
        return kernels
    place = np.minimum(np.searchsorted(starts, kernels["start_ns"]), len(starts) - 1)
    named = np.array([trace.named.get(name, -1) for name in kernels["name"].tolist()], np.int64)
    found = np.where(starts[place] == kernels["start_ns"], connections[place], named)
    return Table(kernels.name, {**kernels.columns, "connection_id": found.astype("<i8")})


def _links(hardware: _Columns, operators: _Columns, strings: Strings) -> tuple[Array, Array]:
    # Events and copies may begin at the same nanosecond as a kernel of another stream: they are no kernels.
    engines = np.isin(hardware["core"], [strings.code(name) for name in _CORES]) if hardware else None
    tasks = {name: hardware[name][engines] for name in ("start_ns", "connection_id")} if engines is not None else {}
    parts = [part for part in (tasks, operators) if part]
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    starts, connections = (np.concatenate([part[name] for part in parts]) for name in ("start_ns", "connection_id"))
    order = np.argsort(starts, kind="stable")
    return starts[order], connections[order]


def _named(operators: _Columns) -> dict[int, int]:
    if not operators:
        return {}
    names, counts = np.unique(operators["name"], return_counts=True)
    single = set(names[counts == 1].tolist())
    pairs = zip(operators["name"].tolist(), operators["connection_id"].tolist(), strict=True)
    return {name: connection for name, connection in pairs if name in single}


def _table(name: str, columns: Mapping[str, Array], rows: Array, label: str, strings: Strings) -> Table:
    return made_table(name, {**columns, **evidence(label, rows, strings)}, strings)


def _kernels(hardware: _Columns, operators: _Columns, label: str, strings: Strings) -> Iterator[Table]:
    """Tasks of the compute engines and communication operators, for captures without a kernel table."""
    known = {name: strings.code(name) for name in _CORES}
    parts: list[dict[str, Array]] = []
    if hardware:
        own = np.isin(hardware["core"], list(known.values()))
        chosen = {name: values[own] for name, values in hardware.items() if name not in ("place", "direction", "bytes")}
        for name, plain in _CORE_NAMES.items():
            chosen["core"] = np.where(chosen["core"] == known[name], strings.code(plain), chosen["core"])
        parts.append(chosen)
    if operators:
        nothing = np.full(len(operators["row"]), -1)
        talking = np.full(len(nothing), strings.code("COMMUNICATION"))
        kept = {name: operators[name] for name in ("start_ns", "duration_ns", "name", "row", "connection_id")}
        parts.append({**kept, "core": talking, "stream": nothing, "task_id": nothing})
    if not parts or not sum(len(part["row"]) for part in parts):
        return
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    rows = columns.pop("row")
    yield _table("kernels", {**columns, "op_type": np.full(len(rows), -1)}, rows, label, strings)


def _comm_ops(operators: _Columns, label: str, strings: Strings) -> Iterator[Table]:
    if operators:
        names = strings.frozen()
        kinds = [communication_kind(names[code]) if code >= 0 else "collective" for code in operators["name"].tolist()]
        columns = {name: operators[name] for name in ("start_ns", "duration_ns", "name")}
        yield _table("comm_ops", {**columns, "kind": strings.codes(kinds)}, operators["row"], label, strings)


def communication_kind(name: str) -> str:
    """``p2p`` for sends and receives, else ``collective``, by the operator's name."""
    lowered = name.lower()
    return "p2p" if any(part in lowered for part in ("send", "receive", "recv")) else "collective"


def _comm_tasks(tasks: _Columns, operators: _Columns, timeline: Timeline, label: str, strings: Strings) -> Iterator[Table]:
    if not tasks:
        return
    group, plane = _planes(timeline)
    planes = np.array([plane[place] for place in tasks["place"].tolist()])
    groups = np.array([group[place] for place in tasks["place"].tolist()])
    columns = {name: tasks[name] for name in ("start_ns", "duration_ns", "src_rank", "dst_rank", "transport", "bytes")}
    columns |= {"kind": tasks["name"], "plane": planes, "op": _operators_of(tasks["start_ns"], groups, operators, group)}
    yield _table("comm_tasks", columns, tasks["row"], label, strings)


def _planes(timeline: Timeline) -> tuple[dict[int, int], dict[int, int]]:
    """Group and plane of each thread. Threads of one process follow one another: a group's own row, then its planes."""
    group: dict[int, int] = {}
    plane: dict[int, int] = {}
    current = -1
    for pid, tid in sorted(timeline.places.keys() | timeline.threads.keys(), key=_by_thread):
        name = timeline.threads.get((pid, tid), "")
        number = re.search(r"Plane\s*(\d{1,6})", name, re.ASCII)
        if name and number is None:
            current += 1
        place = timeline.places.get((pid, tid))
        if place is not None:
            group[place] = current
            plane[place] = int(number[1]) if number else tid if isinstance(tid, int) and 0 <= tid < 2**31 else -1
    return group, plane


def _by_thread(key: tuple[object, object]) -> tuple[str, bool, int, str]:
    pid, tid = key
    return str(pid), not isinstance(tid, int), tid if isinstance(tid, int) else 0, str(tid)


def _operators_of(starts: Array, groups: Array, operators: _Columns, group_of: Mapping[int, int]) -> Array:
    """The operator each task belongs to: the last of its group that began no later; -1 where none did."""
    found = np.full(len(starts), -1)
    if not operators:
        return found
    owners = np.array([group_of[place] for place in operators["place"].tolist()])
    for group in np.unique(groups).tolist():
        own = np.flatnonzero(owners == group)
        own = own[np.argsort(operators["start_ns"][own], kind="stable")]
        mine = np.flatnonzero(groups == group)
        place = np.searchsorted(operators["start_ns"][own], starts[mine], side="right") - 1
        inside = place >= 0
        found[mine[inside]] = operators["name"][own[place[inside]]]
    return found


def _host_ops(parts: list[dict[str, Array]], label: str, strings: Strings) -> Iterator[Table]:
    if parts:
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        rows = columns.pop("row")
        del columns["place"]
        yield _table("host_ops", columns, rows, label, strings)


def _counters(found: _Columns, label: str, strings: Strings) -> Iterator[Table]:
    if found:
        yield _table("counters", {name: found[name] for name in ("start_ns", "name", "value")}, found["row"], label, strings)


def _copies(hardware: _Columns, label: str, strings: Strings) -> Iterator[Table]:
    if not hardware:
        return
    codes = {strings.code(name): kind for name, kind in _COPIES.items()}
    own = np.isin(hardware["name"], list(codes))
    if not own.any():
        return
    known = strings.frozen()
    kinds = [
        codes[name] or (known[way] if way >= 0 else "d2d" if core >= 0 and known[core].startswith(_SDMA) else None)
        for name, core, way in zip(*(hardware[column][own].tolist() for column in ("name", "core", "direction")), strict=True)
    ]
    columns = {name: hardware[name][own] for name in ("start_ns", "duration_ns", "stream", "bytes")}
    columns["stream"] = np.where(columns["stream"] < 2**31, columns["stream"], -1)
    yield _table("copies", {**columns, "kind": strings.codes(kinds)}, hardware["row"][own], label, strings)


def _marks(host: _Columns, marks: _Columns, label: str, strings: Strings) -> Iterator[Table]:
    names = strings.frozen()
    steps = [code for code, text in enumerate(names) if _STEP.match(text)]
    parts: list[dict[str, Array]] = []
    if host:
        own = np.isin(host["name"], steps)
        parts.append({name: host[name][own] for name in ("start_ns", "duration_ns", "name", "row")})
        parts[0]["domain"] = np.full(int(own.sum()), strings.code("profiler_step"))
    if marks:
        parts.append({name: marks[name] for name in ("start_ns", "duration_ns", "name", "row", "domain")})
    if parts:
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        columns["domain"] = np.where(np.isin(columns["name"], steps), strings.code("profiler_step"), columns["domain"])
        if not len(columns["row"]):
            return
        rows = columns.pop("row")
        yield _table("marks", columns, rows, label, strings)


def _steps(host: _Columns, strings: Strings) -> dict[str, tuple[int, int, int]]:
    found: dict[str, tuple[int, int, int]] = {}
    for code, text in enumerate(strings.frozen()) if host else ():
        match = _STEP.match(text)
        for index in np.flatnonzero(host["name"] == code).tolist() if match else ():
            if match:
                start = int(host["start_ns"][index])
                found[match[1]] = start, start + int(host["duration_ns"][index]), int(host["row"][index])
    return found
