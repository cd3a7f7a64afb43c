"""From the step to modules, operators, hardware and single events: a tree with numbers at every node."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from kb.diagnose.modules import module_names
from kb.diagnose.pipes import pipes
from kb.diagnose.targets import target_rows
from kb.diagnose.view import RankView
from kb.domain.accounting import PARTS
from kb.domain.drilldown import DrillDown, DrillNode, Level
from kb.domain.quantity import Quantity
from kb.errors import NotFoundError
from kb.session.session import Array, Table

EVENTS: Final = 3
"""Events shown below an engine: the longest."""
_PIPES: Final = ("aic_mac_ratio", "aic_mte2_ratio", "aiv_vec_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio", "cube_utilization", "l2_hit_ratio")
_UNNAMED: Final = "?"


def drill_down(view: RankView, target: str = "") -> DrillDown:
    """The representative step of one rank, or the part of it that ``target`` names (see ``targets.target_rows``).

    Below the step stand the modules that compute, then the other parts of the books; below a module its operator types,
    below those the engines, below those the longest events. A kernel counts with the time that only it adds to what ran
    before, so that children never sum to more than their parent.
    """
    step = view.accounting.step_ns
    if target:
        return _of_target(view, step, target)
    children = [*_modules(view, step), *_parts(view, step)]
    root = DrillNode(level="session", name=view.session.meta.name, time_ns=step, share=1.0 if step else 0.0, children=tuple(children))
    return DrillDown(session=view.session.meta.name, target=f"step {view.accounting.step}", root=root)


def _of_target(view: RankView, step: int, target: str) -> DrillDown:
    kernels = view.kernels
    if kernels is None:
        raise NotFoundError(f"no kernels were captured, so {target} cannot be found", do="capture at Level1 with kernel_details.csv")
    rows = target_rows(view, kernels, target)
    children = _modules(view, step, rows)
    spent = sum(child.time_ns for child in children)
    root = _node("session", view.session.meta.name, spent, step, {"kernels": Quantity(float(len(rows)), "count")}, children)
    return DrillDown(session=view.session.meta.name, target=target, root=root)


def at_levels(node: DrillNode, levels: Collection[Level]) -> DrillNode:
    """The tree with only these levels below its root; what stands between two of them is left out, its children move up."""
    children = tuple(sorted(_lifted(node, levels), key=lambda child: -child.time_ns))
    return msgspec.structs.replace(node, children=children)


def _lifted(node: DrillNode, levels: Collection[Level]) -> Iterator[DrillNode]:
    for child in node.children:
        if child.level in levels:
            yield at_levels(child, levels)
        else:
            yield from _lifted(child, levels)


def paired(before: DrillNode, after: DrillNode) -> DrillNode:
    """One tree of two sessions, matched by name level by level: ``time_ns`` is the change (after less before, never below
    zero in a node's own time), the metrics ``before``, ``after`` and ``change`` hold both sides in us. Largest change first."""
    return _paired(before.name, before, after)


def _paired(name: str, before: DrillNode | None, after: DrillNode | None) -> DrillNode:
    one = before or after
    assert one is not None  # a name comes from at least one side
    first, second = (node.time_ns if node else 0 for node in (before, after))
    sides = [{child.name: child for child in node.children} if node else {} for node in (before, after)]
    names = list(dict.fromkeys((*sides[0], *sides[1])))
    children = [_paired(each, sides[0].get(each), sides[1].get(each)) for each in names]
    values = {"before": first, "after": second, "change": second - first}
    return DrillNode(
        level=one.level,
        name=name,
        time_ns=abs(second - first),
        share=(second - first) / first if first else 0.0,
        metrics={key: Quantity(value / 1e3, "us") for key, value in values.items()},
        evidence=one.evidence,
        children=tuple(sorted(children, key=lambda child: -child.time_ns)),
    )


def _parts(view: RankView, step: int) -> list[DrillNode]:
    parts = view.accounting.parts
    return [_node("module", part, parts[part], step) for part in PARTS if part != "compute" and parts[part] > 0]


def _modules(view: RankView, step: int, chosen: Array | None = None) -> list[DrillNode]:
    kernels = view.kernels
    if kernels is None:
        compute = view.accounting.parts["compute"]
        return [_node("module", "compute", compute, step)] if compute else []
    rows = np.flatnonzero(~view.communication(kernels)) if chosen is None else chosen
    added = added_ns(kernels, rows)
    names = module_names(view, kernels, rows)
    return [_module(view, kernels, name, rows[own], added[own], step) for name, own in _groups(names)]


def _module(view: RankView, kernels: Table, name: str, rows: Array, added: Array, step: int) -> DrillNode:
    types = _texts(view, np.where(kernels["op_type"][rows] >= 0, kernels["op_type"][rows], kernels["name"][rows]))
    children = [_operator(view, kernels, kind, rows[own], added[own], step) for kind, own in _groups(types)]
    return _node("module", name, int(added.sum()), step, {"kernels": Quantity(float(len(rows)), "count")}, children)


def _operator(view: RankView, kernels: Table, name: str, rows: Array, added: Array, step: int) -> DrillNode:
    durations = kernels["duration_ns"][rows]
    metrics = {
        "calls": Quantity(float(len(rows)), "count"),
        "mean": Quantity(float(durations.mean()) / 1e3, "us"),
        "longest": Quantity(float(durations.max()) / 1e3, "us"),
    }
    engines = _texts(view, kernels["core"][rows])
    children = [_engine(view, kernels, engine, rows[own], added[own], step) for engine, own in _groups(engines)]
    return _node("operator", name, int(added.sum()), step, metrics, children)


def _engine(view: RankView, kernels: Table, name: str, rows: Array, added: Array, step: int) -> DrillNode:
    metrics = {}
    for column in _PIPES:
        if column in kernels and (kernels[column][rows] > 0).any():  # an engine that took no part says nothing
            metrics[column] = Quantity(float(np.nanmean(kernels[column][rows])), "ratio")
    busy = pipes(kernels)
    if busy is not None and np.isfinite(busy.busiest[rows]).any():
        metrics["busiest_pipe"] = Quantity(float(np.nanmean(busy.busiest[rows])), "ratio")
    order = np.argsort(-added, kind="stable")[:EVENTS]
    events = [_event(view, kernels, int(rows[place]), int(added[place]), step) for place in order.tolist()]
    return _node("hardware", name, int(added.sum()), step, metrics, events)


def _event(view: RankView, kernels: Table, row: int, added: int, step: int) -> DrillNode:
    duration = int(kernels["duration_ns"][row]) / 1e3
    name = view.session.text(int(kernels["name"][row])) or _UNNAMED
    evidence = view.evidence("kernels", int(view.books.kernel_rows[row]), "Duration", duration, "us")
    return DrillNode(
        level="event", name=name, time_ns=added, share=added / step if step else 0.0,
        metrics={"duration": Quantity(duration, "us")}, evidence=(evidence,),
    )  # fmt: skip


def _node(
    level: Level, name: str, spent: int, step: int, metrics: Mapping[str, Quantity] | None = None, children: Sequence[DrillNode] = ()
) -> DrillNode:
    ordered = tuple(sorted(children, key=lambda child: -child.time_ns))
    return DrillNode(level=level, name=name, time_ns=spent, share=spent / step if step else 0.0, metrics=metrics or {}, children=ordered)


def added_ns(kernels: Table, rows: Array) -> Array:
    """For each kernel (rows ascending by start) the ns it covers beyond all that began before it."""
    if not len(rows):
        return np.empty(0, np.int64)
    starts = kernels["start_ns"][rows]
    ends = starts + kernels["duration_ns"][rows]
    reach = np.concatenate(([starts[0]], np.maximum.accumulate(ends)[:-1]))
    return np.asarray(np.maximum(ends - np.maximum(starts, reach), 0), np.int64)


def _texts(view: RankView, codes: Array) -> Array:
    texts = np.array([*view.session.strings, _UNNAMED], dtype=object)
    return np.asarray(texts[codes], dtype=object)


def _groups(names: Array) -> list[tuple[str, Array]]:
    """Each distinct name with the positions that carry it."""
    distinct, inverse = np.unique(names.astype(str), return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    edges = np.searchsorted(inverse[order], np.arange(len(distinct) + 1))
    return [(str(name), order[edges[place] : edges[place + 1]]) for place, name in enumerate(distinct.tolist())]
