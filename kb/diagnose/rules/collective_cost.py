"""Rules on collectives: exposed although independent work exists, and many small or repeated ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from kb.diagnose import wording
from kb.diagnose.arrivals import meetings
from kb.diagnose.cluster_judging import judged_across, known_ranks, label, no_collectives
from kb.diagnose.exchanges import Exchange, by_rank, collectives, row_waits, tensor_rows
from kb.diagnose.figures import milliseconds, percent
from kb.diagnose.judging import Measured, skipped
from kb.diagnose.launches import held_ns
from kb.diagnose.view import ClusterView, RankView
from kb.domain.finding import Evidence, Judgement, Where
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds
from kb.session.session import Array, Table

_UNKNOWN_WAIT: Final = Text(
    "通信里的等待看不到（没有平面任务，同组的卡未采全），其中多少能被重叠无法判断",
    "waiting inside the collectives is not visible (no plane tasks, and ranks "
    "of the group are missing), so how much overlap could hide is unknown",
)


def comm_not_overlapped(view: ClusterView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge collectives that move data while nothing computes. Left out are waiting for late ranks, which overlap cannot
    hide, the reductions of tensor parallelism, which have no independent work beside them (see comm_volume_excess), and what
    moves while the kernels wait for something else, such as a launch.

    At most hidden: the exposed moving time, and no more than the compute that could run beside it.
    """
    met = meetings(view.ranks)
    found = by_rank(view, met)
    if not found:
        return skipped("comm_not_overlapped", no_collectives(view), wording.CAPTURE_COMM)
    known = {place: own for place, own in found.items() if own.known}
    if (
        not known
        and max(own.exposed / view.ranks[place].accounting.step_ns for place, own in found.items()) >= thresholds["priority_p2_share"]
    ):
        return skipped("comm_not_overlapped", _UNKNOWN_WAIT, wording.CAPTURE_PLANES)
    apart = {
        place: _tensor_ns(view.ranks[place], own, thresholds) + _unheld_ns(view.ranks[place], own, row_waits(view, place, met))
        for place, own in found.items()
    }
    place, own = max((known or found).items(), key=lambda item: item[1].moving - apart[item[0]])
    own = replace(own, moving=max(0, own.moving - apart[place]))
    rank = view.ranks[place]
    overlapped = rank.accounting.splits.get("comm", {}).get("overlapped", 0)
    beside = max(0, rank.accounting.parts["compute"] - overlapped)
    message = _exposed_message(rank, own, overlapped)
    hidden = overlapped / max(1, overlapped + own.moving)
    return judged_across(
        rank.accounting.step_ns,
        thresholds,
        Measured(
            cause="comm_not_overlapped",
            exposed_ns=own.moving if hidden <= thresholds["overlap_share_healthy"] else 0,
            gain_ns=min(own.moving, beside),
            least=thresholds["comm_not_overlapped_least_share"],
            message=message,
            evidence=_longest(rank),
            where=Where(ranks=known_ranks(view.ranks), operators=_kinds(rank)),
            observed={"overlapped_ns": float(overlapped), "exposed_collective_ns": float(own.exposed), "waiting_ns": float(own.wait)},
            healthy={"overlapped_share": thresholds["overlap_share_healthy"]},
            notes=(_basis(own),),
            minor=0 if own.known == "planes" else 1,
        ),
    )


def comm_volume_excess(view: ClusterView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge collectives that cost time in this step though fewer or smaller ones would do: so small that their fixed cost
    dominates, or the reductions of tensor parallelism, whose number grows with its degree. Waiting is left out."""
    found = by_rank(view, meetings(view.ranks))
    if not found:
        return skipped("comm_volume_excess", no_collectives(view), wording.CAPTURE_COMM)
    costs = {place: _excess(view.ranks[place], own, thresholds) for place, own in found.items()}
    if all(cost is None for cost in costs.values()):
        return skipped("comm_volume_excess", Text("通信没有字节数", "collectives carry no sizes"), wording.CAPTURE_COMM)
    place = max(costs, key=lambda each: (costs[each] or (0, None))[0])
    rank, (cost, rows) = view.ranks[place], costs[place] or (0, np.empty(0, np.int64))
    count = len(rows)
    share = percent(cost / rank.accounting.step_ns)
    message = Text(
        f"集合通信次数或数据量过多：{label(rank)} 上 {count} 次（张量并行的归约与小包），暴露 {milliseconds(cost)}（占本步 {share}）",
        f"more collectives than the work needs: {count} on {label(rank)} (reductions of tensor parallelism, small messages) "
        f"expose {milliseconds(cost)} ({share} of the step)",
    )
    return judged_across(
        rank.accounting.step_ns,
        thresholds,
        Measured(
            cause="comm_volume_excess",
            exposed_ns=cost,
            gain_ns=cost,
            least=thresholds["comm_volume_excess_least_share"],
            message=message,
            evidence=_cited(rank, rows),
            where=Where(ranks=known_ranks((rank,))),
            observed={"collectives": float(count)},
        ),
    )


def _exposed_message(rank: RankView, own: Exchange, overlapped: int) -> Text:
    moving, wait, total = milliseconds(own.moving), milliseconds(own.wait), milliseconds(own.total)
    share = percent(own.moving / rank.accounting.step_ns)
    hidden = milliseconds(overlapped)
    return Text(
        f"集合通信没有被计算遮盖：{label(rank)} 上集合通信共 {total}，重叠 "
        f"{hidden}，暴露的传输 {moving}（占本步 {share}），另有等待 {wait}",
        f"collectives are not hidden behind compute: {total} on {label(rank)}, overlapped {hidden}; {moving} of exposed transfer "
        f"({share} of the step), and {wait} of waiting besides",
    )


def _basis(own: Exchange) -> Text:
    bases = {
        "planes": Text("等待取自各通信平面的任务", "waiting is taken from the tasks of the planes"),
        "arrivals": Text("等待由各卡到达同一集合通信的先后得出", "waiting follows from when each rank arrives at the same collective"),
        "totals": Text("等待取自导出的汇总", "waiting is the exporter's total"),
    }
    return bases.get(own.known, _UNKNOWN_WAIT)


def _excess(rank: RankView, own: Exchange, thresholds: Thresholds) -> tuple[int, Array] | None:
    """Exposed ns of small and of tensor-parallel collectives with their positions in ``comm_ops``; None without sizes."""
    ops = rank.comm_ops
    if ops is None or "bytes" not in ops or not (ops["bytes"] > 0).any():
        return None
    small = (ops["bytes"] > 0) & (ops["bytes"] < thresholds["small_message"]) & (ops["kind"] != rank.session.code("p2p"))
    if small.sum() < thresholds["small_messages_least"]:
        small[:] = False
    small[_tensor_rows(rank, ops, thresholds)] = True
    rows = np.flatnonzero(small)
    return int(ops["duration_ns"][rows].sum() * _moving_share(own)), rows


def _tensor_ns(rank: RankView, own: Exchange, thresholds: Thresholds) -> int:
    """Exposed moving ns of the reductions of tensor parallelism."""
    if rank.comm_ops is None:
        return 0
    rows = _tensor_rows(rank, rank.comm_ops, thresholds)
    return int(rank.comm_ops["duration_ns"][rows].sum() * _moving_share(own))


def _unheld_ns(rank: RankView, own: Exchange, waits: Array) -> int:
    """Exposed moving ns during which the kernels waited for something else. A collective waits first and moves last."""
    table = collectives(rank)
    if table is None or rank.kernels is None or not len(waits) or (table["start_ns"] < 0).any():
        return 0
    ends = table["start_ns"] + table["duration_ns"]
    held = held_ns(rank, np.minimum(table["start_ns"] + waits, ends), ends, blocking=False)
    return max(0, own.moving - int(held.sum()))


def _tensor_rows(rank: RankView, ops: Table, thresholds: Thresholds) -> Array:
    return tensor_rows(rank, ops, int(thresholds["tensor_collectives_least"]))


def _moving_share(own: Exchange) -> float:
    return own.moving / own.total if own.total else 0.0


def _table(rank: RankView) -> tuple[str, Table | None]:
    return ("comm_ops", rank.comm_ops) if rank.comm_ops is not None else ("kernels", rank.kernels)


def _cited(rank: RankView, rows: Array) -> tuple[Evidence, ...]:
    name, table = _table(rank)
    if table is None or not len(rows):
        return ()
    positions = rank.books.comm_rows if name == "comm_ops" else rank.books.kernel_rows
    order = rows[np.argsort(-table["duration_ns"][rows], kind="stable")[:5]]
    return tuple(
        rank.evidence(
            name,
            int(positions[row]),
            f"elapsed of {rank.session.text(int(table['name'][row]))}",
            int(table["duration_ns"][row]) / 1e6,
            "ms",
        )
        for row in order.tolist()
    )


def _longest(rank: RankView) -> tuple[Evidence, ...]:
    name, table = _table(rank)
    if table is None:
        return ()
    mask = table["kind"] != rank.session.code("p2p") if name == "comm_ops" else rank.communication(table)
    return _cited(rank, np.flatnonzero(mask))


def _kinds(rank: RankView) -> tuple[str, ...]:
    table = collectives(rank)
    if table is None:
        return ()
    names = {rank.session.strings[code] for code in np.unique(table["name"]).tolist() if code >= 0}
    return tuple(sorted({name.split("__")[0] for name in names}))[:6]
