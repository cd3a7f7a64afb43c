"""Communication of each rank: how much is exposed, how much of that is waiting, how much moves data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kb.diagnose.arrivals import Meeting, waits_by_rank
from kb.diagnose.intervals import covered_by
from kb.diagnose.view import ClusterView, RankView
from kb.session.session import Array, Table


@dataclass(frozen=True, slots=True)
class Exchange:
    """Collectives of one rank's step, ns: ``total`` duration, ``exposed`` by compute, ``wait`` for others, ``moving`` =
    exposed less waiting. ``known`` says what the waiting rests on: "planes", "arrivals" (other captured ranks),
    "totals" (nothing idle on the reported plane) or "" (unknown, then counted as zero)."""

    total: int
    exposed: int
    wait: int
    moving: int
    known: str


def exchange(view: ClusterView, place: int, met: Sequence[Meeting]) -> Exchange | None:
    """Collectives of the rank at ``place`` (point-to-point left out); None when it has none."""
    rank = view.ranks[place]
    table = collectives(rank)
    if table is None or not len(table):
        return None
    total = int(table["duration_ns"].sum())
    exposed = _exposed(rank, table, total)
    wait, known = _waiting(rank, table, place, met, whole=_whole(view))
    return Exchange(total, exposed, min(wait, exposed), max(0, exposed - wait), known)


def collectives(rank: RankView) -> Table | None:
    """Rows of ``comm_ops`` (else of ``kernels``) of the step that are collectives."""
    if rank.comm_ops is not None:
        return rank.comm_ops.where(rank.comm_ops["kind"] != rank.session.code("p2p"))
    if rank.kernels is None:
        return None
    prefixes = tuple(prefix for names in rank.classes.point_to_point.values() for prefix in names)
    talks = rank.communication(rank.kernels)
    single = np.array(
        [text.startswith((*prefixes, "hcom_send", "ncclDevKernel_SendRecv", "ncclKernel_SendRecv")) for text in rank.session.strings]
    )
    named = rank.kernels["name"]
    return rank.kernels.where(talks & ~np.where(named >= 0, single[named], False))


def _whole(view: ClusterView) -> bool:
    return view.world_size is not None and len(view.captured_ranks) >= view.world_size


def _exposed(rank: RankView, table: Table, total: int) -> int:
    """Time of the collectives that no compute kernel covers, within the books."""
    room = rank.accounting.parts["comm_exposed"]
    placed = table["start_ns"] >= 0
    if rank.kernels is None or not placed.any():
        return min(total, room)
    own = rank.kernels.where(~rank.communication(rank.kernels))
    starts = table["start_ns"][placed]
    ends = starts + table["duration_ns"][placed]
    covered = covered_by(starts, ends, own["start_ns"], own["start_ns"] + own["duration_ns"])
    return min(room, total - int(covered.sum()))


def _waiting(rank: RankView, table: Table, place: int, met: Sequence[Meeting], *, whole: bool) -> tuple[int, str]:
    waits = rank.books.waits
    if waits:
        codes = set(table["name"].tolist())
        own = [wait.union for code, wait in waits.items() if code in codes]
        # Plane tasks may name operators in another way than the table of operators does.
        return (sum(own) if own else sum(wait.union for wait in waits.values())), "planes"
    arrived = waits_by_rank(met).get(place, 0)
    if whole and met:
        return arrived, "arrivals"
    states = {name: _state(table, name) for name in ("wait_ns", "idle_ns", "transit_ns")}
    if states["transit_ns"] and not states["idle_ns"]:
        return max(states["wait_ns"], arrived), "totals"
    return max(states["wait_ns"], arrived), ""


def row_waits(view: ClusterView, place: int, met: Sequence[Meeting]) -> Array:
    """ns each row of ``collectives`` of the rank at ``place`` waits: by its planes, else by when the others arrive; empty
    where collectives have no rows of their own."""
    rank = view.ranks[place]
    if rank.comm_ops is None:
        return np.empty(0, np.int64)
    names = rank.comm_ops["name"]
    waits = np.zeros(len(names), np.int64)
    for code, wait in rank.books.waits.items():
        own = names == code
        waits[own] = wait.union // max(1, int(own.sum()))
    if not rank.books.waits:
        for meeting in met:
            for member in meeting.members:
                if member.place == place:
                    waits[member.row] = meeting.wait_ns(member)
    return np.asarray(waits[rank.comm_ops["kind"] != rank.session.code("p2p")])


def _state(table: Table, name: str) -> int:
    if name not in table:
        return 0
    values: Array = table[name]
    return int(values[values > 0].sum())


def by_rank(view: ClusterView, met: Sequence[Meeting]) -> Mapping[int, Exchange]:
    """Exchanges of every rank that has collectives and sound books, by place."""
    found: dict[int, Exchange] = {}
    for place, rank in enumerate(view.ranks):
        if rank.accounting.step_ns and not rank.books.violations:
            own = exchange(view, place, met)
            if own is not None:
                found[place] = own
    return found


def tensor_rows(rank: RankView, table: Table, least: int) -> Array:
    """Positions in ``table`` of the collectives of tensor parallelism: at least ``least`` of one operation and size, all
    between kernels that depend on each other. None where the layout says that tensors are not split."""
    if rank.session.meta.parallel.tensor == 1 or "bytes" not in table or not len(table):
        return np.empty(0, np.int64)
    kinds = np.array([_operation(text) for text in (*rank.session.strings, "")])[table["name"]]
    reducing = np.flatnonzero(kinds == "allreduce")
    sizes, inverse, counts = np.unique(table["bytes"][reducing], return_inverse=True, return_counts=True)
    del sizes
    return reducing[counts[np.ravel(inverse)] >= least]


def _operation(text: str) -> str:
    """``hcom_allReduce__170_1_1`` as ``allreduce``."""
    return text.removeprefix("hcom_").removeprefix("ncclDevKernel_").removeprefix("ncclKernel_").split("_")[0].lower()
