"""Events of a Kineto trace, batch by batch, into columns by kind."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
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
_PASSED_OVER: Final = ("X", "", "s", "f", "t")
"""Spans, which are read elsewhere, and flow arrows."""
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
        events = batch.events
        own = [place for place, event in enumerate(events) if event.ph == "X" or not event.ph]
        self._spans(_chosen(events, own), np.asarray(batch.numbers, np.int32)[own])
        if len(own) < len(events):
            self._others([(event, number) for event, number in zip(events, batch.numbers, strict=True) if event.ph not in _PASSED_OVER])

    def _others(self, pairs: Sequence[tuple[Event[Args], int]]) -> None:
        self._names([event for event, _ in pairs if event.ph == "M"])
        self._samples([(event, number) for event, number in pairs if event.ph in "iI"])
        self.dropped += sum(1 for event, _ in pairs if event.ph in "BE")

    def _names(self, events: Sequence[Event[Args]]) -> None:
        for event in events:
            args = event.args or _EMPTY
            if event.name == "process_name" and isinstance(args.name, str):
                self.processes[event.pid] = args.name
            elif event.name == "process_labels" and isinstance(args.labels, str):
                self.labels[event.pid] = args.labels

    def _by_kind(self, events: Sequence[Event[Args]]) -> dict[Kind, Array]:
        """Places of the spans of each kind, ascending."""
        categories = [event.cat for event in events]
        codes = {category: code for code, category in enumerate(dict.fromkeys(categories))}
        which = np.fromiter(map(codes.__getitem__, categories), np.int32, len(categories))
        found: dict[Kind, list[Array]] = defaultdict(list)
        for category, code in codes.items():
            for kind, own in self._kinds(category, np.flatnonzero(which == code), events):
                found[kind].append(own)
        return {kind: parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts)) for kind, parts in found.items()}

    def _kinds(self, category: str | None, own: Array, events: Sequence[Event[Args]]) -> Iterator[tuple[Kind, Array]]:
        """What the spans of one category are; those of an unknown one are kernels where a device's process holds them."""
        kind = self.categories.kinds.get((category or "").casefold())
        if kind is not None:
            if kind != "ignored":
                yield kind, own
            return
        on_device = np.array([self._on_device(event) for event in _chosen(events, own.tolist())], bool)
        parts: tuple[tuple[Kind, Array], ...] = (("kernel", own[on_device]), ("overhead", own[~on_device]))
        yield from ((known, part) for known, part in parts if len(part))

    def _on_device(self, event: Event[Args]) -> bool:
        return self.labels.get(event.pid, "").startswith(self.categories.device_labels)

    def _spans(self, events: Sequence[Event[Args]], numbers: Array) -> None:
        places = self._by_kind(events)
        if not places:
            return
        # All times of a batch together: array arithmetic pays by the thousand.
        times = integers([event.ts for event in events] + [event.dur for event in events], _MICROSECONDS)
        starts, durations = times[: len(events)], times[len(events) :]
        sound = (starts != NONE) & (durations >= 0) & (durations < _LARGEST_ID)
        for kind, own in places.items():
            part = own[sound[own]]
            self.dropped += len(own) - len(part)
            if len(part):
                columns = {"start_ns": starts[part], "duration_ns": durations[part], "row": numbers[part]}
                self.columns[kind].add({**columns, **self._of_kind(kind, _chosen(events, part.tolist()))})

    def _of_kind(self, kind: Kind, events: Sequence[Event[Args]]) -> dict[str, Array]:
        columns = {"name": self.strings.codes([name if type(name := event.name) is str else str(name) for event in events])}
        if kind in ("kernel", "copy"):
            return columns | self._device_columns(events)
        if kind == "runtime":
            return columns | self._host_columns(events, [event.args or _EMPTY for event in events])
        if kind == "operator":
            return columns | self._operator_columns(events)
        columns["thread"] = self._threads(events)
        if kind == "overhead":
            columns["category"] = self.strings.codes([event.cat for event in events])
        return columns

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
            "input_shapes": self._shape_codes([bytes(arg.dims) for arg in args]),
            "stack": self.strings.codes([arg.stack for arg in args]),
        }

    def _threads(self, events: Sequence[Event[Args]]) -> Array:
        known = self.threads
        pids, tids = [event.pid for event in events], [event.tid for event in events]
        found = list(map(known.get, zip(pids, tids, strict=True)))
        if None in found:
            found = [known.setdefault(key, len(known)) for key in zip(pids, tids, strict=True)]
        return np.array(found, np.int64)

    def _samples(self, pairs: Sequence[tuple[Event[Args], int]]) -> None:
        kept = [(event, number, event.args) for event, number in pairs if event.name == "[memory]" and event.args]
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

    def _shape_codes(self, raws: Sequence[bytes]) -> Array:
        known = self._shapes
        found = list(map(known.get, raws))
        if None in found:
            for raw in dict.fromkeys(raws):
                if raw not in known:
                    known[raw] = self.strings.code(shapes_text(raw)) if raw else -1
            found = list(map(known.get, raws))
        return np.array(found, np.int32)


def _chosen(events: Sequence[Event[Args]], places: Sequence[int]) -> Sequence[Event[Args]]:
    """The events at ``places``."""
    return events if len(places) == len(events) else list(map(events.__getitem__, places))


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
    if values.count(None) == len(values):
        return np.full(len(values), -1)
    if set(map(type, values)) == {int}:
        with suppress(OverflowError):
            found = np.array(values, np.int64)
            return np.where((found > -_LARGEST_ID) & (found < _LARGEST_ID), found, -1)
    return np.array([value if type(value) is int and -_LARGEST_ID < value < _LARGEST_ID else _id(value) for value in values], np.int64)


def _id(value: object) -> int:
    return int(value) if isinstance(value, str) and re.fullmatch(r"\d{1,18}", value, re.ASCII) else -1


def _external(args: Sequence[Args]) -> Array:
    return _ids([arg.external if arg.external is not None else arg.external_old for arg in args])
