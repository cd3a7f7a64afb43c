"""One ONNX Runtime profile to one session: nodes as tasks of their execution provider, ``model_run`` as steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from kb.domain.soc import SocRef
from kb.domain.text import Text
from kb.errors import UnusableCaptureError
from kb.profile.chrome.collector import Columns
from kb.profile.chrome.naming import session_name
from kb.profile.chrome.numbers import NONE, integers
from kb.profile.chrome.source import pieces
from kb.profile.chrome.stream import Batch, Event, Trace
from kb.session.builder import Strings
from kb.session.builder import session as made_session
from kb.session.builder import table as made_table
from kb.session.meta import Capture, Missing, Model, SessionMeta, Violation
from kb.session.session import Array, Session, Table

FORMAT: Final = "onnxruntime"
_RUN: Final = "model_run"
_NODE_TIME: Final = "_kernel_time"
_MICROSECONDS: Final = 3
_LARGEST: Final = 2**62
_CPU: Final = "CPUExecutionProvider"
_MARKERS: Final = (b'"model_loading', b'"session_initialization"', b"_kernel_time", b'"SequentialExecutor')
_NO_NODES: Final = Missing(
    what="kernels",
    why=Text("没有节点时间", "no node times"),
    capture=Text("会话选项 enable_profiling=True，并至少运行一次", "session option enable_profiling=True, and at least one run"),
)
_Typed = dict[str, tuple[int, ...]]


class Args(msgspec.Struct, gc=False):
    """What we take from ``args``."""

    op_name: str | None = None
    provider: str | None = None
    input_type_shape: list[_Typed] = []
    output_type_shape: list[_Typed] = []


@dataclass
class _Collector:
    strings: Strings
    nodes: Columns = field(default_factory=Columns)
    sessions: Columns = field(default_factory=Columns)
    kernels: Columns = field(default_factory=Columns)
    dropped: int = 0

    def add(self, batch: Batch[Event[Args]]) -> None:
        self.dropped += batch.broken
        kinds: dict[int, list[int]] = {0: [], 1: [], 2: []}
        for index, event in enumerate(batch.events):
            if event.cat == "Node" and isinstance(event.name, str) and event.name.endswith(_NODE_TIME):
                kinds[0].append(index)
            elif event.cat == "Session":
                kinds[1].append(index)
            elif event.cat == "Kernel":
                kinds[2].append(index)
        for kind, target in ((0, self.nodes), (1, self.sessions), (2, self.kernels)):
            if kinds[kind]:
                target.add(self._columns([batch.events[i] for i in kinds[kind]], [batch.numbers[i] for i in kinds[kind]]))

    def _columns(self, events: Sequence[Event[Args]], numbers: Sequence[int]) -> dict[str, Array]:
        start, duration = (integers([getattr(event, name) for event in events], _MICROSECONDS) for name in ("ts", "dur"))
        sound = (start != NONE) & (duration >= 0) & (duration < _LARGEST)
        self.dropped += int((~sound).sum())
        args = [event.args or Args() for event in events]
        names = [str(event.name).removesuffix(_NODE_TIME) for event in events]
        columns = {
            "start_ns": start,
            "duration_ns": duration,
            "name": self.strings.codes(names),
            "op_type": self.strings.codes([arg.op_name for arg in args]),
            "core": self.strings.codes(["CPU" if arg.provider == _CPU else arg.provider for arg in args]),
            "input_shapes": self.strings.codes([_shapes(arg.input_type_shape) for arg in args]),
            "input_dtypes": self.strings.codes([_dtypes(arg.input_type_shape) for arg in args]),
            "output_shapes": self.strings.codes([_shapes(arg.output_type_shape) for arg in args]),
            "output_dtypes": self.strings.codes([_dtypes(arg.output_type_shape) for arg in args]),
            "row": np.array(numbers, np.int32),
        }
        return {name: values[sound] for name, values in columns.items()}


def read_onnxruntime(path: Path, label: str) -> Session:
    """The session of ``path``. Evidence rows are positions in the list of events, from 1. Raises MalformedInputError."""
    strings = Strings()
    trace = Trace(pieces(path, label), label, Event[Args])
    collector = _Collector(strings)
    for batch in trace.batches():
        collector.add(batch)
    tables = list(_tables(collector, label))
    if not tables:
        raise UnusableCaptureError(f"{label}:1: no node and no run in this profile", do="set enable_profiling=True and run the model")
    on_cpu = strings.frozen().count("CPU") > 0
    cut = Violation(oracle="the list of events is closed", detail=f"{label}: the profile ends inside its events", difference_ns=0)
    meta = SessionMeta(
        name=session_name(path),
        origin="measured",
        capture=Capture(format=FORMAT, files=(label,), dropped_rows=collector.dropped),
        world_size=1,
        rank=0,
        model=Model(phase="inference"),
        soc=SocRef(family="cpu", confidence="medium", how=_CPU) if on_cpu else SocRef(),
        missing=() if any(table.name == "kernels" for table in tables) else (_NO_NODES,),
        violations=(cut,) if trace.cut else (),
    )
    return made_session(meta, tables, strings)


def matches(head: bytes) -> bool:
    """Whether the first bytes are those of an ONNX Runtime profile."""
    return any(marker in head for marker in _MARKERS)


def _tables(collector: _Collector, label: str) -> Iterator[Table]:
    nodes, kernels, sessions = collector.nodes.joined(), collector.kernels.joined(), collector.sessions.joined()
    strings = collector.strings
    if tasks := kernels or nodes:
        yield made_table("kernels", {**tasks, **_file(label, tasks, strings)}, strings)
    if kernels and nodes:
        yield _host(nodes, "framework", label, strings)
    if not sessions:
        return
    runs = sessions["name"] == strings.code(_RUN)
    if runs.any():
        yield _steps({name: values[runs] for name, values in sessions.items()}, label, strings)
    marks = {name: sessions[name] for name in ("start_ns", "duration_ns", "name", "row")}
    yield made_table("marks", {**marks, "domain": strings.codes(["scope"] * len(marks["row"])), **_file(label, marks, strings)}, strings)


def _file(label: str, columns: Mapping[str, Array], strings: Strings) -> dict[str, Array]:
    return {"file": np.full(len(columns["row"]), strings.code(label), np.int32)}


def _host(nodes: Mapping[str, Array], layer: str, label: str, strings: Strings) -> Table:
    columns = {name: nodes[name] for name in ("start_ns", "duration_ns", "name", "input_shapes", "row")}
    return made_table(
        "host_ops", {**columns, "layer": strings.codes([layer] * len(columns["row"])), **_file(label, nodes, strings)}, strings
    )


def _steps(runs: Mapping[str, Array], label: str, strings: Strings) -> Table:
    order = np.argsort(runs["start_ns"], kind="stable")
    start = runs["start_ns"][order]
    count = len(order)
    columns: dict[str, Array] = {
        "step_id": strings.codes([str(index + 1) for index in range(count)]),
        "start_ns": start,
        "end_ns": start + runs["duration_ns"][order],
        "kind": strings.codes(["infer"] * count),
        "warmup": np.zeros(count),
        "row": runs["row"][order],
        **_file(label, runs, strings),
    }
    return made_table("steps", columns, strings)


def _shapes(operands: Sequence[_Typed]) -> str | None:
    return ";".join(",".join(map(str, shape)) for operand in operands for shape in list(operand.values())[:1]) or None


def _dtypes(operands: Sequence[_Typed]) -> str | None:
    return ";".join(kind for operand in operands for kind in list(operand)[:1]) or None
