"""A launch order for operators that came without one."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from kb.errors import UsageError
from kb.profile.simulated.graph import Operator


def launch_order(operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """The operators such that everything is made before it is read, otherwise in the order given.

    A value is made by the first operator that puts it out; one that also reads it works in place. Raises UsageError for
    no operators and for a cycle, naming some of those in it.
    """
    if not operators:
        raise UsageError("an empty graph: nothing to run", allowed="at least one operator")
    made: dict[int, int] = {}
    for place, operator in enumerate(operators):
        for tensor in operator.outputs:
            made.setdefault(tensor.id, place)
    readers: dict[int, list[int]] = {}
    missing = [0] * len(operators)
    for place, operator in enumerate(operators):
        for source in {made[tensor.id] for tensor in operator.inputs if tensor.id in made} - {place}:
            readers.setdefault(source, []).append(place)
            missing[place] += 1
    ready = [place for place, count in enumerate(missing) if not count]
    heapify(ready)
    order = []
    while ready:
        place = heappop(ready)
        order.append(place)
        for reader in readers.get(place, ()):
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, reader)
    if len(order) < len(operators):
        stuck = [operators[place].op_type for place, count in enumerate(missing) if count]
        raise UsageError(
            f"a cyclic graph: {', '.join(stuck[:5])} wait for each other", allowed="operators whose inputs are made before them"
        )
    return tuple(operators[place] for place in order)
