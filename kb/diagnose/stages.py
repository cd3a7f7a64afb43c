"""Pipeline stages side by side: their compute, their waiting, their microbatches, and what only one of them runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from kb.diagnose.operators import starting
from kb.diagnose.schedule import Replay, microbatches_of_batched, replay
from kb.diagnose.view import ClusterView, RankView
from kb.domain.thresholds import Thresholds


@dataclass(frozen=True, slots=True)
class StageLoad:
    """One stage: ``compute_ns`` and ``waiting_ns`` (exposed exchange with other stages, bubble included) are medians
    over its ``ranks``; ``waiting_known`` is False where exchanges cannot be told from other communication, which
    then counts whole; ``step_ns`` is the median step."""

    stage: int
    ranks: tuple[RankView, ...]
    compute_ns: int
    waiting_ns: int
    waiting_known: bool
    step_ns: int

    def times(self, other: StageLoad) -> float:
        """This stage's compute as a multiple of ``other``'s; infinite when that one computes nothing."""
        return self.compute_ns / other.compute_ns if other.compute_ns else math.inf


@dataclass(frozen=True, slots=True)
class Coverage:
    """What of the job was captured and could be accounted: global ``ranks``, ``stages``, how many ranks were ``used``;
    ``world_size`` and ``pipeline`` (number of stages) of the job, None where unknown."""

    ranks: tuple[int, ...]
    stages: tuple[int, ...]
    used: int
    world_size: int | None
    pipeline: int | None

    @property
    def all_stages(self) -> bool:
        """Whether no stage is known to be missing."""
        return self.pipeline in (None, len(self.stages))

    @property
    def whole(self) -> bool:
        """Whether no rank is known to be missing."""
        return self.all_stages and self.world_size in (None, self.used)


@dataclass(frozen=True, slots=True)
class Balance:
    """What perfect balance of the same total compute would change, ns: ``saved_ns`` off the step, ``idle_ns`` off the
    lightest stage's waiting. ``by_replay`` is False when it is the limit of many microbatches.
    ``split_matters`` says whether the forward-backward split changes the result by more than a hundredth."""

    saved_ns: int
    idle_ns: int
    by_replay: bool
    split_matters: bool


def stage_loads(view: ClusterView) -> tuple[StageLoad, ...]:
    """Loads of the stages with an accounted step, in stage order."""
    return tuple(_load(stage, usable) for stage, ranks in view.stages.items() if (usable := _usable(ranks)))


def coverage(view: ClusterView, loads: Sequence[StageLoad]) -> Coverage:
    """What the loads stand for."""
    used = sum(len(load.ranks) for load in loads)
    return Coverage(view.captured_ranks, tuple(load.stage for load in loads), used, view.world_size, view.pipeline)


def interleaved(view: ClusterView) -> bool:
    """Whether the job states several chunks of the model on each stage: its schedule is not the one that is replayed."""
    return any((rank.session.meta.parallel.virtual or 1) > 1 for rank in view.ranks)


def microbatches(view: ClusterView, stages: int) -> int | None:
    """Microbatches of a step, read off the first stage's exchanges; None where they do not tell.

    Batched exchanges number m + p - 1, separate receives m. With context parallelism exchanges serve attention
    too, with chunks of the model on each stage every one of them makes its own, and ranks of the stage that disagree say
    nothing.
    """
    first = min(view.stages)
    if interleaved(view):
        return None
    if first != 0 or any((view_.session.meta.parallel.context or 1) > 1 for view_ in view.ranks):
        return None
    counts = {_microbatches_of(rank, stages) for rank in view.stages[first]}
    return counts.pop() if len(counts) == 1 else None


def balance(loads: Sequence[StageLoad], count: int | None, thresholds: Thresholds, *, training: bool) -> Balance:
    """Replay the step with the stages as they are and with equal stages of the same total.

    Without a count, or for very many microbatches, the limit is used: the longest stage sets the pace, so balance
    saves largest minus mean. The replay takes the largest saving over the named forward shares, since it is a bound.
    """
    compute = [load.compute_ns for load in loads]
    mean, largest, smallest = sum(compute) / len(compute), max(compute), min(compute)
    if count is None or count > thresholds["microbatches_replayed"]:
        return Balance(round(largest - mean), largest - smallest, by_replay=False, split_matters=False)
    names = ("low", "usual", "high")
    shares = [thresholds[f"forward_share_{name}"] for name in names] if training else [1.0]
    lightest = compute.index(smallest)
    changes = [_change(compute, count, share, lightest) for share in shares]
    saved = [change[0] for change in changes]
    best = max(changes)
    # Equal stages are not always the best ones: the first stage can carry a little more for free.
    return Balance(
        max(0, round(best[0])), max(0, round(best[1])), by_replay=True, split_matters=max(saved) - min(saved) > 0.01 * abs(max(saved))
    )


def extra_operators(heavy: StageLoad, light: StageLoad) -> tuple[tuple[str, int, RankView], ...]:
    """Operator types on which the heavy stage spends more than the light one: (type, extra ns, the rank it was seen
    on), largest first. Empty unless both stages have a rank with kernel types."""
    here, there = (next((rank for rank in load.ranks if rank.typed()), None) for load in (heavy, light))
    if here is None or there is None:
        return ()
    other = there.totals_by_type()
    extra = [(name, spent - other.get(name, (0, 0))[0], here) for name, (spent, _) in here.totals_by_type().items()]
    return tuple(sorted((row for row in extra if row[1] > 0), key=lambda row: -row[1]))


def _usable(ranks: Sequence[RankView]) -> tuple[RankView, ...]:
    return tuple(rank for rank in ranks if rank.accounting.step_ns and not rank.books.violations)


def _load(stage: int, ranks: tuple[RankView, ...]) -> StageLoad:
    waits = [_waiting_ns(rank) for rank in ranks]
    return StageLoad(
        stage=stage,
        ranks=ranks,
        compute_ns=round(median(rank.accounting.parts["compute"] for rank in ranks)),
        waiting_ns=round(median(wait for wait, _ in waits)),
        waiting_known=all(known for _, known in waits),
        step_ns=round(median(rank.accounting.step_ns for rank in ranks)),
    )


def _waiting_ns(rank: RankView) -> tuple[int, bool]:
    parts = rank.accounting.parts
    exposed = parts["comm_exposed"] + parts["idle_bubble"]
    durations = _exchange_durations(rank)
    if durations is None:
        return exposed, False
    return min(exposed, max(durations, parts["idle_bubble"])), True


def _exchange_durations(rank: RankView) -> int | None:
    """Summed duration of point-to-point operators; None when no table names them."""
    if rank.comm_ops is not None:
        ops = rank.comm_ops
        return int(ops["duration_ns"][ops["kind"] == rank.session.code("p2p")].sum())
    if rank.kernels is None:
        return None
    prefixes = tuple(prefix for names in rank.classes.point_to_point.values() for prefix in names)
    return int(rank.kernels["duration_ns"][starting(rank.session, rank.kernels["name"], prefixes)].sum())


def _microbatches_of(rank: RankView, stages: int) -> int | None:
    table = rank.comm_ops if rank.comm_ops is not None else rank.kernels
    if table is None:
        return None
    counts = {
        way: int(np.count_nonzero(starting(rank.session, table["name"], prefixes))) for way, prefixes in rank.classes.point_to_point.items()
    }
    if counts["batched"]:
        return microbatches_of_batched(counts["batched"], stages)
    return counts["receive"] or None


def _change(compute: Sequence[int], count: int, forward_share: float, lightest: int) -> tuple[float, float]:
    equal = [sum(compute) / len(compute)] * len(compute)
    seen, even = (_replayed(stages, count, forward_share) for stages in (compute, equal))
    return seen.makespan - even.makespan, seen.idle[lightest] - even.idle[lightest]


def _replayed(compute: Sequence[float], count: int, forward_share: float) -> Replay:
    forward = [spent / count * forward_share for spent in compute]
    backward = [spent / count * (1.0 - forward_share) for spent in compute]
    return replay(forward, backward, count)
