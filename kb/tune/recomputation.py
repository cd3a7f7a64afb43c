"""Which values of a training step are dropped after the forward pass and made again before their gradients."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Sequence
from itertools import accumulate

from kb.profile.simulated.graph import Graph, Operator
from kb.profile.simulated.memory import lifetimes

Span = tuple[int, int, int]
"""Alive from the operator at the first to the one at the second place; B."""


def largest_live(alive: Sequence[Span]) -> int:
    """The largest sum of sizes alive at one operator, B."""
    changes: Counter[int] = Counter()
    for first, last, size in alive:
        changes[first] += size
        changes[last + 1] -= size
    return max(accumulate(changes[place] for place in sorted(changes)), default=0)


def checkpointed(graph: Graph) -> tuple[list[Span], tuple[int, ...]]:
    """Lifetimes when the forward pass is cut into about the root of its length and every part is made again before its
    gradients, and the places of the operators that run twice. In-place writing is not combined with it.

    The turn from forward to backward is where most is alive. What a later part of the forward pass reads is kept.
    """
    made, reads = _uses(graph)
    turn = turn_of(lifetimes(graph))
    parts = max(1, math.isqrt(turn))
    length = -(-turn // parts) if turn else 1
    late = {name: [place for place in places if place >= turn] for name, places in reads.items()}
    dropped = {name for name, first in made.items() if first < turn and late.get(name) and not _leaves(first, reads[name], turn, length)}
    begin: dict[int, int] = {}
    for name in dropped:
        part = made[name] // length
        begin[part] = min(begin.get(part, len(graph.operators)), late[name][0])
    again = tuple(place for place in range(turn) if place // length in begin and _makes(graph.operators[place], dropped))
    needed: dict[int, int] = {}
    for place in again:
        for value in graph.operators[place].inputs:
            needed[value.id] = max(needed.get(value.id, 0), begin[place // length])
    spans: list[Span] = []
    sizes = {value.id: value.bytes for operator in graph.operators for value in (*operator.inputs, *operator.outputs) if not value.weight}
    for name, size in sizes.items():
        uses = sorted({*reads.get(name, ()), *([made[name]] if name in made else ())})
        if not uses or not size:
            continue
        if name in dropped:
            early = [place for place in uses if place < turn]
            spans += [(early[0], early[-1], size), (begin[made[name] // length], uses[-1], size)]
        else:
            spans.append((uses[0], max(uses[-1], needed.get(name, 0)), size))
    return sorted(spans), again


def _uses(graph: Graph) -> tuple[dict[int, int], dict[int, list[int]]]:
    """Where each value is first made, and every place that reads it (or writes it again)."""
    made: dict[int, int] = {}
    reads: dict[int, list[int]] = {}
    for place, operator in enumerate(graph.operators):
        for value in operator.inputs:
            reads.setdefault(value.id, []).append(place)
        for value in operator.outputs:
            if value.id in made or value.id in reads:
                reads.setdefault(value.id, []).append(place)
            else:
                made[value.id] = place
    return made, reads


def turn_of(alive: Sequence[Span]) -> int:
    """The first operator at which most B are alive: in a training step where forward turns into backward."""
    changes: Counter[int] = Counter()
    for first, last, size in alive:
        changes[first] += size
        changes[last + 1] -= size
    live, most, when = 0, -1, 0
    for place in sorted(changes):
        live += changes[place]
        if live > most:
            most, when = live, place
    return when


def _leaves(first: int, reads: Sequence[int], turn: int, length: int) -> bool:
    """Whether a later part of the forward pass reads a value: it is the checkpoint between them."""
    return any(place < turn and place // length != first // length for place in reads)


def _makes(operator: Operator, names: Container[int]) -> bool:
    return any(value.id in names for value in operator.outputs)
