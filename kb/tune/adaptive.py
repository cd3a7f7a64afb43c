"""An engine that changes batch, pipeline stages and tensor parallelism with the load, on a simulated stream of requests.

It looks at the queue, at utilisation and at the 99th percentile of latency once an interval, and moves one notch at a time.
While it is cold it starts small and only moves up. What it chose is compared with the fixed setting it began from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from kb.domain.text import Text
from kb.errors import UsageError

Ints = npt.NDArray[np.int64]
Reason = Literal["cold", "queue", "late", "latency_bound", "idle", "steady", "settling"]
BUSY: Final = 0.85
"""Share of time in use from which a server has no room for bursts."""
CALM: Final = 0.35
"""Share of time in use below which devices are given back."""
COLD_INTERVALS: Final = 3
"""Intervals in which only cautious moves are made."""
SETTLING_INTERVALS: Final = 2
"""Intervals after a new layout whose figures still show the old queue."""
CALM_INTERVALS: Final = 2
"""Idle intervals in a row before devices are given back: a pause between bursts is no reason."""
NEAR: Final = 0.7
"""Share of the latency limit that is used on purpose."""
HEADROOM: Final = 1.15
"""Capacity over what comes."""
DRAIN_S: Final = 2.0
"""Seconds in which a queue should be gone."""
MOST_BATCHES: Final = 200_000


class Setting(msgspec.Struct, frozen=True):
    """How requests are served: at most ``batch`` at once, over ``stages`` x ``tensor`` devices."""

    batch: int
    stages: int = 1
    tensor: int = 1

    @property
    def devices(self) -> int:
        """Devices it takes."""
        return self.stages * self.tensor


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine may choose from, each in rising order, on at most ``devices``."""

    batches: tuple[int, ...]
    stages: tuple[int, ...] = (1,)
    tensors: tuple[int, ...] = (1,)
    devices: int = 1


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Time of one batch, ns: ``latency_ns`` through all stages, ``interval_ns`` until the next one may enter."""

    latency_ns: int
    interval_ns: int


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """One interval as the engine sees it. ``queue`` is the mean depth when a batch begins, ``growing`` whether it rose;
    ``arrived`` requests a second that came; ``p99_ns`` of requests that ended in it; ``utilization`` 0..1."""

    queue: float
    growing: bool
    arrived: float
    utilization: float
    p99_ns: int
    throughput: float


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A decision: when (ns), what it saw, from where to where, and why."""

    at_ns: int
    window: Window
    before: Setting
    after: Setting
    reason: Reason


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """A whole stream served. ``late`` is the share (0..1) of requests beyond the limit; ``device_seconds`` in use or reserved."""

    requests: int
    throughput: float
    p50_ns: int
    p99_ns: int
    late: float
    utilization: float
    most_queued: int
    device_seconds: float
    moves: tuple[Move, ...]
    last: Setting


Times = Callable[[Setting], Timing | None]
"""The time of a batch under a setting; None when it cannot run."""
Decide = Callable[[Window, Setting, int], tuple[Setting, Reason]]


def serve(
    arrivals: Sequence[int] | Ints, times: Times, begin: Setting, *, limit_ns: float, interval: int, change_ns: int, decide: Decide | None
) -> Served:
    """Serve requests that arrive at ``arrivals`` (int64 ns, ascending), first come first served.

    ``decide`` None keeps ``begin``. It is asked after every ``interval`` batches. ``change_ns`` is the pause that a new number
    of devices costs (weights are loaded anew). Deterministic. Raises UsageError when ``begin`` cannot run or the stream is empty.
    """
    stream = np.asarray(arrivals, np.int64)
    if not len(stream):
        raise UsageError("no requests arrive", allowed="a rate and a time with at least one request")
    timing = times(begin)
    if timing is None:
        raise UsageError(f"{begin} cannot run", do="begin with another setting")
    setting, free = begin, int(stream[0])
    done = np.zeros(len(stream), np.int64)
    place = batches = most = 0
    busy, reserved, since = 0, 0.0, int(stream[0])
    moves: list[Move] = []
    queues: list[int] = []
    window_begin, window_place, window_busy = int(stream[0]), 0, 0
    while place < len(stream):
        start = max(free, int(stream[place]))
        queued = int(np.searchsorted(stream, start, side="right")) - place
        taken = min(setting.batch, max(1, queued))
        current = times(msgspec.structs.replace(setting, batch=_padded(taken, setting, times)))
        own = current if current is not None else timing
        done[place : place + taken] = start + own.latency_ns
        free = start + own.interval_ns
        busy += own.interval_ns
        place, batches, most = place + taken, batches + 1, max(most, queued)
        queues.append(queued)
        if batches >= MOST_BATCHES:
            raise UsageError(f"more than {MOST_BATCHES:,} batches", do="simulate a shorter stream")
        if decide is None or batches % interval:
            continue
        spent = max(1, free - window_begin)
        window = Window(
            queue=float(np.mean(queues)),
            growing=len(queues) > 1 and float(np.mean(queues[len(queues) // 2 :])) > 1.2 * float(np.mean(queues[: len(queues) // 2])),
            arrived=float(np.searchsorted(stream, free) - np.searchsorted(stream, window_begin)) / (spent / 1e9),
            utilization=min(1.0, (busy - window_busy) / spent),
            p99_ns=_p99(done[window_place:place] - stream[window_place:place]),
            throughput=(place - window_place) / (spent / 1e9),
        )
        chosen, reason = decide(window, setting, batches // interval)
        fresh = times(chosen)
        if chosen != setting and fresh is not None:
            moves.append(Move(at_ns=free, window=window, before=setting, after=chosen, reason=reason))
            reserved += setting.devices * (free - since) / 1e9
            if chosen.devices != setting.devices:
                free += change_ns
            since, setting, timing = free, chosen, fresh
        queues, window_begin, window_place, window_busy = [], free, place, busy
    end = int(done.max())
    waited = done - stream
    return Served(
        requests=len(stream),
        throughput=len(stream) / max(1e-9, (end - int(stream[0])) / 1e9),
        p50_ns=int(np.percentile(waited, 50)),
        p99_ns=_p99(waited),
        late=float(np.mean(waited > limit_ns)),
        utilization=min(1.0, busy / max(1, end - int(stream[0]))),
        most_queued=most,
        device_seconds=reserved + setting.devices * (end - since) / 1e9,
        moves=tuple(moves),
        last=setting,
    )


def _padded(taken: int, setting: Setting, times: Times) -> int:
    """The batch that is run for ``taken`` requests: compiled sizes are powers of two and the setting's own."""
    size = 1 << (taken - 1).bit_length()
    return size if size <= setting.batch and times(msgspec.structs.replace(setting, batch=size)) is not None else setting.batch


def _p99(waited: Ints) -> int:
    return int(np.percentile(waited, 99)) if len(waited) else 0


class Policy:
    """The rules of the engine. Keeps the interval of the last change of layout and how long devices have been idle."""

    def __init__(self, space: Space, times: Times, limit_ns: float) -> None:
        """``times`` is what the engine knows about settings before it tries them; ``limit_ns`` the latency to keep."""
        self.space, self.times, self.limit_ns = space, times, limit_ns
        self.changed = -SETTLING_INTERVALS
        self.calm = 0

    def __call__(self, window: Window, setting: Setting, number: int) -> tuple[Setting, Reason]:
        """The setting of the next interval, and why; ``number`` counts intervals from 1."""
        if number - self.changed < SETTLING_INTERVALS:
            return setting, "settling"
        chosen, reason = self._wanted(window, setting)
        if number <= COLD_INTERVALS and chosen != setting:
            return self._cautious(chosen, setting), "cold"
        if chosen.devices != setting.devices:
            self.changed = number
        return chosen, reason

    def _wanted(self, window: Window, setting: Setting) -> tuple[Setting, Reason]:
        pressed = window.utilization > BUSY and (window.queue > 2 * setting.batch or window.growing)
        self.calm = self.calm + 1 if window.utilization < CALM or self._spare(window, setting) else 0
        if pressed and window.p99_ns > NEAR * self.limit_ns:
            return self._enough(window, setting), "queue"
        if window.p99_ns > self.limit_ns:
            reason: Reason = "late" if window.utilization > BUSY else "latency_bound"
            return self._enough(window, setting), reason
        if self.calm >= CALM_INTERVALS and window.p99_ns < NEAR * self.limit_ns:
            self.calm = 0
            return self._enough(window, setting), "idle"
        return setting, "steady"

    def _spare(self, window: Window, setting: Setting) -> bool:
        """Whether fewer devices would do."""
        return setting.devices > 1 and self._enough(window, setting).devices < setting.devices

    def _cautious(self, chosen: Setting, setting: Setting) -> Setting:
        """One notch of the batch at most while nothing is known yet."""
        if chosen.batch <= setting.batch:
            return setting
        larger = _next(self.space.batches, setting.batch)
        return setting if larger is None else msgspec.structs.replace(setting, batch=larger)

    def _enough(self, window: Window, setting: Setting) -> Setting:
        """The setting with fewest devices, then least latency, that serves what comes and works off the queue; where none does,
        the one that serves most within the limit."""
        needed = HEADROOM * window.arrived + window.queue / DRAIN_S
        able: list[tuple[int, int, Setting]] = []
        most: tuple[float, Setting] = (0.0, setting)
        for candidate, timing in self._candidates():
            capacity = candidate.batch / (timing.interval_ns / 1e9)
            # A request waits up to one interval before its batch begins.
            longest = timing.latency_ns + timing.interval_ns
            if capacity >= needed and longest <= NEAR * self.limit_ns:
                able.append((candidate.devices, timing.latency_ns, candidate))
            elif capacity > most[0] and longest <= self.limit_ns:
                most = capacity, candidate
        return min(able, key=lambda item: item[:2])[2] if able else most[1]

    def _candidates(self) -> Iterator[tuple[Setting, Timing]]:
        for tensor in self.space.tensors:
            for stages in self.space.stages:
                for batch in self.space.batches:
                    setting = Setting(batch, stages, tensor)
                    timing = self.times(setting) if setting.devices <= self.space.devices else None
                    if timing is not None:
                        yield setting, timing


def _next(values: Sequence[int], value: int) -> int | None:
    return next((item for item in values if item > value), None)


REASONS: Final[dict[Reason, Text]] = {
    "cold": Text("冷启动期", "cold start"),
    "queue": Text("队列积压", "the queue grows"),
    "late": Text("P99 超限且设备忙", "P99 beyond the limit, devices busy"),
    "latency_bound": Text("P99 超限但设备不忙", "P99 beyond the limit, devices not busy"),
    "idle": Text("设备空闲", "devices idle"),
    "steady": Text("平稳", "steady"),
    "settling": Text("刚调整过", "just changed"),
}
