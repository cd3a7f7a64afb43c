"""The host launches, the device executes, ranks meet: discrete events, and why the device was ever idle."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field

from kb.errors import InternalFaultError
from kb.profile.simulated.plan import HOST_CAUSES, IDLE_CAUSES, Call, HostCosts, HostEvent, Plan

_PLACE = {cause: place for place, cause in enumerate(IDLE_CAUSES)}
_QUEUE, _BARRIER, _LAUNCH = _PLACE["queue"], _PLACE["barrier"], _PLACE["launch"]
_HOST = tuple(_PLACE[cause] for cause in HOST_CAUSES)
NO_WAIT = (0,) * len(IDLE_CAUSES)
Wait = tuple[int, ...]
Key = tuple[object, ...]


@dataclass(slots=True)
class Record:
    """What happened in one step of one rank, ns. Lists by place; ``waits`` in the order of ``IDLE_CAUSES``.

    ``launched`` are (place, begin, end) of host launches; ``host`` (event, begin, end); ``arrivals`` by place of a call.
    ``stream`` of each place. ``end`` is the begin of the next step and ``tail`` the idle ns before it.
    """

    begin: int
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    stream: list[int] = field(default_factory=list)
    launched: list[tuple[int, int, int]] = field(default_factory=list)
    host: list[tuple[HostEvent, int, int]] = field(default_factory=list)
    met: dict[int, int] = field(default_factory=dict)
    end: int = 0
    tail: int = 0


@dataclass(slots=True)
class Post:
    """A call that waits for its turn on a rank's communication stream."""

    rank: int
    place: int
    call: Call
    ready: int
    duration: int


def run_step(plans: Mapping[int, Plan], begins: Mapping[int, int], costs: HostCosts) -> dict[int, Record]:
    """One step of all ranks. Each begins at its own time with an idle device; communication makes them meet.

    Raises InternalFaultError when ranks wait for each other for ever.
    """
    records = {rank: Record(begins[rank]) for rank in plans}
    meeting = _Meeting(records)
    going = {rank: _Lane(rank, plan, records[rank], meeting, costs).run() for rank, plan in plans.items()}
    while going:
        before = meeting.settled, len(going)
        for rank in list(going):
            try:
                next(going[rank])
            except StopIteration:
                del going[rank]
        meeting.settle()
        if going and (meeting.settled, len(going)) == before and not meeting.posted_since():
            raise InternalFaultError(f"ranks {sorted(going)} wait for each other", do="report the options that led here")
    meeting.settle()
    return records


class _Lane:
    """One rank while a step runs. ``credit`` holds the ns its launches may be late for each cause."""

    def __init__(self, rank: int, plan: Plan, record: Record, meeting: _Meeting, costs: HostCosts) -> None:
        self._rank, self._plan, self._record, self._meeting, self._costs = rank, plan, record, meeting, costs
        self._host = self._device = self._resumed = record.begin
        self._barrier = 0
        self._credit = [0] * len(IDLE_CAUSES)
        self._computed: list[int] = []
        self._pending: list[int] = []
        self._free = [record.begin] * plan.streams
        self._running: list[tuple[int, float]] = []
        self._back_to_back = (0, costs.gap, *NO_WAIT[2:])

    def run(self) -> Generator[None, None, None]:
        """The whole step, yielding whenever a communication that has not settled is needed."""
        plan = self._plan
        halts, launches, calls = plan.before.keys() | plan.joins, plan.launches, plan.calls
        for place, duration in enumerate(plan.durations):
            if place in halts:
                yield from self._halt(place)
            if launches[place]:
                self._launch(place, launches[place])
            if place in calls:
                yield from self._call(place, calls[place], duration)
            else:
                self._kernel(place, duration)
        yield from self._settled(self._pending)
        record = self._record
        last = max([self._device, *(record.ends[place] for place in calls)])
        record.end = max(self._host, last) + self._costs.sync_return
        record.tail = record.end - last

    def _settled(self, places: Sequence[int]) -> Generator[None, None, None]:
        while not self._meeting.all_settled(self._rank, places):
            yield

    def _halt(self, place: int) -> Generator[None, None, None]:
        """The host's events ahead of a place, and the wait for communication."""
        for event in self._plan.before.get(place, ()):
            if event.waits:
                yield from self._synchronize(event)
            else:
                self._record.host.append((event, self._host, self._host + event.ns))
            self._host += event.ns
            self._credit[_PLACE[event.cause]] += event.ns
        if place in self._plan.joins:
            yield from self._settled(self._pending)
            self._barrier = max([self._barrier, *(self._record.ends[earlier] for earlier in self._pending)])
            self._pending = []

    def _synchronize(self, event: HostEvent) -> Generator[None, None, None]:
        yield from self._settled(self._pending)
        self._device = max([self._device, *(self._record.ends[earlier] for earlier in self._pending)])
        self._pending = []
        begin, self._host = self._host, max(self._host, self._device) + self._costs.sync_return
        self._record.host.append((event, begin, self._host + event.ns))
        self._credit = [0] * len(IDLE_CAUSES)
        self._resumed = self._host

    def _launch(self, place: int, cost: int) -> None:
        """The host submits a place, once the queue has room."""
        over = len(self._computed) - self._plan.depth
        if over >= 0 and self._computed[over] > self._host:
            self._credit[_QUEUE] += self._computed[over] - self._host
            self._host = self._computed[over]
        self._record.launched.append((place, self._host, self._host + cost))
        self._host += cost

    def _call(self, place: int, call: Call, duration: int) -> Generator[None, None, None]:
        record = self._record
        ready = max(self._host, self._device, self._barrier)
        record.starts.append(ready)
        record.ends.append(ready)
        record.waits.append(NO_WAIT)
        record.stream.append(-1)
        self._meeting.post(Post(self._rank, place, call, ready, duration))
        if not call.blocking:
            self._pending.append(place)
            return
        yield from self._settled((place,))
        self._barrier = max(self._barrier, record.ends[place])

    def _kernel(self, place: int, duration: int) -> None:
        record, device, plan = self._record, self._device, self._plan
        lane, follows = 0, device + self._costs.gap
        if plan.needs is not None:
            lane, begun = _place_on_stream(place, plan, self._free, self._running, record.ends)
            start, wait = _next(begun, device, self._resumed, self._host, self._barrier, self._credit, self._costs.gap)
            self._running.append((start + duration, plan.shares[place]))
            self._free[lane] = start + duration
        elif self._host <= follows and self._barrier <= follows and self._resumed <= device:
            start, wait = follows, self._back_to_back
        else:
            start, wait = _next(device, device, self._resumed, self._host, self._barrier, self._credit, self._costs.gap)
        end = start + duration
        if end > device:
            self._device = end
        record.starts.append(start)
        record.ends.append(end)
        record.waits.append(wait)
        record.stream.append(lane)
        self._computed.append(self._device)


def _next(begun: int, device: int, resumed: int, host: int, barrier: int, credit: list[int], gap: int) -> tuple[int, Wait]:
    """Start of the next kernel, and the device's idle time before it by cause.

    ``begun`` is when its stream is free, ``device`` when the device falls idle; ``credit`` holds the ns the launch may be
    late for each cause, and loses what it explains.
    """
    free = max(begun, resumed)
    start = max(host, free + gap, barrier)
    if start <= device:
        return start, NO_WAIT
    idle = max(device, resumed)
    if barrier <= free + gap >= host and begun == device:
        return start, (idle - device, start - idle, *NO_WAIT[2:])
    parts = [0] * len(IDLE_CAUSES)
    parts[0] = max(0, idle - device)
    left = start - max(idle, device)
    parts[1] = min(gap, left)
    left -= parts[1]
    beyond = min(left, max(0, barrier - max(host, free + gap)))
    parts[_BARRIER] = beyond
    left -= beyond
    for place in (_QUEUE, *_HOST):
        taken = min(left, credit[place])
        if taken:
            parts[place] = taken
            credit[place] -= taken
            left -= taken
    parts[_LAUNCH] = left
    return start, tuple(parts)


def _place_on_stream(place: int, plan: Plan, free: Sequence[int], running: list[tuple[int, float]], ends: Sequence[int]) -> tuple[int, int]:
    """(stream, earliest begin): its inputs are made and the cores it fills are free."""
    needs = plan.needs[place] if plan.needs is not None else ()
    ready = max((ends[need] for need in needs), default=0)
    lane = min(range(plan.streams), key=lambda number: (max(free[number], ready), number))
    begin = max(free[lane], ready)
    share = plan.shares[place]
    while True:
        running[:] = [(end, filled) for end, filled in running if end > begin]
        if not running or sum(filled for _, filled in running) + share <= 1.0:
            return lane, begin
        begin = min(end for end, _ in running)


class _Meeting:
    """Calls of all ranks: each rank's are served in order, and a communication starts when its last member has come."""

    def __init__(self, records: Mapping[int, Record]) -> None:
        self._records = records
        self._waiting: dict[int, list[Post]] = {rank: [] for rank in records}
        self._free = {rank: record.begin for rank, record in records.items()}
        self._sent: dict[Key, int] = {}
        self._done: set[tuple[int, int]] = set()
        self._posted = False
        self.settled = 0

    def post(self, post: Post) -> None:
        """A rank has called."""
        self._waiting[post.rank].append(post)
        self._posted = True

    def posted_since(self) -> bool:
        """Whether anybody called since the last question."""
        posted, self._posted = self._posted, False
        return posted

    def all_settled(self, rank: int, places: Sequence[int]) -> bool:
        """Whether these calls of a rank have ended."""
        return all((rank, place) in self._done for place in places)

    def settle(self) -> None:
        """End every communication that can."""
        moved = True
        while moved:
            moved = False
            for rank in self._waiting:
                while self._waiting[rank] and self._serve(self._waiting[rank][0]):
                    moved = True

    def _serve(self, post: Post) -> bool:
        call = post.call
        if len(call.members) == 1 or call.eager:
            start = max(post.ready, self._free[post.rank])
            self._finish(post, start, start, start + post.duration)
            self._sent[call.key] = start + post.duration
            return True
        if call.key[0] == "receive":
            sent = self._sent.get(call.key[1:])
            if sent is None:
                return False
            start = max(post.ready, self._free[post.rank])
            end = max(start + 1, sent)
            self._finish(post, start, max(start, min(end, sent - post.duration)), end)
            return True
        heads = [self._waiting[member][0] for member in call.members if self._waiting.get(member)]
        if len(heads) < len(call.members) or any(head.call.key != call.key for head in heads):
            return False
        starts = [max(head.ready, self._free[head.rank]) for head in heads]
        met = max(starts)
        end = met + max(head.duration for head in heads)
        for head, start in zip(heads, starts, strict=True):
            self._finish(head, start, met, end)
        return True

    def _finish(self, post: Post, start: int, met: int, end: int) -> None:
        record = self._records[post.rank]
        record.starts[post.place], record.ends[post.place], record.met[post.place] = start, end, met
        self._free[post.rank] = end
        self._waiting[post.rank].pop(0)
        self._done.add((post.rank, post.place))
        self.settled += 1
