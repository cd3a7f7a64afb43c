"""The timeline of a session as ``trace_view.json``: host, communication planes, copies, counters and links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kb.profile.ascend.writing_values import microseconds
from kb.session.session import Session, Table

_PYTHON, _CANN, _HARDWARE, _HCCL, _COUNTERS = 1, 2, 3, 4, 5
_PROCESSES: Final = {_PYTHON: "Python", _CANN: "CANN", _HARDWARE: "Ascend Hardware", _HCCL: "HCCL", _COUNTERS: "Counters"}
_CATEGORIES: Final[Mapping[str, str]] = {"framework": "cpu_op", "python": "python_function", "loader": "dataloader", "gc": "gc"}
_CANN_PREFIX: Final[Mapping[str, str]] = {"acl": "AscendCL@", "node": "Node@", "runtime": "Runtime@"}
_DOMAINS: Final[Mapping[str, str]] = {"mstx": "mstx", "request": "request"}
_NO_RANK: Final = 4294967295
_COPY_TYPES: Final[Mapping[str, str]] = {"d2d": "SDMA_SQE", "memset": "SDMA_SQE"}


def trace_bytes(session: Session) -> bytes:
    """The events as a JSON list on one line. Every time keeps its ns."""
    return msgspec.json.encode(list(_events(session)))


def _events(session: Session) -> Iterator[dict[str, object]]:
    for pid, name in _PROCESSES.items():
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
    writers = (("host_ops", _host), ("marks", _marks), ("steps", _steps), ("kernels", _links), ("comm_ops", _operators),
               ("comm_tasks", _tasks),                ("copies", _copies), ("counters", _samples))  # fmt: skip
    for name, write in writers:
        table = session.table(name)
        if table is not None:
            yield from write(session, table)


def _span(
    name: str | None, pid: int, tid: int, start: int, duration: int, args: Mapping[str, object], cat: str | None = None
) -> dict[str, object]:
    event: dict[str, object] = {"ph": "X", "name": name or "", "pid": pid, "tid": tid, "ts": microseconds(start)}
    event |= {"dur": msgspec.Raw(microseconds(duration).encode()), "args": args}
    return event | ({"cat": cat} if cat else {})


def _host(session: Session, table: Table) -> Iterator[dict[str, object]]:
    for row, (start, duration) in enumerate(zip(table["start_ns"].tolist(), table["duration_ns"].tolist(), strict=True)):
        layer, name = session.text(int(table["layer"][row])) or "other", session.text(int(table["name"][row]))
        thread = int(table["thread"][row]) if "thread" in table else 0
        connection = int(table["connection_id"][row]) if "connection_id" in table else -1
        args: dict[str, object] = {"connection_id": connection} if connection >= 0 else {}
        for ours, theirs in (("input_shapes", "Input Dims"), ("stack", "Call stack")):
            text = session.text(int(table[ours][row])) if ours in table else None
            if text is not None:
                args[theirs] = text.replace(";", ";\r\n") if ours == "input_shapes" else text
        if layer in _CATEGORIES or layer == "other":
            yield _span(name, _PYTHON, thread, start, duration, args, _CATEGORIES.get(layer, "other"))
        else:
            yield _span(f"{_CANN_PREFIX.get(layer, '')}{name}", _CANN, thread, start, duration, {**args, "level": layer})


def _marks(session: Session, table: Table) -> Iterator[dict[str, object]]:
    host = session.table("host_ops")
    present = {(int(start), int(name)) for start, name in zip(host["start_ns"], host["name"], strict=True)} if host is not None else set()
    for row, (start, duration) in enumerate(zip(table["start_ns"].tolist(), table["duration_ns"].tolist(), strict=True)):
        if (start, int(table["name"][row])) not in present:
            domain = session.text(int(table["domain"][row])) if "domain" in table else None
            yield _span(
                session.text(int(table["name"][row])), _PYTHON, 0, start, duration, {}, _DOMAINS.get(domain or "", "user_annotation")
            )


def _steps(session: Session, table: Table) -> Iterator[dict[str, object]]:
    """Markers of the steps that no range of the session already marks."""
    marks = session.table("marks")
    present = {session.text(code) for code in set(marks["name"].tolist())} if marks is not None else set()
    for row in range(len(table)) if "start_ns" in table and "end_ns" in table else ():
        start, end, label = int(table["start_ns"][row]), int(table["end_ns"][row]), session.text(int(table["step_id"][row])) or ""
        name = f"ProfilerStep#{label}"
        if 0 <= start < end and label.isdigit() and name not in present:
            yield _span(name, _PYTHON, 0, start, end - start, {}, "user_annotation")


def _links(session: Session, table: Table) -> Iterator[dict[str, object]]:
    """Device tasks, for their connection ids and for other viewers; communication has its own process."""
    talking = session.code("COMMUNICATION")
    for row, (start, duration) in enumerate(zip(table["start_ns"].tolist(), table["duration_ns"].tolist(), strict=True)):
        if table["core"][row] != talking or talking < 0:
            connection = int(table["connection_id"][row]) if "connection_id" in table else -1
            stream = int(table["stream"][row]) if "stream" in table else 0
            args: dict[str, object] = {"Task Type": session.text(int(table["core"][row])) or "N/A", "Physic Stream Id": stream}
            args |= {"connection_id": connection} if connection >= 0 else {}
            yield _span(session.text(int(table["name"][row])), _HARDWARE, stream, start, duration, args)


def _operators(session: Session, table: Table) -> Iterator[dict[str, object]]:
    for name, tid in _threads(session).items():
        yield {"ph": "M", "name": "thread_name", "pid": _HCCL, "tid": tid, "args": {"name": f"Group {name} Communication"}}
    kernels = session.table("kernels")
    connections: dict[int, int] = {}
    if kernels is not None and "connection_id" in kernels:
        connections = dict(zip(kernels["start_ns"].tolist(), kernels["connection_id"].tolist(), strict=True))
    for row, (start, duration) in enumerate(zip(table["start_ns"].tolist(), table["duration_ns"].tolist(), strict=True)):
        if start >= 0:
            group = session.text(int(table["group"][row])) if "group" in table else ""
            args: dict[str, object] = {"alg_type": "N/A", "data_type": "N/A", "count": 0}
            args |= {"connection_id": connections[start]} if connections.get(start, -1) >= 0 else {}
            yield _span(session.text(int(table["name"][row])), _HCCL, _threads(session).get(group or "", 0), start, duration, args)


def _threads(session: Session) -> dict[str, int]:
    """The row of each group; its planes stand on the rows after it."""
    table = session.table("comm_ops")
    if table is None:
        return {"": 0}
    names = [session.text(code) or "" for code in sorted(set(table["group"].tolist()))] if "group" in table else [""]
    return {name: index * _PLANES for index, name in enumerate(names)}


_PLANES: Final = 1000
"""Rows reserved for the planes of one group."""


def _tasks(session: Session, table: Table) -> Iterator[dict[str, object]]:
    operators = session.table("comm_ops")
    groups: dict[int, str] = {}
    if operators is not None and "group" in operators:
        groups = {int(name): session.text(int(group)) or "" for name, group in zip(operators["name"], operators["group"], strict=True)}
    threads = _threads(session)
    named: set[int] = set()
    for row, (start, duration) in enumerate(zip(table["start_ns"].tolist(), table["duration_ns"].tolist(), strict=True)):
        plane = int(table["plane"][row])
        tid = threads.get(groups.get(int(table["op"][row]), ""), 0) + 1 + max(plane, 0)
        if tid not in named:
            named.add(tid)
            yield {"ph": "M", "name": "thread_name", "pid": _HCCL, "tid": tid, "args": {"name": f"Plane {max(plane, 0)}"}}
        kind = session.text(int(table["kind"][row]))
        args: dict[str, object] = {"task type": kind}
        for ours, theirs in (("src_rank", "src rank"), ("dst_rank", "dst rank")):
            if ours in table:
                args[theirs] = int(table[ours][row]) if table[ours][row] >= 0 else _NO_RANK
        transport = session.text(int(table["transport"][row])) if "transport" in table else None
        args |= {"transport type": transport} if transport else {}
        if "bytes" in table and table["bytes"][row] == table["bytes"][row]:
            args["size(Byte)"] = float(table["bytes"][row])
        yield _span(kind, _HCCL, tid, start, duration, args)


def _copies(session: Session, table: Table) -> Iterator[dict[str, object]]:
    for row, (start, duration) in enumerate(zip(table["start_ns"].tolist(), table["duration_ns"].tolist(), strict=True)):
        kind = session.text(int(table["kind"][row]))
        name = "MEMSET_ASYNC" if kind == "memset" else "MEMCPY_ASYNC"
        stream = int(table["stream"][row]) if "stream" in table else 0
        args: dict[str, object] = {"Task Type": _COPY_TYPES.get(kind or "", "PCIE_DMA_SQE"), "Physic Stream Id": stream, "direction": kind}
        if "bytes" in table and table["bytes"][row] == table["bytes"][row]:
            args["size(Byte)"] = float(table["bytes"][row])
        yield _span(name, _HARDWARE, stream, start, duration, args)


def _samples(session: Session, table: Table) -> Iterator[dict[str, object]]:
    for start, code, value in zip(table["start_ns"].tolist(), table["name"].tolist(), table["value"].tolist(), strict=True):
        name = session.text(code) or "value [-]"
        match = re.fullmatch(r"(.*) \[([^\[\]]*)\]", name)
        label, unit = (match[1], match[2]) if match else (name, "-")
        yield {"ph": "C", "name": label, "pid": _COUNTERS, "tid": 0, "ts": microseconds(start), "args": {f"value({unit})": value}}
