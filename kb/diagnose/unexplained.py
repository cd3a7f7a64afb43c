"""Idle time of the step that nothing explains, and the checks it leaves open: what could own that time is not healthy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from kb.diagnose.figures import milliseconds, percent
from kb.diagnose.idle import launch_table
from kb.diagnose.stalls import has_hosts
from kb.diagnose.view import RankView
from kb.domain.catalogue import CauseId
from kb.domain.diagnosis import UNEXPLAINED_LARGE
from kb.domain.finding import Finding, Healthy, Judgement, NotJudged
from kb.domain.text import Text
from kb.session.session import Array

_LAUNCH: Final = "host_bound_launch"
_OWNERS: Final[frozenset[CauseId]] = frozenset(
    {
        "dataloader_bound", _LAUNCH, "stream_bubbles", "synchronization_stall", "gc_pause", "io_checkpoint",
        "dynamic_shape_recompile", "memory_fragmentation", "cpu_fallback_op",
    }
)  # fmt: skip
"""Causes whose loss is idle time of the device."""
_CAPTURE: Final = Text(
    "采集全部卡与流间等待（Level1 及以上；PyTorch：with_stack=True），看设备在等谁",
    "capture every rank and the waits between streams (Level1 or higher; PyTorch: with_stack=True) to see what the device waits for",
)


def unexplained_ns(view: RankView, judgements: Sequence[Judgement]) -> int:
    """Idle time of unknown cause that no finding claims, ns. Without host events the findings on idle time are inferred from
    the unknown part; with them each has a part of its own."""
    idle = view.accounting.parts.get("idle_unknown", 0)
    if has_hosts(view):
        return max(0, idle)
    return max(0, idle - sum(item.exposed_ns for item in judgements if isinstance(item, Finding) and item.cause in _OWNERS))


def left_open(view: RankView, judgements: Sequence[Judgement]) -> list[Judgement]:
    """The judgements, where the unexplained idle time is large, with those not judged that called a possible owner of it healthy.

    Without host events only launches are inferred from gaps; totals of calls bound their cost whatever the gaps are.
    """
    idle, step = unexplained_ns(view, judgements), view.accounting.step_ns
    if not step or idle < UNEXPLAINED_LARGE * step:
        return list(judgements)
    open_causes = _OWNERS if has_hosts(view) else frozenset({_LAUNCH})
    seen = Text(
        f"本步有 {milliseconds(idle)}（{percent(idle / step)}）空闲，采集中没有事件能解释，不能说它正常",
        f"{milliseconds(idle)} ({percent(idle / step)}) of the step is idle and no captured event explains it, so it cannot be cleared",
    )
    return [_opened(item, seen, view) if isinstance(item, Healthy) and item.cause in open_causes else item for item in judgements]


def _opened(item: Healthy, seen: Text, view: RankView) -> NotJudged:
    more = _ahead(view) if item.cause == _LAUNCH else Text()
    cost = Text(f"已知部分{item.message.zh}；{seen.zh}{more.zh}", f"what is known {item.message.en}; {seen.en}{more.en}")
    return NotJudged(cause=item.cause, reason=cost, capture=_CAPTURE)


def _ahead(view: RankView) -> Text:
    """How long before the unexplained gaps the kernels behind them had been launched: then the host was not late, the queued
    kernel waited for something else."""
    lengths, leads = _leads(view)
    known = lengths[leads > 0]
    if not len(known):
        return Text()
    order = np.argsort(leads[leads > 0])
    middle = int(leads[leads > 0][order][np.searchsorted(np.cumsum(known[order]), known.sum() / 2)])
    spent = milliseconds(int(known.sum()))
    return Text(
        f"；其中 {spent} 之后的算子早已下发（按时间加权的中位：提前 {milliseconds(middle)}），等的是别的流、别的卡，或两侧时钟不一致",
        f"; {spent} of it lie before kernels that had been launched already (time-weighted median: {milliseconds(middle)} ahead) and "
        "waited for another stream or rank, or the two clocks disagree",
    )


def _leads(view: RankView) -> tuple[Array, Array]:
    """Of each unexplained gap its length and how long before it the launch of the next kernel had ended, ns; 0 where unknown."""
    idle, kernels, hosts = view.books.idle, view.kernels, view.session.table("host_ops")
    launches = launch_table(hosts) if hosts is not None else None
    none = np.empty(0, np.int64)
    if idle is None or kernels is None or launches is None or "connection_id" not in kernels:
        return none, none
    begins, ends = idle.owned.get("unknown", (none, none))
    place = np.searchsorted(kernels["start_ns"], ends)
    behind = place < len(kernels)
    launch = launches.of(kernels["connection_id"][place[behind]])
    leads = np.where(launch >= 0, begins[behind] - launches.ends[launch], 0)
    return (ends - begins)[behind], leads
