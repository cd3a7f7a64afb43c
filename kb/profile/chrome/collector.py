"""Events of a Kineto trace, batch by batch, into columns by kind."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np

from kb.profile.chrome.numbers import NONE, integers
from kb.profile.chrome.rules import Categories, Kind
from kb.profile.chrome.stream import Batch, Event
from kb.session.builder import Strings
from kb.session.session import Array

_MICROSECONDS: Final = 3
_LARGEST_ID: Final = 2**62
_SPANS: Final = ("X", "")
Scalar = int | float | str | None


class Args(msgspec.Struct, gc=False, rename={
    "external": "External id", "external_old": "external id", "dims": "Input Dims", "stack": "Call stack",
    "total": "Total Allocated", "device_id": "Device Id", "device_type": "Device Type", "group": "Process Group Name",
}):  # fmt: skip
    """What we take from ``args``."""

    stream: int | str | None = None
    device: int | str | None = None
    correlation: int | str | None = None
    external: int | str | None = None
    external_old: int | str | None = None
    bytes: int | float | str | None = None
    dims: msgspec.Raw = msgspec.Raw(b"")
    stack: str | None = None
    name: str | None = None
    labels: str | None = None
    total: int | None = None
    device_id: int | None = None
    device_type: int | None = None
    group: str | None = None


_EMPTY: Final = Args()


@dataclass
class Columns:
    """Arrays of one kind, collected in pieces. All pieces have the same names."""

    pieces: dict[str, list[Array]] = field(default_factory=lambda: defaultdict(list))

    def add(self, columns: Mapping[str, Array]) -> None:
        """One more piece."""
        for name, values in columns.items():
            self.pieces[name].append(values)

    def joined(self) -> dict[str, Array]:
        """Whole columns; empty when nothing was added."""
        return {name: np.concatenate(values) for name, values in self.pieces.items()}


@dataclass
class Collector:
    """``columns`` by kind; ``processes`` names and labels by pid; ``dropped`` events without a usable time."""

    categories: Categories
    strings: Strings
    columns: dict[Kind, Columns] = field(default_factory=lambda: defaultdict(Columns))
    memory: Columns = field(default_factory=Columns)
    processes: dict[Scalar, str] = field(default_factory=dict)
    labels: dict[Scalar, str] = field(default_factory=dict)
    threads: dict[tuple[Scalar, Scalar], int] = field(default_factory=dict)
    dropped: int = 0
    _shapes: dict[bytes, int] = field(default_factory=dict)

    def add(self, batch: Batch[Event[Args]]) -> None:
        """Take one batch."""
        self.dropped += batch.broken
        buckets: dict[tuple[str, str | None], tuple[list[Event[Args]], list[int]]] = {}
        for event, number in zip(batch.events, batch.numbers, strict=True):
            key = (event.ph, event.cat)
            found = buckets.get(key)
            if found is None:
                found = buckets[key] = ([], [])
            found[0].append(event)
            found[1].append(number)
        for (phase, category), (events, numbers) in buckets.items():
            self._bucket(phase, category, events, numbers)

    def _bucket(self, phase: str, category: str | None, events: list[Event[Args]], numbers: list[int]) -> None:
        if phase in _SPANS:
            self._spans(category, events, numbers)
        elif phase == "M":
            self._names(events)
        elif phase in "iI":
            self._samples(events, numbers)
        elif phase in "BE":
            self.dropped += len(events)

    def _names(self, events: Sequence[Event[Args]]) -> None:
        for event in events:
            args = event.args or _EMPTY
            if event.name == "process_name" and isinstance(args.name, str):
                self.processes[event.pid] = args.name
            elif event.name == "process_labels" and isinstance(args.labels, str):
                self.labels[event.pid] = args.labels

    def _spans(self, category: str | None, events: list[Event[Args]], numbers: list[int]) -> None:
        kind = self.categories.kinds.get((category or "").casefold())
        if kind is None:
            on_device = [self._on_device(event) for event in events]
            for wanted, unknown in ((True, "kernel"), (False, "overhead")):
                own = [index for index, device in enumerate(on_device) if device is wanted]
                self._of_kind("kernel" if wanted else "overhead", [events[i] for i in own], [numbers[i] for i in own], unknown)
        elif kind != "ignored":
            self._of_kind(kind, events, numbers, category or "")

    def _on_device(self, event: Event[Args]) -> bool:
        return self.labels.get(event.pid, "").startswith(self.categories.device_labels)

    def _of_kind(self, kind: Kind, events: list[Event[Args]], numbers: list[int], category: str) -> None:
        if not events:
            return
        start = integers([event.ts for event in events], _MICROSECONDS)
        duration = integers([event.dur for event in events], _MICROSECONDS)
        sound = (start != NONE) & (duration >= 0) & (duration < _LARGEST_ID)
        if not sound.all():
            self.dropped += int((~sound).sum())
            own = np.flatnonzero(sound).tolist()
            events, numbers, start, duration = [events[i] for i in own], [numbers[i] for i in own], start[sound], duration[sound]
        code = self.strings.code
        columns: dict[str, Array] = {
            "start_ns": start,
            "duration_ns": duration,
            "name": np.fromiter([code(name if type(name := event.name) is str else str(name)) for event in events], np.int32, len(events)),
            "row": np.array(numbers, np.int32),
        }
        if kind in ("kernel", "copy"):
            columns |= self._device_columns(events)
        elif kind == "runtime":
            columns |= self._host_columns(events, [event.args or _EMPTY for event in events])
        elif kind == "operator":
            columns |= self._operator_columns(events)
        else:
            columns["thread"] = self._threads(events)
        if kind == "overhead":
            columns["category"] = np.full(len(events), code(category))
        self.columns[kind].add(columns)

    def _device_columns(self, events: Sequence[Event[Args]]) -> dict[str, Array]:
        args = [event.args or _EMPTY for event in events]
        return {
            "stream": _ids([arg.stream if arg.stream is not None else _stream(event.tid) for arg, event in zip(args, events, strict=True)]),
            "device": _ids([arg.device if arg.device is not None else event.pid for arg, event in zip(args, events, strict=True)]),
            "connection_id": _ids([arg.correlation for arg in args]),
            "external": _external(args),
            "bytes": np.array([float(arg.bytes) if isinstance(arg.bytes, int | float) else np.nan for arg in args], np.float64),
            "group": self.strings.codes([arg.group for arg in args]),
        }

    def _host_columns(self, events: Sequence[Event[Args]], args: Sequence[Args]) -> dict[str, Array]:
        return {
            "thread": self._threads(events),
            "connection_id": _ids([arg.correlation for arg in args]),
            "external": _external(args),
        }

    def _operator_columns(self, events: Sequence[Event[Args]]) -> dict[str, Array]:
        args = [event.args or _EMPTY for event in events]
        return {
            **self._host_columns(events, args),
            "input_shapes": np.fromiter([self._shape(arg.dims) for arg in args], np.int32, len(args)),
            "stack": self.strings.codes([arg.stack for arg in args]),
        }

    def _threads(self, events: Sequence[Event[Args]]) -> Array:
        return np.array([self.threads.setdefault((event.pid, event.tid), len(self.threads)) for event in events], np.int64)

    def _samples(self, events: Sequence[Event[Args]], numbers: Sequence[int]) -> None:
        kept = [
            (event, number, event.args) for event, number in zip(events, numbers, strict=True) if event.name == "[memory]" and event.args
        ]
        own = [(e, n, a) for e, n, a in kept if a.total is not None and a.device_type]
        if own:
            starts = integers([event.ts for event, _, _ in own], _MICROSECONDS)
            columns = {
                "start_ns": starts,
                "name": self.strings.codes([f"device {args.device_id} allocated [B]" for _, _, args in own]),
                "value": np.array([float(args.total or 0) for _, _, args in own]),
                "row": np.array([number for _, number, _ in own], np.int32),
            }
            self.memory.add({name: values[starts >= 0] for name, values in columns.items()})

    def _shape(self, dims: msgspec.Raw) -> int:
        raw = bytes(dims)
        if not raw:
            return -1
        code = self._shapes.get(raw)
        if code is None:
            code = self._shapes[raw] = self.strings.code(shapes_text(raw))
        return code


def shapes_text(raw: bytes) -> str | None:
    """``[[2,3],[],[4]]`` as ``2,3;;4``; None for anything else or for no shape at all."""
    try:
        operands = msgspec.json.decode(raw, type=list[list[int | list[int]] | str | None])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    texts = [",".join(map(str, operand)) if isinstance(operand, list) else "" for operand in operands]
    return re.sub(r"[\[\] ]", "", ";".join(texts)) if any(texts) else None


def _stream(tid: Scalar) -> Scalar:
    return tid.removeprefix("stream ") if isinstance(tid, str) else tid


def _ids(values: Sequence[object]) -> Array:
    return np.array([value if type(value) is int and -_LARGEST_ID < value < _LARGEST_ID else _id(value) for value in values], np.int64)


def _id(value: object) -> int:
    return int(value) if isinstance(value, str) and re.fullmatch(r"\d{1,18}", value, re.ASCII) else -1


def _external(args: Sequence[Args]) -> Array:
    return _ids([arg.external if arg.external is not None else arg.external_old for arg in args])
