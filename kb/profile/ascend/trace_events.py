"""Events of an Ascend timeline (``trace_view.json``, ``msprof_*.json``), batch by batch, into columns by what they are."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec
import numpy as np

from kb.profile.chrome.collector import Columns
from kb.profile.chrome.numbers import NONE, integers
from kb.profile.chrome.stream import Batch, RawEvent
from kb.session.builder import Strings
from kb.session.session import Array

Kind = Literal["hardware", "operator", "task", "cann", "host", "mark"]
Pid = int | str | float | None
_Naming = tuple[str, str | int | float | None, str | None, str | None]
_MICROSECONDS: Final = 3
_LARGEST: Final = 2**62
_NO_RANK: Final = 4294967295
_HOST_LAYERS: Final[Mapping[str, str]] = {
    "cpu_op": "framework", "python_function": "python", "enqueue": "framework", "dequeue": "framework",
    "gc": "gc", "python_gc": "gc", "dataloader": "loader",
}  # fmt: skip
CANN_LAYERS: Final[Mapping[str, str]] = {"acl": "acl", "node": "node", "runtime": "runtime", "ascendcl": "acl"}
LOADER: Final = ("enumerate(DataLoader)", "DataLoader")
_DOMAINS: Final[Mapping[str, str]] = {"user_annotation": "scope", "mstx": "mstx", "request": "request"}
_ANALYSIS: Final = frozenset({"Computing", "Communication", "Communication(Not Overlapped)", "Free"})


class Args(msgspec.Struct, gc=False, rename={
    "task_type": "Task Type", "stream": "Physic Stream Id", "task_id": "Task Id", "hccl_type": "task type", "src": "src rank",
    "dst": "dst rank", "transport": "transport type", "bytes": "size(Byte)", "dims": "Input Dims", "stack": "Call stack",
    "old_stream": "Stream Id",
}):  # fmt: skip
    """What we take from the ``args`` of a span."""

    task_type: str | None = None
    stream: int | str | None = None
    old_stream: int | str | None = None
    task_id: int | str | None = None
    connection_id: int | str | None = None
    hccl_type: str | None = None
    src: int | str | None = None
    dst: int | str | None = None
    transport: str | None = None
    bytes: int | float | str | None = None
    data_type: str | None = None
    alg_type: str | None = None
    count: int | str | None = None
    level: str | None = None
    dims: str | None = None
    stack: str | None = None
    name: str | None = None
    direction: str | None = None


@dataclass
class Timeline:
    """``columns`` by kind, ``counters``, names of processes and threads; ``dropped`` events without a usable time."""

    strings: Strings
    columns: dict[Kind, Columns] = field(default_factory=lambda: defaultdict(Columns))
    counters: Columns = field(default_factory=Columns)
    processes: dict[Pid, str] = field(default_factory=dict)
    threads: dict[tuple[Pid, Pid], str] = field(default_factory=dict)
    places: dict[tuple[Pid, Pid], int] = field(default_factory=dict)
    dropped: int = 0
    _decoders: tuple[msgspec.json.Decoder[Args], msgspec.json.Decoder[list[Args]]] = field(
        default_factory=lambda: (msgspec.json.Decoder(Args), msgspec.json.Decoder(list[Args]))
    )
    _named: dict[_Naming, tuple[int, int]] = field(default_factory=dict)
    _shapes: dict[str | None, int] = field(default_factory=lambda: {None: -1})

    def add(self, batch: Batch[RawEvent]) -> None:
        """Take one batch."""
        self.dropped += batch.broken
        events = batch.events
        own = [place for place, event in enumerate(events) if event.ph == "X"]
        spans = [events[place] for place in own]
        self._spans(spans, self._arguments([event.args for event in spans]), np.asarray(batch.numbers, np.int32)[own])
        if len(own) < len(events):
            others = [(event, number) for event, number in zip(events, batch.numbers, strict=True) if event.ph in ("C", "M")]
            for event, _ in others:
                if event.ph == "M":
                    self._name(event)
            self._samples([(event, number) for event, number in others if event.ph == "C"])

    def _arguments(self, raws: Sequence[msgspec.Raw]) -> list[Args]:
        """What is in the ``args`` of spans: all at once where every one is sound."""
        try:
            return self._decoders[1].decode(b"".join((b"[", b",".join(raws), b"]")))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return [self._args(raw) for raw in raws]

    def _args(self, raw: msgspec.Raw) -> Args:
        if not bytes(raw):
            return _EMPTY
        try:
            return self._decoders[0].decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _EMPTY

    def _name(self, event: RawEvent) -> None:
        name = self._args(event.args).name
        if name is None:
            return
        if event.name == "process_name":
            self.processes[event.pid] = name
        elif event.name == "thread_name":
            self.threads[event.pid, event.tid] = name

    def _spans(self, events: Sequence[RawEvent], args: Sequence[Args], numbers: Array) -> None:
        if not events:
            return
        # All times of a batch together: array arithmetic pays by the thousand.
        times = integers([event.ts for event in events] + [event.dur for event in events], _MICROSECONDS)
        starts, durations = times[: len(events)], times[len(events) :]
        sound = (starts != NONE) & (starts >= 0) & (durations >= 0) & (durations < _LARGEST)
        kinds = list(map(_kind, events, args))
        codes = {kind: code for code, kind in enumerate(dict.fromkeys(kinds))}
        which = np.fromiter(map(codes.__getitem__, kinds), np.int32, len(kinds))
        self.dropped += int((~sound & (which != codes.get(None, -1))).sum())
        for kind, code in codes.items():
            own = np.flatnonzero((which == code) & sound)
            if kind is not None and len(own):
                part = own.tolist()
                found = self._of_kind(kind, [events[place] for place in part], [args[place] for place in part])
                self.columns[kind].add({"start_ns": starts[own], "duration_ns": durations[own], "row": numbers[own], **found})

    def _of_kind(self, kind: Kind, events: Sequence[RawEvent], args: Sequence[Args]) -> dict[str, Array]:
        names, layers = self._names_and_layers(kind, events, args)
        columns = {
            "name": names,
            "place": self._places(events),
            "connection_id": _ids([arg.connection_id for arg in args]),
            **self._extra(kind, events, args),
        }
        if kind in ("cann", "host"):
            columns["layer"] = layers
            columns["thread"] = np.array(
                [_thread(event.tid, place) for event, place in zip(events, columns["place"].tolist(), strict=True)]
            )
        return columns

    def _names_and_layers(self, kind: Kind, events: Sequence[RawEvent], args: Sequence[Args]) -> tuple[Array, Array]:
        known = self._named
        keys = [(kind, event.name, event.cat, arg.level) for event, arg in zip(events, args, strict=True)]
        found = list(map(known.get, keys))
        if None in found:
            code = self.strings.code
            for key, event, arg in zip(keys, events, args, strict=True):
                if key not in known:
                    known[key] = code(_name_of(event, kind)), code(_layer(event, arg))
            found = list(map(known.get, keys))
        both = np.array(found, np.int32)
        return both[:, 0], both[:, 1]

    def _places(self, events: Sequence[RawEvent]) -> Array:
        known = self.places
        pids, tids = [event.pid for event in events], [event.tid for event in events]
        found = list(map(known.get, zip(pids, tids, strict=True)))
        if None in found:
            found = [known.setdefault(key, len(known)) for key in zip(pids, tids, strict=True)]
        return np.array(found, np.int64)

    def _shape_codes(self, args: Sequence[Args]) -> Array:
        known = self._shapes
        dims = [arg.dims for arg in args]
        found = list(map(known.get, dims))
        if None in found:
            known |= {text: self.strings.code(_shapes(text)) for text in dict.fromkeys(dims) if text not in known}
            found = list(map(known.get, dims))
        return np.array(found, np.int32)

    def _extra(self, kind: Kind, events: Sequence[RawEvent], args: Sequence[Args]) -> dict[str, Array]:
        codes = self.strings.codes
        if kind == "hardware":
            stream = [arg.stream if arg.stream is not None else arg.old_stream if arg.old_stream is not None else event.tid
                      for arg, event in zip(args, events, strict=True)]  # fmt: skip
            return {
                "core": codes([arg.task_type for arg in args]),
                "stream": _ids(stream),
                "task_id": _ids([arg.task_id for arg in args]),
                "direction": codes([arg.direction for arg in args]),
                "bytes": np.array([_real(arg.bytes) for arg in args], np.float64),
            }
        if kind == "task":
            return {
                "src_rank": _ranks([arg.src for arg in args]),
                "dst_rank": _ranks([arg.dst for arg in args]),
                "transport": codes([arg.transport for arg in args]),
                "bytes": np.array([_real(arg.bytes) for arg in args], np.float64),
            }
        if kind == "mark":
            return {"domain": codes([_DOMAINS[(event.cat or "").casefold()] for event in events])}
        if kind in ("cann", "host"):
            return {
                "input_shapes": self._shape_codes(args),
                "stack": codes([arg.stack.replace("\r\n", "\n") if arg.stack else None for arg in args]),
            }
        return {}

    def _samples(self, samples: Sequence[tuple[RawEvent, int]]) -> None:
        if not samples:
            return
        starts = integers([event.ts for event, _ in samples], _MICROSECONDS)
        rows: list[tuple[int, str, float, int]] = []
        for (event, number), start in zip(samples, starts.tolist(), strict=True):
            values = _values(event.args)
            if start < 0 or values is None:
                self.dropped += 1
                continue
            rows += [(start, f"{event.name} [{_unit(key)}]", value, number) for key, value in values.items() if key != "acc_id"]
        if rows:
            self.counters.add({
                "start_ns": np.array([row[0] for row in rows], np.int64),
                "name": self.strings.codes([row[1] for row in rows]),
                "value": np.array([row[2] for row in rows], np.float64),
                "row": np.array([row[3] for row in rows], np.int32),
            })  # fmt: skip


_EMPTY: Final = Args()


def _kind(event: RawEvent, args: Args) -> Kind | None:
    if args.task_type is not None:
        return "hardware"
    if args.src is not None or args.hccl_type is not None:
        return "task"
    if args.alg_type is not None or (args.data_type is not None and args.count is not None):
        return "operator"
    if args.level is not None:
        return "cann"
    if event.cat is not None and event.cat.casefold() in _DOMAINS:
        return "mark"
    if event.cat is not None or (args is not _EMPTY and args.connection_id is None and args.name is None):
        return "host"
    name = event.name if isinstance(event.name, str) else ""
    if name in _ANALYSIS:
        return None
    return "operator" if name.startswith("hcom_") else "cann" if "@" in name else "host"


def _name_of(event: RawEvent, kind: Kind) -> str | None:
    name = event.name if isinstance(event.name, str) else None if event.name is None else str(event.name)
    return name.partition("@")[2] if kind == "cann" and name and "@" in name else name


def _layer(event: RawEvent, args: Args) -> str:
    name = event.name if isinstance(event.name, str) else ""
    if name.startswith(LOADER):
        return "loader"
    if args.level is not None:
        return CANN_LAYERS.get(args.level.casefold(), "other")
    if "@" in name and event.cat is None:
        return CANN_LAYERS.get(name.partition("@")[0].casefold(), "other")
    return _HOST_LAYERS.get((event.cat or "").casefold(), "other")


def _shapes(dims: str | None) -> str | None:
    # The exporter splits operands by ";" and a line break; the session splits by ";" alone.
    return (dims.replace("\r\n", "") if dims.strip(";\r\n ") else None) if dims else None


def _ids(values: Sequence[object]) -> Array:
    if values.count(None) == len(values):
        return np.full(len(values), -1)
    if set(map(type, values)) == {int}:
        with suppress(OverflowError):
            found = np.array(values, np.int64)
            return np.where((found >= 0) & (found < _LARGEST), found, -1)
    return np.array([value if type(value) is int and 0 <= value < _LARGEST else _id(value) for value in values], np.int64)


def _id(value: object) -> int:
    return int(value) if isinstance(value, str) and re.fullmatch(r"\d{1,18}", value, re.ASCII) else -1


def _thread(tid: Pid, place: int) -> int:
    return tid if isinstance(tid, int) and 0 <= tid < _LARGEST else place


def _ranks(values: Sequence[object]) -> Array:
    found = _ids(values)
    return np.where(found >= _NO_RANK, -1, found).astype(np.int32)


def _real(value: float | str | None) -> float:
    try:
        return float(value) if value is not None else np.nan
    except ValueError:
        return np.nan


def _values(args: msgspec.Raw) -> dict[str, float] | None:
    try:
        return msgspec.json.decode(args, type=dict[str, float])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _unit(key: str) -> str:
    inside = re.search(r"\(([^)]*)\)$", key)
    if inside:
        return inside[1]
    return key if key in ("MHz", "KB", "MB", "GB/s", "MB/s") else "-"
