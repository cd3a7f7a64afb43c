"""Attention made of separate kernels: product, softmax, product, found by adjacency and shape."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kb.diagnose.shapes import Operands, product_flops
from kb.diagnose.view import RankView
from kb.session.session import Array, Table

_OTHER, _PRODUCT, _SOFTMAX, _GRAD, _BRIDGE, _ASIDE = range(6)
_ROLES: Final = (("product", _PRODUCT), ("softmax", _SOFTMAX), ("softmax_grad", _GRAD), ("bridge", _BRIDGE), ("aside", _ASIDE))
FLOP_PER_CYCLE_CORE: Final = 8192
"""FP16 rate of one cube core, 16 x 16 x 16 x 2; slower types only raise the true floor."""


@dataclass(frozen=True, slots=True)
class AttentionRun:
    """One attention, forward or backward, as positions in ``RankView.kernels``.

    ``members`` (ascending) is every kernel a fused one would replace, layout changes and scaling of its operands
    included; ``products`` the matrix products among them. ``shaped`` says whether shapes confirm that the softmax
    works on the products' score tensor.
    """

    members: tuple[int, ...]
    products: tuple[int, ...]
    softmax: int
    backward: bool
    shaped: bool


def find_runs(view: RankView, *, bridge_length: int) -> tuple[AttentionRun, ...]:
    """Attention runs of the representative step, in time order per stream; no kernel belongs to two.

    From each softmax the nearest product is sought on both sides, over at most ``bridge_length`` element-wise or
    layout kernels of the same stream. Where shapes were captured the score tensor must be (by element count) what
    the first product writes and the second reads, which keeps routers and classifier heads out; backward runs then
    also take the neighbouring products on that tensor, and every run the layout changes and scalings of the products'
    operands directly before and after it, which a fused kernel does by itself. Linear in the kernels.
    """
    kernels = view.kernels
    if kernels is None:
        return ()
    return view.memo.once(("attention", bridge_length), lambda: _found(view, kernels, bridge_length))


def _found(view: RankView, kernels: Table, bridge_length: int) -> tuple[AttentionRun, ...]:
    roles = _roles(view, kernels)
    runs: list[AttentionRun] = []
    for order in _streams(view, kernels, roles):
        stream = _stream(view, kernels, roles, order, bridge_length)
        for place in np.flatnonzero((roles[order] == _SOFTMAX) | (roles[order] == _GRAD)).tolist():
            run = stream.run_at(place)
            if run is not None:
                stream.used.update(run.members)
                runs.append(run)
    return tuple(runs)


def cube_floors_ns(view: RankView, runs: Sequence[AttentionRun]) -> tuple[float | None, ...]:
    """For each run, the time the cube pipe needs for its products whatever the fusion: from counters, else from
    shapes and the chip's peak; None when neither is known for one of them."""
    kernels = view.kernels
    if kernels is None:
        return ()
    rows = np.array([position for run in runs for position in run.products], np.int64)
    times = dict(zip(rows.tolist(), _mac_ns(view, kernels, rows), strict=True))
    return tuple(_total([times[position] for position in run.products]) for run in runs)


def _total(times: Sequence[float]) -> float | None:
    total = math.fsum(times)
    return total if math.isfinite(total) else None


@dataclass(frozen=True, slots=True)
class _Stream:
    """One stream's compute kernels in time order: ``positions`` in the kernel table, ``roles``, and codes of their
    shape texts; ``entry`` marks layout changes and scalings; ``used`` collects the positions that belong to a run already."""

    positions: Sequence[int]
    roles: Sequence[int]
    entry: Sequence[bool]
    inputs: Sequence[int]
    outputs: Sequence[int]
    shapes: Mapping[int, Operands]
    reach: int
    used: set[int]

    def run_at(self, place: int) -> AttentionRun | None:
        """The run around the softmax at ``place`` of this stream, or None."""
        left, right = self._product(place, -1), self._product(place, +1)
        if left is None or right is None:
            return None
        backward = self.roles[place] == _GRAD
        score = self._score(place)
        shaped = score is not None and self._decisive(left, right, backward=backward)
        if shaped and not self._fits(left, right, score, backward):
            return None
        products = [left, right]
        if shaped and backward:
            products += [far for near, way in ((left, -1), (right, +1)) if (far := self._further(near, way, place)) is not None]
        members = self._members(products, place, score if shaped else None)
        if shaped:
            members += (*self._entries(min(products), -1, products), *self._entries(max(products), +1, products))
        return AttentionRun(
            members=tuple(sorted(self.positions[member] for member in members)),
            products=tuple(sorted(self.positions[product] for product in products)),
            softmax=self.positions[place],
            backward=backward,
            shaped=shaped,
        )

    def _product(self, place: int, way: int) -> int | None:
        """The nearest unused product on one side, over bridges only."""
        for step in range(1, self.reach + 2):
            other = place + way * step
            if not 0 <= other < len(self.positions) or self.positions[other] in self.used:
                return None
            if self.roles[other] == _PRODUCT:
                return other
            if self.roles[other] not in (_BRIDGE, _ASIDE):
                return None
        return None

    def _further(self, place: int, way: int, softmax: int) -> int | None:
        """The next product on the same side if it works on the softmax's tensor (inner lengths compared too: with
        sequences as long as a head is wide, other tensors have as many elements)."""
        other = self._product(place, way)
        if other is None:
            return None
        score = self._read(softmax).marks
        return other if score & (self._read(other).marks | self._written(other).marks) else None

    def _read(self, place: int) -> Operands:
        return self.shapes[self.inputs[place]]

    def _written(self, place: int) -> Operands:
        return self.shapes[self.outputs[place]]

    def _score(self, place: int) -> int | None:
        """Elements of the tensor the softmax works on; None without shapes or for less than two dimensions."""
        dims = self._read(place).dims
        return math.prod(dims[0]) if dims and len(dims[0]) >= 2 else None

    def _known(self, place: int) -> bool:
        return bool(self._read(place).sizes or self._written(place).sizes)

    def _decisive(self, left: int, right: int, *, backward: bool) -> bool:
        """Whether the shapes captured can tell: forward runs need what the first product writes and the second reads."""
        if backward:
            return self._known(left) and self._known(right)
        return bool(self._written(left).sizes and self._read(right).sizes)

    def _touches(self, place: int, score: int | None) -> bool:
        return score in self._read(place).sizes or score in self._written(place).sizes

    def _fits(self, left: int, right: int, score: int | None, backward: bool) -> bool:
        if backward:
            return self._touches(left, score) and self._touches(right, score)
        return score in self._written(left).sizes and score in self._read(right).sizes

    def _members(self, products: Sequence[int], softmax: int, score: int | None) -> tuple[int, ...]:
        kept = {softmax, *products}
        for place in range(min(products), max(products) + 1):
            if self.roles[place] == _BRIDGE and (score is None or self._touches(place, score)):
                kept.add(place)
        return tuple(kept)

    def _entries(self, place: int, way: int, products: Sequence[int]) -> list[int]:
        """Layout changes and scalings next to the run that work on an operand of its products alone."""
        sizes = frozenset[int]().union(*(self._read(product).sizes | self._written(product).sizes for product in products))
        found = []
        for step in range(1, self.reach + 1):
            other = place + way * step
            if not 0 <= other < len(self.positions) or self.positions[other] in self.used or self.roles[other] not in (_BRIDGE, _ASIDE):
                break
            tensors = [dims for dims in self._read(other).dims if math.prod(dims) > 1]
            if self.entry[other] and len(tensors) == 1 and math.prod(tensors[0]) in sizes:
                found.append(other)
        return found


def _stream(view: RankView, kernels: Table, roles: Array, order: Array, reach: int) -> _Stream:
    codes = [kernels[name][order] if name in kernels else np.full(len(order), -1) for name in ("input_shapes", "output_shapes")]
    acting = roles[order] != _OTHER
    inputs, outputs = (np.where(acting, column, -1).tolist() for column in codes)
    return _Stream(
        positions=order.tolist(),
        roles=roles[order].tolist(),
        entry=view.role(kernels, "entry")[order].tolist(),
        inputs=inputs,
        outputs=outputs,
        shapes={code: view.operands(code) for code in {*inputs, *outputs}},
        reach=reach,
        used=set(),
    )


def _roles(view: RankView, kernels: Table) -> Array:
    roles = np.full(len(kernels), _OTHER, np.int8)
    for name, code in reversed(_ROLES):
        roles[view.role(kernels, name)] = code
    return roles


def _streams(view: RankView, kernels: Table, roles: Array) -> list[Array]:
    """Positions of compute kernels by stream, only of streams with a softmax."""
    compute = ~view.communication(kernels)
    streams = kernels["stream"] if "stream" in kernels else np.zeros(len(kernels), np.int32)
    softmax = compute & ((roles == _SOFTMAX) | (roles == _GRAD))
    return [np.flatnonzero(compute & (streams == stream)) for stream in np.unique(streams[softmax]).tolist()]


def _mac_ns(view: RankView, kernels: Table, rows: Array) -> list[float]:
    """Cube time of product kernels, NaN where unknown."""
    busy = np.full(len(rows), np.nan)
    if "aic_mac_ratio" in kernels and "aicore_time_ns" in kernels:
        busy = kernels["aic_mac_ratio"][rows] * kernels["aicore_time_ns"][rows]
    counted = np.isfinite(busy) & (busy > 0)
    times = np.where(counted, busy, np.nan)
    soc = view.session.meta.soc
    if soc.cores and soc.clock_mhz and "input_shapes" in kernels and "output_shapes" in kernels:
        flop_per_ns = soc.cores * FLOP_PER_CYCLE_CORE * soc.clock_mhz * 1e-3
        left = rows[~counted]
        times[~counted] = np.array(_flops(view, kernels, left), np.float64) / flop_per_ns
    return [float(time) for time in times]


def _flops(view: RankView, kernels: Table, rows: Array) -> list[float]:
    pairs = zip(kernels["input_shapes"][rows].tolist(), kernels["output_shapes"][rows].tolist(), strict=True)
    found = (product_flops(view.operands(inputs), view.operands(outputs)) for inputs, outputs in pairs)
    return [math.nan if flops is None else flops for flops in found]
