"""What one rank does in one step: kernels and calls in launch order, and what the host does between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

IdleCause = Literal["sync", "dispatch", "queue", "input", "copy", "gc", "io", "compile", "work", "barrier", "launch"]
IDLE_CAUSES: Final[tuple[IdleCause, ...]] = (
    "sync", "dispatch", "queue", "input", "copy", "gc", "io", "compile", "work", "launch", "barrier",
)  # fmt: skip
"""In the order they follow each other inside one gap: the host returns from a wait (``sync``), the device takes the next
task (``dispatch``), the launch comes late because the queue had been full (``queue``) or the host was busy with data
(``input``, ``copy``), garbage collection, a checkpoint (``io``), a compilation or its own ``work``; launching is slower
than executing (``launch``); or communication has to end first (``barrier``)."""
HOST_CAUSES: Final[tuple[IdleCause, ...]] = ("input", "copy", "gc", "io", "compile", "work")


class HostEvent(msgspec.Struct, frozen=True):
    """The host is busy for ``ns``. ``waits`` = it first waits until the device has finished everything."""

    name: str
    layer: str
    cause: IdleCause
    ns: int
    waits: bool = False


class Call(msgspec.Struct, frozen=True):
    """A communication call of one rank. Equal ``key`` = the same communication; ``members`` are global ranks.

    ``eager`` calls (sends) end without the others; a receive has the ``sender``'s key to wait for.
    """

    key: tuple[object, ...]
    members: tuple[int, ...]
    blocking: bool
    eager: bool = False


class HostCosts(msgspec.Struct, frozen=True, kw_only=True):
    """Fixed times of the host and the device's scheduler, ns."""

    gap: int
    sync_return: int


@dataclass(frozen=True, slots=True)
class Plan:
    """One step of one rank. Lists have an entry a place (kernel or call).

    ``launches`` are host ns (0 = an earlier launch submitted it). ``before`` holds the host's events ahead of a place.
    ``calls`` are the places that communicate, ``joins`` those that wait for every call so far. ``depth`` kernels may be
    unfinished. ``needs`` (None = one stream, in order) lists for each place the places it depends on, and ``shares`` what part
    of the cores it fills.
    """

    durations: Sequence[int]
    launches: Sequence[int]
    before: Mapping[int, Sequence[HostEvent]]
    calls: Mapping[int, Call]
    joins: frozenset[int]
    depth: int
    needs: Sequence[Sequence[int]] | None = None
    shares: Sequence[float] = ()
    streams: int = 1
