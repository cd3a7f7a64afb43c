"""A server of a language model under load: requests wait, prompts are read in, tokens come out batch by batch.

Continuous batching: whenever a place in the batch is free, waiting prompts are read in first (together, up to a number of
tokens), then every running request gets its next token. Times of both come from the simulated model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from kb.errors import UsageError
from kb.profile.simulated.load.arrivals import Floats

MOST_TOKENS: Final = 50_000_000
Ints = npt.NDArray[np.int64]


class ServerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """``batch``: requests that run together at most. ``prompt_tokens``: tokens read in by one prefill at most.
    ``prompt`` and ``output``: mean tokens of a request; ``cv`` their coefficient of variation (log-normal)."""

    batch: int = 16
    prompt_tokens: int = 4096
    prompt: int = 512
    output: int = 128
    cv: float = 0.5


class StepTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds (and W meanwhile) of a prefill by tokens, and of one decode step by batch, each between and beyond the points given;
    ``idle_w`` without work."""

    prefill_tokens: tuple[float, ...]
    prefill_s: tuple[float, ...]
    decode_batch: tuple[float, ...]
    decode_s: tuple[float, ...]
    prefill_w: tuple[float, ...] = ()
    decode_w: tuple[float, ...] = ()
    idle_w: float = 0.0

    def prefill(self, tokens: int) -> float:
        """One pass over so many prompt tokens."""
        return _read(self.prefill_tokens, self.prefill_s, tokens)

    def decode(self, batch: int) -> float:
        """The next token of so many requests."""
        return _read(self.decode_batch, self.decode_s, batch)

    def prefill_power(self, tokens: int) -> float:
        """W while so many prompt tokens are read in."""
        return float(np.interp(tokens, self.prefill_tokens, self.prefill_w)) if self.prefill_w else 0.0

    def decode_power(self, batch: int) -> float:
        """W while so many requests get their next token."""
        return float(np.interp(batch, self.decode_batch, self.decode_w)) if self.decode_w else 0.0


def _read(points: Sequence[float], values: Sequence[float], at: float) -> float:
    """Linear between points; beyond the last one on with the last slope; never below the first value."""
    if at <= points[-1] or len(points) < 2:
        return float(np.interp(at, points, values))
    slope = (values[-1] - values[-2]) / (points[-1] - points[-2])
    return values[-1] + max(0.0, slope) * (at - points[-1])


class ServingFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Served requests after the warm-up. TTFT: arrival to first token; TPOT: time a token after the first; ms.

    ``energy_1000_kj``: of the chip over the whole run, idle time included, for every 1,000 requests that ended.
    """

    offered: float
    throughput: float
    tokens_per_s: float
    ttft_p50_ms: float
    ttft_p99_ms: float
    tpot_p50_ms: float
    tpot_p99_ms: float
    latency_p50_ms: float
    latency_p99_ms: float
    batch_mean: float
    busy: float
    waiting_max: int
    power_w: float
    energy_1000_kj: float
    stable: bool


def serve(arrived: Floats, seconds: float, spec: ServerSpec, times: StepTimes, seed: int) -> ServingFigures:
    """Serve what arrives in so many seconds. Raises UsageError for impossible settings."""
    if min(spec.batch, spec.prompt_tokens, spec.prompt, spec.output) < 1 or spec.cv < 0:
        raise UsageError("a server needs a batch, prompts and outputs of at least 1", allowed="counts from 1 up, cv from 0 up")
    rng = np.random.default_rng([seed, 7])
    prompts, outputs = lengths(spec.prompt, spec.cv, len(arrived), rng), lengths(spec.output, spec.cv, len(arrived), rng)
    if int(outputs.sum()) > MOST_TOKENS:
        raise UsageError(f"{int(outputs.sum()):,} tokens are too many", do="simulate fewer seconds or a lower rate")
    return _Server(arrived, prompts, outputs, seconds, spec, times).run()


def lengths(mean: int, cv: float, count: int, rng: np.random.Generator) -> Ints:
    """Log-normal numbers of tokens from 1 up."""
    sigma = np.sqrt(np.log1p(cv**2))
    return np.maximum(1, np.round(rng.lognormal(np.log(mean) - sigma**2 / 2, sigma, count))).astype(np.int64)


class _Server:
    """One run."""

    def __init__(self, arrived: Floats, prompts: Ints, outputs: Ints, seconds: float, spec: ServerSpec, times: StepTimes) -> None:
        self._arrived, self._prompts, self._outputs = arrived.tolist(), prompts.tolist(), outputs.tolist()
        self._seconds, self._spec, self._times = seconds, spec, times
        self._decode = [0.0] + [times.decode(batch) for batch in range(1, spec.batch + 1)]
        self._waiting: deque[int] = deque()
        self._first = np.full(len(arrived), np.nan)
        self._last = np.full(len(arrived), np.nan)
        self._busy = self._batch_time = self._joule = 0.0
        self._longest = 0

    def run(self) -> ServingFigures:
        """Until the time is over."""
        now, following, count = 0.0, 0, len(self._arrived)
        running: dict[int, int] = {}
        while now < self._seconds:
            while following < count and self._arrived[following] <= now:
                self._waiting.append(following)
                following += 1
            self._longest = max(self._longest, len(self._waiting))
            if self._waiting and len(running) < self._spec.batch:
                now = self._read_in(now, running)
            elif running:
                now = self._next_tokens(now, running, self._arrived[following] if following < count else self._seconds)
            elif following < count:
                now = self._arrived[following]
            else:
                break
        return self._figures(following)

    def _read_in(self, now: float, running: dict[int, int]) -> float:
        """Read in as many waiting prompts as there are places and tokens for; each gets its first token."""
        taken: list[int] = []
        tokens = 0
        while self._waiting and len(running) + len(taken) < self._spec.batch:
            length = self._prompts[self._waiting[0]]
            if taken and tokens + length > self._spec.prompt_tokens:
                break
            taken.append(self._waiting.popleft())
            tokens += length
        spent = self._times.prefill(tokens)
        self._busy += spent
        self._joule += spent * self._times.prefill_power(tokens)
        for request in taken:
            self._first[request] = now + spent
            if self._outputs[request] > 1:
                running[request] = self._outputs[request] - 1
            else:
                self._last[request] = now + spent
        return now + spent

    def _next_tokens(self, now: float, running: dict[int, int], arrival: float) -> float:
        """Decode steps until a request ends, one comes that has a place, or the time is over."""
        step = self._decode[len(running)]
        count = min(running.values())
        if len(running) < self._spec.batch and arrival > now:
            count = min(count, max(1, int((arrival - now) / step) + 1))
        count = min(count, max(1, int((self._seconds - now) / step) + 1))
        spent = count * step
        self._busy += spent
        self._batch_time += spent * len(running)
        self._joule += spent * self._times.decode_power(len(running))
        for request in list(running):
            running[request] -= count
            if not running[request]:
                del running[request]
                self._last[request] = now + spent
        return now + spent

    def _figures(self, seen: int) -> ServingFigures:
        begin = self._seconds * 0.1
        arrived = np.array(self._arrived)
        outputs = np.array(self._outputs, dtype=np.int64)
        done = np.isfinite(self._last) & (self._last <= self._seconds)
        ended = done & (self._last >= begin)
        counted = done & (arrived >= begin)
        several = counted & (outputs > 1)
        ttft = (self._first - arrived)[counted] * 1e3
        tpot = ((self._last - self._first)[several] / np.maximum(1, outputs[several] - 1)) * 1e3
        latency = (self._last - arrived)[counted] * 1e3
        span = self._seconds - begin
        joule = self._joule + max(0.0, self._seconds - self._busy) * self._times.idle_w
        left = len(self._waiting) + (len(self._arrived) - seen)
        return ServingFigures(
            offered=len(self._arrived) / self._seconds,
            throughput=float(ended.sum() / span),
            tokens_per_s=float(outputs[ended].sum() / span),
            ttft_p50_ms=_quantile(ttft, 0.5),
            ttft_p99_ms=_quantile(ttft, 0.99),
            tpot_p50_ms=_quantile(tpot, 0.5),
            tpot_p99_ms=_quantile(tpot, 0.99),
            latency_p50_ms=_quantile(latency, 0.5),
            latency_p99_ms=_quantile(latency, 0.99),
            batch_mean=self._batch_time / self._busy if self._busy else 0.0,
            busy=min(1.0, self._busy / self._seconds),
            waiting_max=self._longest,
            power_w=joule / self._seconds,
            energy_1000_kj=joule / max(1, int(done.sum())),
            stable=left <= max(self._spec.batch, 0.02 * len(self._arrived)),
        )


def _quantile(values: Floats, share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else float("nan")


Cost = tuple[float, float]
"""Seconds of a step, and W meanwhile."""


def step_times(prefill: Callable[[int], Cost], decode: Callable[[int], Cost], spec: ServerSpec, *, idle_w: float = 0.0) -> StepTimes:
    """Times and power at a few points up to what the server can meet."""
    tokens = sorted({max(1, spec.prompt_tokens // part) for part in (16, 4, 1)})
    batches = sorted({1, max(1, spec.batch // 4), spec.batch})
    read, next_ = [prefill(count) for count in tokens], [decode(count) for count in batches]
    return StepTimes(
        prefill_tokens=tuple(map(float, tokens)),
        prefill_s=tuple(seconds for seconds, _ in read),
        decode_batch=tuple(map(float, batches)),
        decode_s=tuple(seconds for seconds, _ in next_),
        prefill_w=tuple(watts for _, watts in read),
        decode_w=tuple(watts for _, watts in next_),
        idle_w=idle_w,
    )
