"""Rule: one rank arrives late at collectives, or one link is slower than its peers."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low
from typing import Final

import numpy as np

from kb.diagnose import wording
from kb.diagnose.arrivals import Meeting, blame, meetings
from kb.diagnose.cluster_judging import communicates, judged_across, known_ranks, label, presence
from kb.diagnose.experts import beyond_experts, expert_lead
from kb.diagnose.figures import milliseconds, percent
from kb.diagnose.judging import Measured, healthy, longest, skipped
from kb.diagnose.view import ClusterView, RankView
from kb.domain.accounting import PARTS
from kb.domain.finding import Evidence, Finding, Healthy, Judgement, Where
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds
from kb.session.ranks import group_size

CAUSE: Final = "slow_link_or_rank"
_PARTIAL: Final = Text(
    "只采集到部分卡，也没有通信平面的任务：最后到达的可能是没有采集的卡",
    "only some ranks and no plane tasks were captured: the last to arrive may be a rank that was not captured",
)


def slow_link_or_rank(view: ClusterView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge waiting for a late rank (by plane tasks, else by arrival at the same collectives) and slow links.

    Arrivals count only between ranks of one pipeline stage: between stages the schedule decides. The largest of the
    them is reported; where the last to arrive changes within the step, nobody is blamed. A rank that computes longer than
    its peers is late in every group it belongs to, and they in theirs: compute tells who began it. What uneven experts
    explain is theirs (moe_imbalance).
    """
    met = [meeting for meeting in meetings(view.ranks) if _one_stage(view, meeting)]
    arrivals = _by_arrival(view, met, thresholds)
    # When every rank was captured and none is late more often than others, a plane's longest wait blames nobody either.
    jitter = any(isinstance(judgement, Healthy) for judgement in arrivals)
    judgements = [
        *(() if jitter else _by_planes(view, met, thresholds)),
        *arrivals,
        *_by_compute(view, thresholds),
        *_by_link(view, thresholds),
    ]
    findings = [judgement for judgement in judgements if isinstance(judgement, Finding)]
    if findings:
        return (max(findings, key=lambda finding: finding.exposed_ns),)
    if judgements:
        return (judgements[0],)
    return skipped(CAUSE, _unseen(view), wording.CAPTURE_PLANES)


def _unseen(view: ClusterView) -> Text:
    """Why neither waiting nor links could be compared."""
    if not any(communicates(rank) for rank in view.ranks):
        return wording.NO_COMM
    exposed = milliseconds(max(rank.accounting.parts.get("comm_exposed", 0) for rank in view.ranks))
    here = presence(len(view.captured_ranks) or len(view.ranks), view.world_size)
    return Text(
        f"采集到了通信（暴露 {exposed}），但没有通信平面的任务，也没有足够的卡或链路可比：看不出是传输还是在等别的卡（{here.zh}）",
        f"communication was captured ({exposed} exposed), but neither the tasks of its planes nor enough ranks or links to compare: "
        f"whether it moves data or waits for another rank is unknown ({here.en})",
    )


def _one_stage(view: ClusterView, meeting: Meeting) -> bool:
    ranks = [view.ranks[member.place] for member in meeting.members]
    homes = {stage for stage, members in view.stages.items() for rank in ranks if rank in members}
    return len(homes) <= 1


def _by_planes(view: ClusterView, met: Sequence[Meeting], thresholds: Thresholds) -> tuple[Judgement, ...]:
    """The rank that waits most according to its planes, and the peer its longest wait names."""
    waiting = [(sum(_own_waits(rank).values()), rank) for rank in view.ranks if rank.books.waits and rank.accounting.step_ns]
    if not waiting:
        return ()
    spent, rank = max(waiting, key=lambda item: item[0])
    spent = beyond_experts(spent, max(expert_lead(view.ranks).values()))
    parts = rank.accounting.parts
    exposed = min(spent, parts["comm_exposed"])
    communicating = parts["comm_exposed"] + rank.accounting.splits.get("comm", {}).get("overlapped", 0)
    worst = max((wait for code, wait in rank.books.waits.items() if code in _own_waits(rank)), key=lambda wait: wait.longest, default=None)
    if worst is None or spent < thresholds["waiting_share"] * communicating:
        return (healthy(CAUSE, exposed / rank.accounting.step_ns),)
    size = group_size(rank.session)
    late = _captured_peer(view, worst.peer, size)
    total = milliseconds(communicating)
    peer = "?" if worst.peer is None else str(worst.peer)
    here = presence(len(view.captured_ranks) or len(view.ranks), view.world_size or size)
    who = Text(f"组内第 {peer} 号卡（未采集）", f"group rank {peer} (not captured)") if late is None else Text(label(late), label(late))
    message = Text(
        f"通信大部分是等待：{label(rank)} 上 {total} 的通信中 {milliseconds(spent)} 在等，主要等{who.zh}；{here.zh}",
        f"communication is mostly waiting: {milliseconds(spent)} of {total} on {label(rank)}, mainly for {who.en}; {here.en}",
    )
    inferred = Text("“等谁”由等待事件的对端推断", "whom it waits for is inferred from the peer of the wait event")
    return judged_across(
        rank.accounting.step_ns,
        thresholds,
        Measured(
            cause=CAUSE,
            exposed_ns=exposed,
            gain_ns=exposed,
            least=thresholds["slow_link_or_rank_least_share"],
            message=message,
            evidence=_wait_evidence(rank),
            where=Where(ranks=known_ranks((late,)) if late is not None else ()),
            observed={"waiting_ns": float(spent), "communication_ns": float(communicating)},
            notes=(inferred, *_late_notes(view, late)),
            major=2 if late is None else 0,
            minor=0 if met else 1,
        ),
    )


def _own_waits(rank: RankView) -> dict[int, int]:
    """Waiting of the longest plane by operator, point-to-point left out: there the pipeline's schedule decides."""
    apart = (*tuple(prefix for names in rank.classes.point_to_point.values() for prefix in names), "hcom_send")
    return {code: wait.longest for code, wait in rank.books.waits.items() if not (rank.session.text(code) or "").startswith(apart)}


def _captured_peer(view: ClusterView, peer: int | None, size: int | None) -> RankView | None:
    """The captured rank behind a number inside the group, where the group is the whole world; else None."""
    world = view.world_size or size
    if peer is None or size != world:
        return None
    return next((rank for rank in view.ranks if rank.rank == peer), None)


def _wait_evidence(rank: RankView) -> tuple[Evidence, ...]:
    own = _own_waits(rank)
    waits = sorted((wait for code, wait in rank.books.waits.items() if code in own and wait.row >= 0), key=lambda wait: -wait.longest)
    return tuple(
        rank.evidence("comm_tasks", wait.row, "waiting on the longest plane of one operator", wait.longest / 1e6, "ms")
        for wait in waits[:5]
    )


def _by_arrival(view: ClusterView, met: Sequence[Meeting], thresholds: Thresholds) -> tuple[Judgement, ...]:
    caused = blame(met)
    total = sum(caused.values())
    if not caused:
        return ()
    if view.world_size is None or len(view.captured_ranks) < view.world_size:
        return skipped(CAUSE, _PARTIAL, wording.CAPTURE_PLANES)
    place = max(caused, key=lambda each: caused[each])
    late = view.ranks[place]
    step = max(rank.accounting.step_ns for rank in view.ranks)
    share = caused[place] / total if total else 0.0
    waited = beyond_experts(caused[place], expert_lead(view.ranks)[place])
    if share < thresholds["blame_share"] or (len(caused) > 1 and share < thresholds["blame_share_many"]):
        listed = ", ".join(
            f"{label(view.ranks[each])}: {milliseconds(ns)}" for each, ns in sorted(caused.items(), key=lambda item: -item[1])
        )
        text = Text(
            f"同一流水段内最后到达的卡在一步之内变换，不归咎于任何一张卡（让别人等待：{listed}；共 {milliseconds(total)}）",
            "within a stage the last rank to arrive changes during the step, so no rank is to blame "
            f"(made others wait: {listed}; {milliseconds(total)} in all)",
        )
        return (healthy(CAUSE, 0.0, _meeting_evidence(view, met), text),)
    here = presence(len(view.captured_ranks), view.world_size)
    message = Text(
        f"{label(late)} 总是最后到达集合通信：别的卡因此等待 {milliseconds(caused[place])}（占全部等待的 {percent(share)}）；{here.zh}",
        f"{label(late)} is the last to arrive at collectives: others wait {milliseconds(caused[place])} for it "
        f"({percent(share)} of all waiting); {here.en}",
    )
    return judged_across(
        step,
        thresholds,
        Measured(
            cause=CAUSE,
            exposed_ns=waited,
            gain_ns=waited,
            least=thresholds["slow_link_or_rank_least_share"],
            message=message,
            evidence=_meeting_evidence(view, [meeting for meeting in met if meeting.late.place == place]),
            where=Where(ranks=known_ranks((late,))),
            observed={"blame_share": share},
            notes=_late_notes(view, late),
        ),
    )


def _by_compute(view: ClusterView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """The rank that computes longest beyond the median of its stage, while a peer waits in communication for as long."""
    worst: tuple[int, RankView, float] | None = None
    for ranks in view.stages.values() or (view.ranks,):
        sound = [rank for rank in ranks if rank.accounting.step_ns and rank.accounting.parts["comm_exposed"]]
        if len(sound) < 2:
            continue
        lead = expert_lead(sound)
        own = [rank.accounting.parts["compute"] for rank in sound]
        middle = median_low(own)
        late = max(range(len(sound)), key=own.__getitem__)
        more = beyond_experts(own[late] - middle, lead[late])
        cost = min(more, max(rank.accounting.parts["comm_exposed"] for rank in sound if rank is not sound[late]))
        if more >= (thresholds["slow_compute_ratio"] - 1.0) * middle and (worst is None or cost > worst[0]):
            worst = cost, sound[late], own[late] / max(1, middle)
    if worst is None:
        return ()
    cost, rank, ratio = worst
    step = max(rank.accounting.step_ns for rank in view.ranks)
    share = percent(cost / step)
    message = Text(
        f"{label(rank)} 的计算是同一流水段中位数的 {ratio:.2f} 倍：别的卡因此最多等 {milliseconds(cost)}（占本步 {share}）",
        f"{label(rank)} computes {ratio:.2f} times the median of its stage: others wait up to {milliseconds(cost)} for it "
        f"({share} of the step)",
    )
    measured = Measured(
        cause=CAUSE, exposed_ns=cost, gain_ns=cost, least=thresholds["slow_link_or_rank_least_share"], message=message,
        evidence=longest(rank, np.arange(len(rank.kernels)) if rank.kernels is not None else np.empty(0, np.int64)),
        where=Where(ranks=known_ranks((rank,))), observed={"compute_over_median": ratio}, healthy={"compute_over_median": 1.0},
        notes=_late_notes(view, rank),
    )  # fmt: skip
    return judged_across(step, thresholds, measured)


def _meeting_evidence(view: ClusterView, met: Sequence[Meeting]) -> tuple[Evidence, ...]:
    chosen = sorted(met, key=lambda meeting: -max(map(meeting.wait_ns, meeting.members)))[:5]
    rows = []
    for meeting in chosen:
        waiting = max(meeting.members, key=meeting.wait_ns)
        rank = view.ranks[waiting.place]
        row = int(rank.books.comm_rows[waiting.row])
        metric = f"{label(rank)} waits for {label(view.ranks[meeting.late.place])} in {meeting.name}"
        rows.append(rank.evidence("comm_ops", row, metric, meeting.wait_ns(waiting) / 1e6, "ms"))
    return tuple(rows)


def _late_notes(view: ClusterView, late: RankView | None) -> tuple[Text, ...]:
    """What the late rank spends its time on beyond the others' mean."""
    others = [rank for rank in view.ranks if rank is not late and rank.accounting.step_ns]
    if late is None or not others:
        return ()
    more = {part: late.accounting.parts[part] - sum(rank.accounting.parts[part] for rank in others) / len(others) for part in PARTS}
    part = max((part for part in PARTS if part != "comm_exposed"), key=lambda each: more[each])
    if more[part] <= 0:
        return ()
    return (
        Text(
            f"迟到的卡在“{part}”上比其他卡平均多 {milliseconds(more[part])}",
            f"the late rank spends {milliseconds(more[part])} more on {part} than the others",
        ),
    )


def _by_link(view: ClusterView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """The slowest link against the median of its transport on one rank."""
    worst: tuple[float, RankView, int, float] | None = None
    for rank in view.ranks:
        links = rank.session.table("comm_links")
        if links is None or "bytes" not in links or "transit_ns" not in links or "transport" not in links:
            continue
        real = (links["src_rank"] != links["dst_rank"]) & (links["bytes"] >= thresholds["link_bytes_least"]) & (links["transit_ns"] > 0)
        total = rank.session.code("total")
        real &= links["op"] != total
        for transport in np.unique(links["transport"][real]).tolist():
            rows = np.flatnonzero(real & (links["transport"] == transport))
            rate = links["bytes"][rows] / links["transit_ns"][rows]
            middle = float(np.median(rate))
            slow = rate < thresholds["link_rate_low"] * middle
            if len(rows) < thresholds["links_least"] or not slow.any():
                continue
            lost = links["transit_ns"][rows] * (1.0 - rate / middle)
            row = int(rows[np.argmax(np.where(slow, lost, 0.0))])
            cost = float(lost[slow].sum())
            if worst is None or cost > worst[0]:
                worst = cost, rank, row, float(links["bytes"][row] / links["transit_ns"][row] / middle)
    if worst is None:
        return ()
    cost, rank, row, part = worst
    links = rank.session.tables["comm_links"]
    ends = int(links["src_rank"][row]), int(links["dst_rank"][row])
    exposed = min(int(cost), rank.accounting.parts["comm_exposed"])
    message = Text(
        f"链路 {ends[0]}→{ends[1]} 的带宽只有同类链路中位数的 {percent(part)}，因此多花 {milliseconds(exposed)}",
        f"the link {ends[0]} to {ends[1]} runs at {percent(part)} of the median of its kind and costs {milliseconds(exposed)}",
    )
    evidence = (rank.evidence("comm_links", row, f"rate of link {ends[0]}-{ends[1]} over the median of its transport", part, "ratio"),)
    measured = Measured(
        cause=CAUSE, exposed_ns=exposed, gain_ns=exposed, least=thresholds["slow_link_or_rank_least_share"], message=message,
        evidence=evidence,
        observed={"link_rate_over_median": part}, healthy={"link_rate_over_median": 1.0}, minor=1,
    )  # fmt: skip
    return judged_across(rank.accounting.step_ns, thresholds, measured)
