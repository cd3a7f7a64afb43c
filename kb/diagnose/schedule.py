"""Replay of a pipeline schedule: what a step would take with other stage times."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kb.errors import UsageError

Operation = tuple[bool, int]
"""(is it a forward pass, index of the microbatch)."""


class Replay(msgspec.Struct, frozen=True):
    """``makespan``: end of the last pass. ``idle``: per stage, makespan minus its own work. Unit of the input times."""

    makespan: float
    idle: tuple[float, ...]


def replay(forward: Sequence[float], backward: Sequence[float], microbatches: int) -> Replay:
    """Run the one-forward-one-backward schedule (as Megatron does it) and time it.

    ``forward`` and ``backward`` are the times of one microbatch on each of p stages; transfers are free, so the
    replay shows only what the schedule and the stage times cost. Stage s starts with min(m, p - 1 - s) forward
    passes, then alternates forward and backward, then drains. Runs in O(p x m). Raises UsageError for lists of
    different length, no stage, or no microbatch.
    """
    if not forward or len(forward) != len(backward) or microbatches < 1:
        raise UsageError("a schedule needs equal, non-empty lists of stage times and at least one microbatch")
    stages = len(forward)
    orders = [operations(stage, stages, microbatches) for stage in range(stages)]
    ends: list[dict[Operation, float]] = [{} for _ in range(stages)]
    clocks = [0.0] * stages
    while any(len(done) < len(order) for done, order in zip(ends, orders, strict=True)):
        for stage in range(stages):
            while (ready := _ready(orders[stage], stage, ends)) is not None:
                operation = orders[stage][len(ends[stage])]
                clocks[stage] = max(clocks[stage], ready) + (forward if operation[0] else backward)[stage]
                ends[stage][operation] = clocks[stage]
    makespan = max(clocks)
    work = [microbatches * (forward[stage] + backward[stage]) for stage in range(stages)]
    return Replay(makespan, tuple(makespan - own for own in work))


def operations(stage: int, stages: int, microbatches: int) -> tuple[Operation, ...]:
    """The order in which one stage runs its passes."""
    warmup = min(microbatches, stages - 1 - stage)
    order: list[Operation] = [(True, index) for index in range(warmup)]
    for index in range(warmup, microbatches):
        order += [(True, index), (False, index - warmup)]
    order += [(False, index) for index in range(microbatches - warmup, microbatches)]
    return tuple(order)


def _ready(order: Sequence[Operation], stage: int, ends: Sequence[dict[Operation, float]]) -> float | None:
    """When the input of the stage's next pass exists; None while its producer has not run, or after the last pass."""
    if len(ends[stage]) == len(order):
        return None
    operation = order[len(ends[stage])]
    is_forward, index = operation
    if is_forward:
        return 0.0 if stage == 0 else ends[stage - 1].get(operation)
    # A stage runs its own forward pass of a microbatch first, by the order; only the neighbour can be missing.
    return ends[stage][(True, index)] if stage == len(ends) - 1 else ends[stage + 1].get(operation)


def microbatches_of_batched(exchanges: int, stages: int) -> int | None:
    """Microbatches behind ``exchanges`` batched send-receives on the first stage.

    Megatron's schedule makes p - 1 sends in the warm-up, m - p + 1 exchanges in the steady part and p - 1
    receives in the drain, m + p - 1 in all; with fewer microbatches than p - 1 each is sent and received alone,
    2 m in all. None when the count fits neither.
    """
    if exchanges >= 2 * (stages - 1):
        return exchanges - (stages - 1) or None
    return exchanges // 2 if exchanges > 0 and exchanges % 2 == 0 else None
