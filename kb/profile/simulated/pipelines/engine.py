"""Event by event: requests wait, are served, and hold their server while the buffer behind it is full.

First come, first served at every node; a node with all places taken holds back those before it (blocking after service).
"""

from __future__ import annotations

import heapq
from bisect import bisect
from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from kb.domain.pipeline import NodeSpec, PipelineSpec, ServiceTime
from kb.errors import UsageError
from kb.profile.simulated.load.arrivals import arrival_times

Floats = npt.NDArray[np.float64]
MOST_VISITS: Final = 20_000_000
_DRAWN: Final = 4096
_ENDLESS: Final = 1 << 60


@dataclass(frozen=True, slots=True)
class Visits:
    """All visits of one node in the order they came, s. ``start`` and ``end`` bound the service, ``leave`` when the server was
    free again; NaN = not yet when the run ended."""

    arrive: Floats
    start: Floats
    end: Floats
    leave: Floats


@dataclass(frozen=True, slots=True)
class Flow:
    """A run: ``arrived`` and ``left`` of each request (NaN = still inside), visits by node name, the seconds simulated."""

    arrived: Floats
    left: Floats
    visits: dict[str, Visits]
    seconds: float


def run_pipeline(spec: PipelineSpec, seconds: float, seed: int) -> Flow:
    """Simulate so many seconds. Deterministic. Raises UsageError for too many visits or a deadlock of full buffers."""
    rng = np.random.default_rng([seed, 1])
    arrived = arrival_times(spec.arrivals, seconds, np.random.default_rng([seed, 0]))
    engine = _Engine(spec, arrived, seconds, rng)
    engine.run()
    return Flow(arrived, engine.left(), engine.visits(), seconds)


class _Node:
    """A node while it runs. ``waiting`` are requests at it, ``held`` servers of other nodes that wait for a place at it."""

    __slots__ = (
        "arrive", "bounds", "buffer", "busy", "concurrency", "draws", "held", "late", "name", "routes", "service", "start", "taken",
        "times", "waiting",
    )  # fmt: skip

    def __init__(self, spec: NodeSpec, place: dict[str, int]) -> None:
        self.name = spec.name
        self.concurrency = spec.concurrency
        self.buffer = _ENDLESS if spec.buffer is None else spec.buffer
        self.service = spec.service
        self.routes = [place[route.to] for route in spec.routes]
        self.bounds = list(np.cumsum([route.share for route in spec.routes]))
        self.waiting: deque[int] = deque()
        self.held: deque[tuple[int, int, int]] = deque()
        self.busy = 0
        self.arrive: list[float] = []
        self.start: list[float] = []
        self.times: list[float] = []
        self.late: list[tuple[int, float]] = []
        self.draws: list[float] = []
        self.taken = 0


class _Engine:
    """One run."""

    def __init__(self, spec: PipelineSpec, arrived: Floats, seconds: float, rng: np.random.Generator) -> None:
        place = {node.name: number for number, node in enumerate(spec.nodes)}
        self._nodes = [_Node(node, place) for node in spec.nodes]
        self._entry = place[spec.entry]
        self._arrived = arrived.tolist()
        self._left = [float("nan")] * len(self._arrived)
        self._seconds, self._rng = seconds, rng
        self._events: list[tuple[float, int, int, int]] = []
        self._outside: deque[int] = deque()
        self._choices: list[float] = []

    def run(self) -> None:
        """Arrivals and ends of services in order of time."""
        events, nodes, seconds = self._events, self._nodes, self._seconds
        arrivals, following, count = self._arrived, 0, len(self._arrived)
        done = 0
        while True:
            arrival = arrivals[following] if following < count else seconds
            if events and events[0][0] <= arrival:
                now, number, request, visit = heapq.heappop(events)
                if now >= seconds:
                    break
                done += 1
                self._finish(nodes[number], number, request, visit, now)
            elif following < count:
                if self._outside or not self._enter(self._entry, following, arrival):
                    self._outside.append(following)
                following += 1
            else:
                break
            if done > MOST_VISITS:
                raise UsageError(f"more than {MOST_VISITS:,} visits", do="simulate fewer seconds or a lower rate")
        if not events and any(node.held for node in nodes):
            stuck = ", ".join(node.name for node in nodes if node.held)
            raise UsageError(
                f"the pipeline has locked itself: full buffers wait for each other at {stuck}", do="make the buffers of that circle larger"
            )

    def _enter(self, number: int, request: int, now: float) -> bool:
        """Let a request in; False when no place is free."""
        node = self._nodes[number]
        if node.busy < node.concurrency:
            node.arrive.append(now)
            self._serve(node, number, request, now)
            return True
        if len(node.waiting) < node.buffer:
            node.arrive.append(now)
            node.waiting.append(request)
            return True
        return False

    def _serve(self, node: _Node, number: int, request: int, now: float) -> None:
        if node.taken == len(node.draws):
            node.draws = drawn(node.service, _DRAWN, self._rng).tolist()
            node.taken = 0
        time = node.draws[node.taken]
        node.taken += 1
        node.busy += 1
        visit = len(node.start)
        node.start.append(now)
        node.times.append(time)
        heapq.heappush(self._events, (now + time, number, request, visit))

    def _finish(self, node: _Node, number: int, request: int, visit: int, now: float) -> None:
        target = self._next(node)
        if target < 0:
            self._left[request] = now
        elif self._nodes[target].held or not self._enter(target, request, now):
            self._nodes[target].held.append((number, request, visit))
            return
        self._free(number, now)

    def _next(self, node: _Node) -> int:
        """The node a request goes to; -1 = out."""
        if not node.routes:
            return -1
        if len(node.routes) == 1 and node.bounds[0] >= 1.0:
            return node.routes[0]
        if not self._choices:
            self._choices = self._rng.random(_DRAWN).tolist()
        choice = bisect(node.bounds, self._choices.pop())
        return node.routes[choice] if choice < len(node.routes) else -1

    def _free(self, number: int, now: float) -> None:
        """A server is free: the next in line is served, then whoever was held back by this node may come, and so on."""
        freed = [number]
        while freed:
            place = freed.pop()
            node = self._nodes[place]
            node.busy -= 1
            if node.waiting:
                self._serve(node, place, node.waiting.popleft(), now)
            while node.held and (node.busy < node.concurrency or len(node.waiting) < node.buffer):
                back, request, visit = node.held.popleft()
                self._enter(place, request, now)
                self._nodes[back].late.append((visit, now))
                freed.append(back)
            if place == self._entry:
                while self._outside and self._enter(place, self._outside[0], now):
                    self._outside.popleft()

    def left(self) -> Floats:
        """When each request left."""
        return np.array(self._left)

    def visits(self) -> dict[str, Visits]:
        """What happened at each node."""
        return {node.name: self._visits(node, number) for number, node in enumerate(self._nodes)}

    def _visits(self, node: _Node, number: int) -> Visits:
        arrive = np.array(node.arrive)
        start = np.full(len(arrive), np.nan)
        start[: len(node.start)] = node.start
        end = np.full(len(arrive), np.nan)
        end[: len(node.start)] = np.array(node.start) + np.array(node.times)
        leave = np.where(end < self._seconds, end, np.nan)
        for visit, when in node.late:
            leave[visit] = when
        for other in self._nodes:
            for back, _, visit in other.held:
                if back == number:
                    leave[visit] = np.nan
        return Visits(arrive, start, end, leave)


def drawn(service: ServiceTime, count: int, rng: np.random.Generator) -> Floats:
    """Service times in s."""
    mean = service.mean_ms / 1e3
    match service.distribution:
        case "exponential":
            return rng.exponential(mean, count)
        case "gamma" if service.cv > 0:
            shape = 1.0 / service.cv**2
            return rng.gamma(shape, mean / shape, count)
        case "lognormal" if service.cv > 0:
            sigma = np.sqrt(np.log1p(service.cv**2))
            return rng.lognormal(np.log(mean) - sigma**2 / 2, sigma, count)
        case "uniform" if service.cv > 0:
            half = mean * service.cv * np.sqrt(3.0)
            return rng.uniform(mean - half, mean + half, count)
    return np.full(count, mean)
