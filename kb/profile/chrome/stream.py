"""The events of a Chrome trace in batches: memory follows one batch, not the file.

A trace is a JSON list of events, or an object with the list under ``traceEvents`` and metadata around it. The list is
cut where ``}`` and ``{`` meet; a cut is taken only when everything since the last one decodes as whole events, so braces
inside text or nested values never split an event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

import msgspec

from kb.errors import MalformedInputError

BATCH: Final = 2 << 20
"""Bytes decoded together."""
LARGEST_EVENT: Final = 32 << 20
"""Bytes; also of the metadata before and after the events. A call stack has some thousand."""
_TAIL: Final = 1 << 15
"""Bytes before the end of a batch in which a seam is looked for first."""
_TRIES: Final = 24
_SEAM: Final = re.compile(rb"\}\s*,\s*\{")
_LIST: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_ELSEWHERE: Final = re.compile(r"trailing characters \(byte (\d+)\)|\(byte (\d+)\)")
_DO: Final = "take the trace as the profiler wrote it, or export again"


ArgsT = TypeVar("ArgsT")
EventT = TypeVar("EventT", bound="Timed")


class Timed(msgspec.Struct, gc=False):
    """The fields every event has; times are the text that was written (µs)."""

    ph: str = ""
    name: str | int | float | None = None
    cat: str | None = None
    pid: int | str | float | None = None
    tid: int | str | float | None = None
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: msgspec.Raw = msgspec.Raw(b"")


class Event(Timed, Generic[ArgsT], gc=False):
    """An event with ``args`` of one kind; None where they have another shape."""

    args: ArgsT | None = None


class RawEvent(Timed, gc=False):
    """An event whose ``args`` are not decoded yet."""

    args: msgspec.Raw = msgspec.Raw(b"")


@dataclass(frozen=True, slots=True)
class Batch(Generic[EventT]):
    """Consecutive events; ``numbers`` are their 1-based positions in the list, ``broken`` counts those no event's shape fits."""

    events: list[EventT]
    numbers: range | list[int]
    broken: int = 0


@dataclass
class Trace(Generic[EventT]):
    """Reads one trace as events of one class. ``metadata`` (raw JSON values by key) and ``cut`` (the list
    never ends) are known after ``batches``."""

    content: Iterator[bytes]
    label: str
    event: type[EventT]
    metadata: dict[str, msgspec.Raw] = field(default_factory=dict)
    cut: bool = False
    _count: int = 0
    _decoder: msgspec.json.Decoder[list[EventT]] = field(init=False)
    _single: msgspec.json.Decoder[EventT] = field(init=False)

    def __post_init__(self) -> None:
        event: Any = self.event  # a class known at run time only
        self._decoder = msgspec.json.Decoder(list[event])
        self._single = msgspec.json.Decoder(event)

    def batches(self) -> Iterator[Batch[EventT]]:
        """Every event once, in order. Raises MalformedInputError naming the file and the number of the event."""
        rest, wrapped = self._opening()
        wanted = BATCH
        waiting, size = [rest], len(rest)
        for piece in self.content:
            waiting.append(piece)
            size += len(piece)
            if size < wanted:
                continue
            rest = b"".join(waiting)
            found = self._cut_batch(rest)
            if found is None:
                if len(rest) > LARGEST_EVENT:
                    raise self._error(f"an event of more than {LARGEST_EVENT} bytes")
                wanted = 2 * len(rest)
                waiting = [rest]
                continue
            batch, rest, ended = found
            waiting, size, wanted = [rest], len(rest), BATCH
            yield batch
            if ended:
                self._closing(rest, wrapped)
                return
        yield from self._last(b"".join(waiting), wrapped)

    def _opening(self) -> tuple[bytes, bool]:
        text = b""
        for piece in self.content:
            text += piece
            start = text.lstrip()
            if start.startswith(b"["):
                return start[1:], False
            if start and not start.startswith(b"{"):
                raise MalformedInputError(f"{self.label}:1: not a trace", allowed="a JSON list or object", do=_DO)
            for match in _LIST.finditer(start):
                if (found := _keys(start[: match.start()] + b'"traceEvents":null}')) is not None:
                    self.metadata.update(found)
                    return start[match.end() :], True
            if len(text) > LARGEST_EVENT:
                break
        raise MalformedInputError(f"{self.label}:1: no list of events", allowed="a JSON list, or traceEvents in an object", do=_DO)

    def _cut_batch(self, text: bytes) -> tuple[Batch[EventT], bytes, bool] | None:
        """The events up to a seam near the end of ``text``, what follows it, and whether the list ended before it."""
        seams = list(_SEAM.finditer(text, max(0, len(text) - _TAIL))) or list(_SEAM.finditer(text))
        for seam in reversed(seams[-_TRIES:]):
            end = seam.start() + 1
            try:
                return self._batch(b"".join((b"[", memoryview(text)[:end], b"]"))), text[seam.end() - 1 :], False
            except msgspec.DecodeError as error:
                place = _place(error)
                if place is None or place >= end:
                    continue  # the seam stands inside text or a nested value
                if (closed := self._closed(text, place)) is not None:
                    return closed[0], text[closed[1] :], True
                raise self._error(str(error), text[:place]) from error
        return None

    def _last(self, text: bytes, wrapped: bool) -> Iterator[Batch[EventT]]:
        if not wrapped and (plain := self._plain_end(text)) is not None:
            yield plain
            return
        try:
            batch = self._batch(b"[" + text)
        except msgspec.DecodeError as error:
            place = _place(error)
            closed = None if place is None else self._closed(text, place)
            if closed is not None:
                yield closed[0]
                self._closing(text[closed[1] :], wrapped)
                return
            if place is not None:
                raise self._error(str(error), text[:place]) from error
            yield from self._cut_off(text)
            return
        yield batch
        if wrapped:
            self.cut = True

    def _plain_end(self, text: bytes) -> Batch[EventT] | None:
        """The end of a bare list, which the format lets stop without its bracket or after a comma."""
        bare = text.rstrip()
        try:
            batch = self._batch(b"[" + bare.removesuffix(b"]").rstrip().removesuffix(b",") + b"]")
        except msgspec.DecodeError:
            return None
        self.cut = not bare.endswith(b"]")
        return batch

    def _closed(self, text: bytes, place: int) -> tuple[Batch[EventT], int] | None:
        """The events before the list's own ``]`` and the place after it, when that is what the decoder stumbled over at ``place``."""
        before = text[: max(place, 0)].rstrip()
        if not before.endswith(b"]"):
            return None
        try:
            return self._batch(b"[" + before), len(before)
        except msgspec.DecodeError:
            return None

    def _cut_off(self, text: bytes) -> Iterator[Batch[EventT]]:
        self.cut = True
        for seam in reversed(list(_SEAM.finditer(text))[-_TRIES:]):
            try:
                yield self._batch(b"[" + text[: seam.start() + 1] + b"]")
            except msgspec.DecodeError:
                continue
            return

    def _closing(self, text: bytes, wrapped: bool) -> None:
        for piece in self.content:
            text += piece
            if len(text) > LARGEST_EVENT:
                raise self._error("more after the list of events than fits a trace")
        text = text.strip()
        if not wrapped:
            if text:
                raise self._error("text after the list of events")
            return
        found = _keys(b"{" + text.removeprefix(b",")) if text else None
        if found is None:
            self.cut = True
        else:
            self.metadata.update(found)

    def _batch(self, text: bytes) -> Batch[EventT]:
        first = self._count + 1
        try:
            events = self._decoder.decode(text)
        except msgspec.ValidationError:
            return self._one_by_one(text, first)
        except (UnicodeDecodeError, RecursionError) as error:
            raise self._error(str(error)) from error
        self._count += len(events)
        return Batch(events, range(first, first + len(events)))

    def _one_by_one(self, text: bytes, first: int) -> Batch[EventT]:
        events, numbers = [], []
        try:
            raws = msgspec.json.decode(text, type=list[msgspec.Raw])
        except (msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
            raise self._error(str(error)) from error
        for number, raw in enumerate(raws, first):
            event = self._lenient(raw)
            if event is not None:
                events.append(event)
                numbers.append(number)
        self._count += len(raws)
        return Batch(events, numbers, len(raws) - len(events))

    def _lenient(self, raw: msgspec.Raw) -> EventT | None:
        try:
            return self._single.decode(raw)
        except (msgspec.ValidationError, UnicodeDecodeError, RecursionError):
            pass
        try:
            odd = msgspec.json.decode(raw, type=Timed)
        except (msgspec.ValidationError, UnicodeDecodeError, RecursionError):
            return None
        return self.event(odd.ph, odd.name, odd.cat, odd.pid, odd.tid, odd.ts, odd.dur)

    def _error(self, what: str, before: bytes = b"") -> MalformedInputError:
        number = self._count + 1 + len(_SEAM.findall(before))
        return MalformedInputError(f"{self.label}:{number}: event {number}: {what}", do=_DO)


def _place(error: msgspec.DecodeError) -> int | None:
    """The byte of the decoded text, which has a bracket before ours; None where the text just ends too early."""
    match = _ELSEWHERE.search(str(error))
    if match is None:
        return None
    return int(match[1]) - 2 if match[1] else int(match[2]) - 1  # msgspec counts trailing characters from 1, others from 0


def _keys(text: bytes) -> dict[str, msgspec.Raw] | None:
    try:
        return msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
