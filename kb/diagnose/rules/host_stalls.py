"""Rules on one named thing the host does while the device idles: input, collection, storage, waits, compiles, allocator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from kb.diagnose import wording
from kb.diagnose.figures import milliseconds, percent
from kb.diagnose.frames import user_frame
from kb.diagnose.hosts import COMPILE_LEAST_NS, IdleCause, named
from kb.diagnose.judging import Measured, healthy, judged, of_table, skipped
from kb.diagnose.stalls import Stall, boundary_ns, has_hosts, stall
from kb.diagnose.view import RankView
from kb.domain.catalogue import CauseId
from kb.domain.finding import Evidence, Judgement, Where
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds

Judge = Callable[[RankView, Thresholds], tuple[Judgement, ...]]


class _Kind(msgspec.Struct, frozen=True, kw_only=True):
    """``causes`` of idle time that make the finding; ``spread`` for pauses that hit some steps only; ``totals`` are
    patterns of call names in ``api_totals`` that bound the cost where no host events were captured, of which only those
    count whose longest call takes ``longest`` ns. ``preparing`` adds the time before the step, ``loop`` spares the one wait
    that every loop makes."""

    cause: CauseId
    causes: tuple[IdleCause, ...]
    name: Text
    spread: bool = False
    totals: tuple[str, ...] = ()
    longest: int = 0
    preparing: bool = False
    loop: bool = False


def _rule(kind: _Kind) -> Judge:
    def rule(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
        least = thresholds[f"{kind.cause}_least_share"]
        if not has_hosts(view):
            return _from_totals(view, thresholds, kind, least)
        found = stall(view, kind.causes, spread=kind.spread, preparing=kind.preparing)
        if kind.loop:
            spared = min(boundary_ns(view, kind.causes), int(thresholds["loop_sync"] * 1e3), found.own)
            found = replace(found, own=found.own - spared)
        evidence = of_table(view, "host_ops", found.rows)
        return judged(
            view,
            thresholds,
            Measured(
                cause=kind.cause,
                exposed_ns=found.cost,
                gain_ns=found.cost,
                least=least,
                message=_message(view, kind, found),
                evidence=evidence,
                where=_where(view, found),
                observed={f"{kind.cause}_ns": float(found.cost), f"{kind.cause}_events": float(found.events)},
                healthy={f"{kind.cause}_ns": 0.0},
                notes=_notes(found),
            ),
        )

    rule.__name__ = kind.cause
    rule.__doc__ = f"Judge {kind.cause}: idle time of the device while the host does this."
    return rule


def _message(view: RankView, kind: _Kind, found: Stall) -> Text:
    cost = milliseconds(found.cost)
    share = percent(found.cost / view.accounting.step_ns if view.accounting.step_ns else 0.0)
    return Text(
        f"{kind.name.zh}：设备因此每步空闲 {cost}（占本步 {share}），共 {found.events} 次",
        f"{kind.name.en}: the device idles {cost} a step because of it ({share} of the step), {found.events} events",
    )


def _where(view: RankView, found: Stall) -> Where:
    if not len(found.rows):
        return Where()
    hosts = view.session.tables["host_ops"]
    worst = int(found.rows[hosts["duration_ns"][found.rows].argmax()])
    stack = view.session.text(int(hosts["stack"][worst])) if "stack" in hosts else None
    frame = user_frame(stack) if stack else None
    return Where(operators=tuple(filter(None, [view.session.text(int(hosts["name"][worst]))])), frame=frame)


def _notes(found: Stall) -> Sequence[Text]:
    if found.before:
        beside = milliseconds(found.before)
        return (Text(f"其中 {beside} 在单步之前的准备阶段（Preparing）", f"{beside} of it lie in Preparing, beside the step"),)
    if found.spread <= found.own:
        return ()
    return (
        Text(
            f"这种停顿只出现在部分步：所列为 {found.steps} 步平均到每步的代价，代表步自身为 {milliseconds(found.own)}",
            f"the pauses hit some steps only: the cost is the mean over {found.steps} steps; "
            f"the representative one has {milliseconds(found.own)}",
        ),
    )


def _from_totals(view: RankView, thresholds: Thresholds, kind: _Kind, least: float) -> tuple[Judgement, ...]:
    totals = view.session.table("api_totals")
    if totals is None or not kind.totals:
        return skipped(kind.cause, wording.NO_HOST, wording.CAPTURE_HOST)
    rows = named(view.session, totals["name"], kind.totals).nonzero()[0]
    if kind.longest and "max_ns" in totals:
        rows = rows[totals["max_ns"][rows] >= kind.longest]
    idle = view.accounting.parts["idle_unknown"]
    cost = min(int(totals["total_ns"][rows].sum()) // max(1, view.books.steps), idle)
    if cost / max(1, view.accounting.step_ns) < least:
        # Calls this cheap cannot matter, wherever they lie.
        return (healthy(kind.cause, cost / max(1, view.accounting.step_ns), _totals_evidence(view, rows.tolist())),)
    message = Text(
        f"{kind.name.zh}：主机调用合计每步 {milliseconds(cost)}，未超过空闲时间；没有主机时间线，无法确认其间设备空闲",
        f"{kind.name.en}: the calls take {milliseconds(cost)} a step in all, within the idle time; "
        "without a host timeline it is not certain that the device idled meanwhile",
    )
    return judged(
        view,
        thresholds,
        Measured(
            cause=kind.cause, exposed_ns=cost, gain_ns=cost, least=least, message=message, evidence=_totals_evidence(view, rows.tolist()),
            major=1, minor=1,
        ),
    )  # fmt: skip


def _totals_evidence(view: RankView, rows: Sequence[int]) -> tuple[Evidence, ...]:
    totals = view.session.tables["api_totals"]
    return tuple(
        view.evidence(
            "api_totals", row, f"total of {view.session.text(int(totals['name'][row]))}", int(totals["total_ns"][row]) / 1e3, "us"
        )
        for row in rows
    )


_COMPILES: Final = ("aclopCompile", "OpCompile", "GraphCompile", "BuildGraph", "CompileOp")
_ALLOCATOR: Final = ("^aclrtMalloc", "^aclrtFree", "^aclMallocMemInner", "^DevMalloc", "^DevFree", "MallocPhysical", "FreePhysical")

dataloader_bound: Final = _rule(
    _Kind(cause="dataloader_bound", causes=("input",), preparing=True, name=Text("等待输入数据", "waiting for input data"))
)
gc_pause: Final = _rule(
    _Kind(
        cause="gc_pause",
        causes=("gc",),
        spread=True,
        name=Text("解释器垃圾回收打断下发", "the interpreter's garbage collection stops launches"),
    )
)
io_checkpoint: Final = _rule(
    _Kind(cause="io_checkpoint", causes=("io",), spread=True, name=Text("保存或读取状态阻塞循环", "saving or loading state stops the loop"))
)
synchronization_stall: Final = _rule(
    _Kind(
        cause="synchronization_stall",
        causes=("sync",),
        loop=True,
        name=Text("阻塞调用排空下发队列", "blocking calls drain the launch queue"),
    )
)
dynamic_shape_recompile: Final = _rule(
    _Kind(
        cause="dynamic_shape_recompile", causes=("compile",), spread=True, totals=_COMPILES, longest=COMPILE_LEAST_NS,
        name=Text("运行中编译算子或图", "operators or graphs are compiled at run time"),
    )
)  # fmt: skip
allocator_calls: Final = _rule(
    _Kind(
        cause="memory_fragmentation", causes=("alloc",), spread=True, totals=_ALLOCATOR,
        name=Text("设备内存申请与释放在关键路径上", "device allocations and frees lie on the critical path"),
    )
)  # fmt: skip
