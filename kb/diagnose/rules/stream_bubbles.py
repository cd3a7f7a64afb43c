"""Rule: the launch queue is so shallow that the device runs dry while the host waits for room."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.diagnose import wording
from kb.diagnose.figures import milliseconds, percent
from kb.diagnose.judging import Measured, judged, of_table, skipped
from kb.diagnose.queueing import Blocked, blocked_launches
from kb.diagnose.view import RankView
from kb.domain.finding import Judgement
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds
from kb.session.session import Array

CAUSE: Final = "stream_bubbles"


def stream_bubbles(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge launches that begin the moment an earlier kernel ends, the host having done nothing before: it waited for a
    place in the queue. The cost is what a replay with an endless queue saves."""
    hosts, kernels = view.session.table("host_ops"), view.kernels
    if hosts is None or kernels is None or "connection_id" not in kernels:
        return skipped(CAUSE, wording.NO_HOST, wording.CAPTURE_HOST)
    found = blocked_launches(view)
    if found is None:
        return skipped(CAUSE, wording.NO_HOST, wording.CAPTURE_HOST)
    cost = _cost(view, found, thresholds)
    middle = float(np.median(found.waited)) if len(found.waited) else 0.0
    message = Text(
        f"下发队列太浅：{found.launches} 次下发中 {len(found.rows)} 次在等队列空位（中位 {middle / 1e3:.1f} us），设备因此空闲 "
        f"{milliseconds(cost)}（占本步 {percent(cost / view.accounting.step_ns)}）",
        f"the launch queue is shallow: {len(found.rows)} of {found.launches} "
        f"launches waited for room (middle {middle / 1e3:.1f} us), and the "
        f"device idled {milliseconds(cost)} because of it ({percent(cost / view.accounting.step_ns)} of the step)",
    )
    measured = Measured(
        cause=CAUSE, exposed_ns=cost, gain_ns=cost, least=thresholds["stream_bubbles_least_share"], message=message,
        evidence=of_table(view, "host_ops", found.rows), observed={"blocked_launches": float(len(found.rows))},
        healthy={"blocked_launches": 0.0},
    )  # fmt: skip
    return judged(view, thresholds, measured)


def queue_ns(view: RankView, thresholds: Thresholds) -> int:
    """Idle ns of the step that a longer queue would save; 0 where it cannot be told."""
    found = blocked_launches(view)
    return 0 if found is None else _cost(view, found, thresholds)


def held_connections(view: RankView, thresholds: Thresholds) -> Array:
    """Connection ids of launches that waited for room, where that is the habit: a host that waits for room is ahead of the
    device, so no gap before those kernels is its own."""
    found, hosts = blocked_launches(view), view.session.table("host_ops")
    if found is None or hosts is None or not _often(found, thresholds):
        return np.empty(0, np.int64)
    return np.asarray(hosts["connection_id"][found.rows])


def _often(found: Blocked, thresholds: Thresholds) -> bool:
    return len(found.rows) >= thresholds["blocked_launch_frequency"] * max(1, found.launches)


def _cost(view: RankView, found: Blocked, thresholds: Thresholds) -> int:
    return min(found.saved_ns, view.accounting.splits.get("idle", {}).get("launch", 0)) if _often(found, thresholds) else 0
