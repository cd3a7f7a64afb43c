"""One PyTorch profiler (Kineto) trace to one session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from kb.domain.text import Text
from kb.errors import UnusableCaptureError
from kb.profile.chrome import metadata as about
from kb.profile.chrome.collector import Args, Collector
from kb.profile.chrome.naming import rank_in_name, session_name
from kb.profile.chrome.rules import Categories, Kind, load_categories
from kb.profile.chrome.segmentation import StepRow, iterations, marked, repetitions
from kb.profile.chrome.source import pieces
from kb.profile.chrome.stream import Event, Trace
from kb.profile.chrome.tracks import partly_overlapping
from kb.session.builder import Strings
from kb.session.builder import session as made_session
from kb.session.builder import table as made_table
from kb.session.meta import Capture, Missing, SessionMeta, Violation
from kb.session.session import Array, Session, Table

FORMAT: Final = "kineto"
_Columns = Mapping[str, Array]
_NO_DEVICE: Final = Missing(
    what="kernels",
    why=Text("跟踪里没有设备事件：只采集了主机", "the trace holds no device events: only the host was captured"),
    capture=Text(
        "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]（或对应设备）",
        "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] (or the device's own activity)",
    ),
)
_NO_HOST: Final = Missing(
    what="host_ops",
    why=Text("跟踪里没有主机事件", "the trace holds no host events"),
    capture=Text("activities 中加入 ProfilerActivity.CPU", "add ProfilerActivity.CPU to activities"),
)
_NO_STEPS: Final = Missing(
    what="steps",
    why=Text("没有步标记，核函数也没有可靠的周期", "no step markers, and the kernels do not repeat reliably"),
    capture=Text("给出 schedule，并在每步后调用 prof.step()", "give a schedule and call prof.step() after every step"),
)


@dataclass(frozen=True, slots=True)
class _Parsed:
    columns: Mapping[Kind, _Columns]
    memory: _Columns
    strings: Strings
    categories: Categories
    label: str

    def of(self, kind: Kind) -> _Columns:
        """Columns of one kind; empty mapping when no event was of it."""
        return self.columns.get(kind, {})


def read_kineto(path: Path, label: str) -> Session:
    """The session of ``path``. Evidence rows are positions in the list of events, from 1. Raises MalformedInputError."""
    strings, categories = Strings(), load_categories()
    trace = Trace(pieces(path, label), label, Event[Args])
    collector = Collector(categories, strings)
    for batch in trace.batches():
        collector.add(batch)
    base = about.base_ns(trace.metadata)
    parsed = _Parsed(
        {kind: _shifted(columns.joined(), base) for kind, columns in collector.columns.items()},
        _shifted(collector.memory.joined(), base),
        strings,
        categories,
        label,
    )
    steps = _step_rows(parsed)
    tables = [table for table in _tables(parsed, steps) if len(table)]
    if not tables:
        raise UnusableCaptureError(f"{label}:1: a trace without a single usable event", do="capture again with activities=[CPU, CUDA]")
    meta = about.restored(_meta(path, trace, collector, parsed, tables), trace.metadata, label)
    return made_session(meta, tables, strings)


def _shifted(columns: _Columns, base: int) -> _Columns:
    return {**columns, "start_ns": columns["start_ns"] + base} if columns and base else columns


def _tables(parsed: _Parsed, steps: list[StepRow]) -> Iterator[Table]:
    if parsed.of("kernel"):
        kernels = _kernels(parsed)
        yield kernels
        yield from _comm_ops(kernels, parsed)
    if parsed.of("copy"):
        yield _copies(parsed)
    yield from _host_ops(parsed)
    yield from _marks(parsed)
    if parsed.memory:
        yield _table("counters", {name: parsed.memory[name] for name in ("start_ns", "name", "value")}, parsed.memory["row"], parsed)
    if steps:
        yield _steps(steps, parsed)


def _table(name: str, columns: Mapping[str, Array], rows: Array, parsed: _Parsed) -> Table:
    files = np.full(len(rows), parsed.strings.code(parsed.label), np.int32)
    return made_table(name, {**columns, "file": files, "row": rows}, parsed.strings)


def _kernels(parsed: _Parsed) -> Table:
    found = parsed.of("kernel")
    operators = _launching_operators(found, parsed)
    unknown = np.full(len(found["row"]), -1)
    columns = {name: found[name] for name in ("start_ns", "duration_ns", "name", "stream", "connection_id")}
    columns |= {"op_type": unknown, "core": _cores(found["name"], parsed), **operators}
    columns["stream"] = np.where(columns["stream"] < 2**31, columns["stream"], -1)
    return _table("kernels", columns, found["row"], parsed)


def _cores(names: Array, parsed: _Parsed) -> Array:
    """COMMUNICATION where the kernel's name says so; a GPU has no engines to tell apart."""
    talking = [
        code for code, text in enumerate(parsed.strings.frozen()) if any(part in text.lower() for part in parsed.categories.communication)
    ]
    return (
        np.where(np.isin(names, talking), parsed.strings.code("COMMUNICATION"), -1)
        if np.isin(names, talking).any()
        else np.full(len(names), -1)
    )


def _launching_operators(kernels: _Columns, parsed: _Parsed) -> dict[str, Array]:
    """The framework operator behind each kernel, by external id: the kernel's own, else its launch's."""
    operators, runtime = parsed.of("operator"), parsed.of("runtime")
    if not operators:
        return {}
    external = kernels["external"]
    if runtime:
        launched = _looked_up(kernels["connection_id"], runtime["connection_id"], runtime["external"])
        external = np.where(external >= 0, external, launched)
    place = _looked_up(external, operators["external"], np.arange(len(operators["external"])))
    return {
        name: np.where(place >= 0, operators[column][place], -1)
        for name, column in (("operator", "name"), ("input_shapes", "input_shapes"))
    }


def _looked_up(wanted: Array, keys: Array, values: Array) -> Array:
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.where((wanted >= 0) & (ordered[place] == wanted), values[order[place]], -1)


def _comm_ops(kernels: Table, parsed: _Parsed) -> Iterator[Table]:
    own = kernels.where(kernels["core"] == parsed.strings.code("COMMUNICATION"))
    if not len(own):
        return
    known = parsed.strings.frozen()
    kinds = {
        code: "p2p" if any(part in known[code].lower() for part in parsed.categories.point_to_point) else "collective"
        for code in np.unique(own["name"]).tolist()
    }
    columns = {name: own[name] for name in ("start_ns", "duration_ns", "name")}
    columns["kind"] = parsed.strings.codes([kinds[code] for code in own["name"].tolist()])
    yield _table("comm_ops", columns, own["row"], parsed)


def _copies(parsed: _Parsed) -> Table:
    found = parsed.of("copy")
    known = parsed.strings.frozen()
    kinds = {code: _copy_kind(known[code]) for code in np.unique(found["name"]).tolist()}
    columns = {name: found[name] for name in ("start_ns", "duration_ns", "bytes")}
    columns["kind"] = parsed.strings.codes([kinds[code] for code in found["name"].tolist()])
    columns["stream"] = np.where(found["stream"] < 2**31, found["stream"], -1)
    return _table("copies", columns, found["row"], parsed)


def _copy_kind(name: str) -> str:
    lowered = name.lower()
    if "memset" in lowered:
        return "memset"
    return next((kind for kind, part in (("h2d", "htod"), ("d2h", "dtoh")) if part in lowered), "d2d")


def _host_ops(parsed: _Parsed) -> Iterator[Table]:
    parts: list[dict[str, Array]] = []
    layers: tuple[tuple[Kind, str], ...] = (("operator", "framework"), ("python", "python"), ("runtime", "runtime"), ("overhead", "other"))
    for kind, layer in layers:
        found = parsed.of(kind)
        if found:
            parts.append(_host_part(found, layer, parsed))
    annotations = parsed.of("annotation")
    if annotations:
        loading = _starting(annotations["name"], parsed.categories.loader, parsed)
        if loading.any():
            parts.append(_host_part({name: values[loading] for name, values in annotations.items()}, "loader", parsed))
    if parts:
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        yield _table("host_ops", {name: values for name, values in columns.items() if name != "row"}, columns["row"], parsed)


def _host_part(found: _Columns, layer: str, parsed: _Parsed) -> dict[str, Array]:
    rows = len(found["row"])
    nothing = np.full(rows, -1)
    layers = np.full(rows, parsed.strings.code(layer))
    layers[_starting(found["name"], parsed.categories.loader, parsed)] = parsed.strings.code("loader")
    columns = {name: found[name] for name in ("start_ns", "duration_ns", "name", "thread", "row")}
    return {**columns, "layer": layers, **{name: found.get(name, nothing) for name in ("connection_id", "input_shapes", "stack")}}


def _starting(names: Array, starts: tuple[str, ...], parsed: _Parsed) -> Array:
    return np.isin(names, [code for code, text in enumerate(parsed.strings.frozen()) if text.startswith(starts)])


def _marks(parsed: _Parsed) -> Iterator[Table]:
    for kind in ("annotation",):
        found = parsed.of("annotation")
        if found and kind:
            steps = _starting(found["name"], ("ProfilerStep",), parsed)
            domains = np.where(steps, parsed.strings.code("profiler_step"), parsed.strings.code("scope"))
            columns = {name: found[name] for name in ("start_ns", "duration_ns", "name")}
            yield _table("marks", {**columns, "domain": domains}, found["row"], parsed)


def _step_rows(parsed: _Parsed) -> list[StepRow]:
    names = parsed.strings.frozen()
    kernels, runtime = parsed.of("kernel"), parsed.of("runtime")
    for kind in ("annotation", "operator"):
        found = parsed.of("annotation" if kind == "annotation" else "operator")
        steps = marked(names, found, parsed.categories) if found else []
        if steps:
            return steps
    if not kernels:
        return []
    ends = kernels["start_ns"] + kernels["duration_ns"]
    annotations = parsed.of("annotation")
    if annotations and runtime:
        launches = runtime["start_ns"], runtime["connection_id"]
        steps = iterations(names, annotations, launches, (kernels["start_ns"], ends, kernels["connection_id"]), parsed.categories)
        if steps:
            return steps
    order = np.argsort(kernels["start_ns"], kind="stable")
    return repetitions(kernels["name"][order], kernels["start_ns"][order], ends[order])


def _steps(rows: list[StepRow], parsed: _Parsed) -> Table:
    columns = {
        "step_id": parsed.strings.codes([row.label for row in rows]),
        "start_ns": np.array([row.start_ns for row in rows]),
        "end_ns": np.array([row.end_ns for row in rows]),
        "kind": parsed.strings.codes([row.kind for row in rows]),
        "warmup": np.zeros(len(rows)),
    }
    return _table("steps", columns, np.array([row.number for row in rows]), parsed)


def _meta(path: Path, trace: Trace[Event[Args]], collector: Collector, parsed: _Parsed, tables: list[Table]) -> SessionMeta:
    info = about.distributed(trace.metadata)
    have = {table.name for table in tables}
    missing = [gap for gap in (_NO_DEVICE, _NO_HOST, _NO_STEPS) if gap.what not in have]
    rank = info.rank if info.rank is not None else rank_in_name(path.name)
    return SessionMeta(
        name=session_name(path),
        origin="measured",
        capture=Capture(format=FORMAT, files=(parsed.label,), dropped_rows=collector.dropped),
        rank=rank,
        world_size=info.world_size,
        device=_device(parsed),
        parallel=about.parallel(info),
        soc=about.soc(trace.metadata),
        software=about.software(trace.metadata),
        environment=about.environment(trace.metadata),
        missing=tuple(missing),
        violations=tuple(_violations(trace, parsed)),
    )


def _device(parsed: _Parsed) -> int | None:
    devices = np.unique(parsed.of("kernel").get("device", np.empty(0, np.int64)))
    return int(devices[0]) if len(devices) == 1 and devices[0] >= 0 else None


def _violations(trace: Trace[Event[Args]], parsed: _Parsed) -> Iterator[Violation]:
    if trace.cut:
        yield Violation(oracle="the list of events is closed", detail=f"{parsed.label}: the trace ends inside its events", difference_ns=0)
    kernels = parsed.of("kernel")
    if kernels:
        track = kernels["device"] * (1 << 20) + kernels["stream"]
        count = partly_overlapping(kernels["start_ns"], kernels["duration_ns"], track)
        if count:
            detail = f"{parsed.label}: {count} of {len(track)} device tasks begin inside an earlier one of their stream and end after it"
            yield Violation(oracle="tasks of one stream do not overlap partly", detail=detail, difference_ns=0)
        devices = np.unique(kernels["device"])
        if len(devices) > 1:
            detail = f"{parsed.label}: {len(devices)} devices in one trace; times of all are united"
            yield Violation(oracle="one trace holds one device", detail=detail, difference_ns=0)


def matches(head: bytes) -> bool:
    """Whether the first bytes are those of a Kineto (or plain Chrome) trace."""
    return bool(re.search(rb'"(traceEvents|schemaVersion|deviceProperties)"\s*:|^\s*\[\s*\{[^{}]*"ph"', head))
