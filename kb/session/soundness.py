"""What the tables of a session say about its own capture: lost tasks, clocks, overhead, warm-up, partial groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np

from kb.domain.text import Text
from kb.session.session import Array, Session, Table

CLOCK_SLACK_NS: Final = 100_000
"""A task may seem to begin up to this before its launch: exporters align two clocks by samples."""
CLOCK_SHARE: Final = 0.01
OVERHEAD_SHARE: Final = 0.05
"""Of the span of the host events; above it the profiler itself shapes what it measures."""
WARMUP_FACTOR: Final = 1.5
LAUNCHES: Final = ("LaunchKernel", "GraphLaunch", "hipLaunch", "ModuleLaunch", "LaunchCooperative")
_NODE_LAUNCH: Final = "launch"
OVERHEADS: Final = ("Activity Buffer Request", "Buffer Flush", "Instrumentation", "Resource", "Lazy Function Loading", "CUPTI Overhead")


class Soundness(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one session; None = cannot be told from what was captured. ``launched`` host launches that carry a link,
    ``lost`` of them whose task is not among the device tasks, ``lost_first`` of these before the first captured task;
    ``early`` linked tasks that begin before their launch beyond the slack; ``overhead_ns`` the profiler's own events."""

    launched: int | None = None
    lost: int | None = None
    lost_first: int | None = None
    linked: int | None = None
    early: int | None = None
    overhead_ns: int | None = None
    overhead_share: float | None = None
    first_step_factor: float | None = None
    only_warmup: bool = False


def examine(session: Session) -> Soundness:
    """The soundness of ``session``. Linear in rows, but for one sort."""
    host, kernels = session.table("host_ops"), session.table("kernels")
    launches = _launches(session, host) if host is not None and "connection_id" in host else None
    lost = _lost(launches, kernels) if launches is not None and kernels is not None else (None, None, None)
    linked = _linked(launches, kernels) if launches is not None and kernels is not None else (None, None)
    overhead = _overhead(session, host) if host is not None else (None, None)
    factor, only = _warmup(session.table("steps"))
    return Soundness(
        launched=lost[0], lost=lost[1], lost_first=lost[2], linked=linked[0], early=linked[1],
        overhead_ns=overhead[0], overhead_share=overhead[1], first_step_factor=factor, only_warmup=only,
    )  # fmt: skip


def reasons(found: Soundness, session: Session) -> Iterator[Text]:
    """Why the capture is not sound, as far as ``found`` and the groups of the session tell."""
    if found.lost and found.launched:
        first = f"，其中 {found.lost_first} 次在首个已采集任务之前" if found.lost_first else ""
        before = f", {found.lost_first} of them before the first captured task" if found.lost_first else ""
        yield Text(
            f"主机下发 {found.launched} 次，其中 {found.lost} 次没有对应的设备任务{first}",
            f"{found.lost} of {found.launched} launches have no task on the device{before}",
        )
    if found.early and found.linked and found.early > CLOCK_SHARE * found.linked:
        yield Text(
            f"{found.early} / {found.linked} 个任务早于其下发：主机与设备时钟未对齐",
            f"{found.early} of {found.linked} tasks begin before their launch: host and device clocks are not aligned",
        )
    if found.overhead_share is not None and found.overhead_share > OVERHEAD_SHARE:
        yield Text(
            f"采集工具自身占 {found.overhead_share:.1%}", f"the profiler itself takes {found.overhead_share:.1%} of the captured time"
        )
    if found.only_warmup:
        yield Text("采集到的都是预热步", "every captured step is a warm-up step")
    elif found.first_step_factor is not None and found.first_step_factor > WARMUP_FACTOR:
        yield Text(
            f"首步是其余步中位数的 {found.first_step_factor:.1f} 倍：可能采到了预热步",
            f"the first step takes {found.first_step_factor:.1f} times the middle of the others: warm-up may have been captured",
        )
    absent = _absent_peers(session)
    if absent:
        yield Text(
            f"通信组涉及 {absent} 张卡，超出已知的总卡数", f"communication groups name {absent} ranks, more than the world size says"
        )


def _launches(session: Session, host: Table) -> tuple[Array, Array]:
    """Starts and connection ids of the calls that put work on the device."""
    names = np.array([code for code, text in enumerate(session.strings) if text == _NODE_LAUNCH or any(part in text for part in LAUNCHES)])
    layers = session.codes(("node", "runtime", "acl"))
    own = np.isin(host["name"], names) & np.isin(host["layer"], layers) & (host["connection_id"] >= 0)
    return host["start_ns"][own], host["connection_id"][own]


def _lost(launches: tuple[Array, Array], kernels: Table) -> tuple[int | None, int | None, int | None]:
    starts, connections = launches
    if not len(starts) or "connection_id" not in kernels or not (kernels["connection_id"] >= 0).any():
        return None, None, None
    lost = ~np.isin(connections, kernels["connection_id"])
    first = int(starts[~lost].min()) if (~lost).any() else None
    before = int((lost & (starts < first)).sum()) if first is not None else None
    return len(starts), int(lost.sum()), before


def _linked(launches: tuple[Array, Array], kernels: Table) -> tuple[int | None, int | None]:
    starts, connections = launches
    if not len(starts) or "connection_id" not in kernels:
        return None, None
    order = np.argsort(connections, kind="stable")
    place = np.minimum(np.searchsorted(connections[order], kernels["connection_id"]), len(order) - 1)
    known = (kernels["connection_id"] >= 0) & (connections[order][place] == kernels["connection_id"])
    early = known & (kernels["start_ns"] < starts[order][place] - CLOCK_SLACK_NS)
    return int(known.sum()), int(early.sum())


def _overhead(session: Session, host: Table) -> tuple[int | None, float | None]:
    own = np.isin(host["name"], session.codes(OVERHEADS))
    span = int((host["start_ns"] + host["duration_ns"]).max() - host["start_ns"].min()) if len(host) else 0
    spent = int(host["duration_ns"][own].sum())
    return (spent, spent / span) if own.any() and span else (None, None)


def _warmup(steps: Table | None) -> tuple[float | None, bool]:
    if steps is None:
        return None, False
    warm = steps["warmup"] == 1
    if "start_ns" not in steps or "end_ns" not in steps:
        return None, bool(warm.all())
    spans = (steps["end_ns"] - steps["start_ns"])[~warm]
    if len(spans) < 3 or np.median(spans[1:]) <= 0:
        return None, bool(warm.all())
    return float(spans[0] / np.median(spans[1:])), bool(warm.all())


def _absent_peers(session: Session) -> int | None:
    meta = session.meta
    ranks = {rank for group in meta.parallel.groups for rank in group.ranks}
    return len(ranks) if meta.world_size is not None and len(ranks) > meta.world_size else None
