"""What of an operand is still in L2 when a kernel reads it: reuse distance between kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kb.profile.simulated.graph import Operator, Tensor, bytes_read


class Traffic(msgspec.Struct, frozen=True):
    """Bytes one kernel moves at least once.

    ``cold`` for each input: B that must come from device memory; ``read`` and ``written``: B in all;
    ``spilled``: B of the outputs that do not fit in L2 and stream to device memory.
    """

    cold: tuple[float, ...]
    read: int
    written: int
    spilled: float

    @property
    def hbm_bytes(self) -> float:
        """B over the memory interface."""
        return sum(self.cold) + self.spilled


def kept(footprint: float, capacity: float) -> float:
    """Share (0..1) of a working set of ``footprint`` B that survives in ``capacity`` B of L2.

    All of it up to the capacity, none from twice the capacity on (a cyclic sweep evicts what it needs
    next), linear between. Falls with the footprint and rises with the capacity.
    """
    if footprint <= capacity:
        return 1.0
    return max(0.0, 2.0 - footprint / capacity)


def traffic(operators: Sequence[Operator], capacity: float) -> tuple[Traffic, ...]:
    """The traffic of every kernel when the sequence runs over and over (the second pass is reported).

    A tensor's reuse distance is the B of all distinct tensors touched since its last use, its own
    included. Removing kernels from the sequence can only shorten the others' distances.
    """
    recency = _Recency(2.0 * capacity)
    for operator in operators:
        recency.touch(operator)
    recency.next_pass()
    return tuple(_serve(recency, operator, capacity) for operator in operators)


def _serve(recency: _Recency, operator: Operator, capacity: float) -> Traffic:
    sizes = [bytes_read(operator, tensor) for tensor in operator.inputs]
    # Two slices of one tensor are two inputs; what the first brings in is there for the second.
    first = {tensor.id: place for place, tensor in reversed(list(enumerate(operator.inputs)))}
    cold = tuple(
        size * (1.0 - kept(size + recency.since(tensor.id), capacity)) if first[tensor.id] == place else 0.0
        for place, (tensor, size) in enumerate(zip(operator.inputs, sizes, strict=True))
    )
    recency.touch(operator)
    written = [tensor.bytes for tensor in operator.outputs]
    return Traffic(cold, sum(sizes), sum(written), sum(size * (1.0 - kept(size, capacity)) for size in written))


class _Recency:
    """Tensors by last use, for one walk over a sequence; ``horizon`` B is as far as anybody asks.

    ``fresh`` counts the B that entered in this pass. Between two uses of a tensor it is a lower bound of
    the distance, found without walking the list; most weights are beyond the horizon by it alone.
    """

    def __init__(self, horizon: float) -> None:
        self._horizon = horizon
        self._sizes: dict[int, int] = {}
        self._fresh_at: dict[int, int] = {}
        self._fresh = 0
        self._last_pass: dict[int, int] = {}
        self._last_fresh = 0

    def next_pass(self) -> None:
        """The sequence starts over."""
        self._last_pass, self._last_fresh = self._fresh_at, self._fresh
        self._fresh_at, self._fresh = {}, 0

    def touch(self, operator: Operator) -> None:
        """The kernel uses its operands."""
        for tensor, size in _touched(operator):
            self._sizes.pop(tensor.id, None)
            self._sizes[tensor.id] = size
            if tensor.id not in self._fresh_at:
                self._fresh += size
            self._fresh_at[tensor.id] = self._fresh

    def since(self, tensor: int) -> float:
        """B of the distinct tensors touched since the last use; the horizon if that is farther or never was."""
        if tensor not in self._sizes or self._at_least(tensor) >= self._horizon:
            return self._horizon
        distance = 0
        for other in reversed(self._sizes):
            if other == tensor:
                return float(distance)
            distance += self._sizes[other]
            if distance >= self._horizon:
                break
        return self._horizon

    def _at_least(self, tensor: int) -> int:
        used = self._fresh_at.get(tensor)
        if used is not None:
            return self._fresh - used
        return max(self._fresh, self._last_fresh - self._last_pass.get(tensor, 0))


def _touched(operator: Operator) -> Iterator[tuple[Tensor, int]]:
    for tensor in operator.inputs:
        yield tensor, bytes_read(operator, tensor)
    for tensor in operator.outputs:
        yield tensor, tensor.bytes
