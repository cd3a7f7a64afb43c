"""Job: a stream of requests served by a fixed setting and by the adaptive engine, side by side."""

from __future__ import annotations

import msgspec
import numpy as np

from kb.domain.pipeline import ArrivalSpec
from kb.errors import KbError
from kb.profile.simulated.load.arrivals import arrival_times
from kb.profile.simulated.setup import Setup
from kb.tune.adaptive import Policy, Served, Setting, Space, serve
from kb.tune.service import change_ns, possible, times_of
from kb.tune.space import Cut


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The same stream served twice from the same begin. ``change_ns`` is what a new layout costs; ``cuts`` of the space."""

    fixed: Served
    adaptive: Served
    begin: Setting
    change_ns: int
    cuts: tuple[Cut, ...]


def compare_serving(setup: Setup, arrivals: ArrivalSpec, *, seconds: float, limit_ns: float, space: Space, interval: int) -> Comparison:
    """Serve ``seconds`` of ``arrivals``, first with the smallest setting throughout, then adaptively.

    Raises KbError when no setting can run, UsageError for a stream without requests.
    """
    own, cuts = possible(space, setup)
    if not own.batches or not own.tensors or not own.stages:
        raise KbError(
            "no setting can run: " + "; ".join(cut.reason.en for cut in cuts[:3]), do="allow smaller batches, more devices, or another chip"
        )
    random = np.random.default_rng(setup.seed)
    stream = np.asarray(arrival_times(arrivals, seconds, random) * 1e9, np.int64)
    times = times_of(setup, own.devices)
    begin = Setting(own.batches[0], own.stages[0], own.tensors[0])
    pause = change_ns(setup)
    fixed = serve(stream, times, begin, limit_ns=limit_ns, interval=interval, change_ns=pause, decide=None)
    policy = Policy(own, times, limit_ns)
    adaptive = serve(stream, times, begin, limit_ns=limit_ns, interval=interval, change_ns=pause, decide=policy)
    return Comparison(fixed=fixed, adaptive=adaptive, begin=begin, change_ns=pause, cuts=cuts)
