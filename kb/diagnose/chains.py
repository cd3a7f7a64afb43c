"""Chains of short vector kernels that one fused kernel could replace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kb.diagnose.view import RankView
from kb.session.session import Array, Table

_MAPPING: Final = ("elementwise", "reduction")
_FUSIBLE: Final = (*_MAPPING, "norm", "glue")


@dataclass(frozen=True, slots=True)
class Chain:
    """Successive kernels of one stream (positions in ``view.kernels``, ascending), each reading what the one before
    wrote; ``linked`` is False where shapes are missing and adjacency alone decided."""

    members: tuple[int, ...]
    linked: bool


def find_chains(view: RankView, kernels: Table, taken: Array, least: int) -> tuple[Chain, ...]:
    """Chains of element-wise, reduction, normalisation and slicing kernels, no kernel in two: with ``least`` or more that
    map or reduce (casts have a cause of their own), or with an activation and the product it gates.

    ``taken`` (positions) are kernels another finding claims. Two neighbours are linked when the second reads a tensor
    with as many elements as the first wrote. Linear in the kernels; shapes are read once for each distinct text.
    """
    fusible = np.logical_or.reduce([view.role(kernels, role) for role in _FUSIBLE]) & ~view.communication(kernels)
    fusible[taken] = False
    streams = kernels["stream"] if "stream" in kernels else np.zeros(len(kernels), np.int32)
    own = np.flatnonzero(~view.communication(kernels))
    order = own[np.lexsort((kernels["start_ns"][own], streams[own]))]
    if len(order) < 2:
        return ()
    first, second = order[:-1], order[1:]
    near = fusible[first] & fusible[second] & (streams[first] == streams[second])
    joined = near.copy()
    shaped = np.zeros(len(near), np.bool_)
    places = np.flatnonzero(near)
    if len(places) and "input_shapes" in kernels and "output_shapes" in kernels:
        glue = view.role(kernels, "glue")[first[places]]
        shapes = kernels["output_shapes"], kernels["input_shapes"]
        joined[places], shaped[places] = _linked(view, shapes[0][first[places]], shapes[1][second[places]])
        # Slices of one tensor stand side by side: none reads the other, the next kernel reads both.
        beside, _ = _linked(view, shapes[0][first[places]], shapes[0][second[places]])
        joined[places] |= glue & beside
    mapping = np.logical_or.reduce([view.role(kernels, role) for role in _MAPPING]) & ~view.role(kernels, "cast")
    gate = view.role(kernels, "activation")[first] & view.role(kernels, "gated")[second]
    return _runs(order, joined, shaped, np.where(mapping, 1, 0)[order], gate, least)


def _linked(view: RankView, outputs: Array, inputs: Array) -> tuple[Array, Array]:
    pairs, inverse = np.unique(np.stack((outputs, inputs), axis=1), axis=0, return_inverse=True)
    sides = {code: view.operands(code).sizes for code in np.unique(pairs).tolist()}
    largest = {code: max(sizes, default=0) for code, sizes in sides.items()}
    verdicts = []
    for written, read in pairs.tolist():
        known = bool(sides[written] and sides[read])
        verdicts.append((not known or largest[written] in sides[read], known))
    found = np.array(verdicts, np.bool_).reshape(-1, 2)[np.ravel(inverse)]
    return found[:, 0], found[:, 1]


def _runs(order: Array, joined: Array, shaped: Array, weight: Array, gate: Array, least: int) -> tuple[Chain, ...]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], joined.astype(np.int8), [0]))))
    found: list[Chain] = []
    for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if weight[begin : end + 1].sum() >= least or gate[begin:end].any():
            found.append(Chain(tuple(np.sort(order[begin : end + 1]).tolist()), bool(shaped[begin:end].all())))
    return tuple(found)


def chained(chains: Sequence[Chain]) -> Array:
    """Positions of every member, int64."""
    return np.array([member for chain in chains for member in chain.members], np.int64)
