"""The books of one step: exclusive parts that add up to it (design section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec.structs import replace

from kb.diagnose.intervals import clipped, union_length
from kb.diagnose.operators import OperatorClasses, matching, starting
from kb.diagnose.steps import Step, complete_steps, representative, rows_of
from kb.domain.accounting import PARTS, TOLERANCE, Accounting, Part
from kb.domain.text import Text
from kb.session.meta import Violation
from kb.session.session import Array, Session, Table

ROUNDING_NS: Final = 1_000
"""Exporters write microseconds with float noise; a difference up to this is rounding and joins the idle time.
The largest seen on the real samples is 130 ns."""

_NO_STEP: Final = Text(
    zh="没有可记账的内容：既没有采集到单步汇总，也没有采集到设备任务",
    en="nothing to account: neither step totals nor device tasks were captured",
)
_NO_DEVICE: Final = Text(
    zh="没有采集到设备活动：整步计为原因未知的空闲",
    en="no device activity was captured: the whole step counts as idle of unknown cause",
)
_IDLE_TOTALS: Final = Text(
    zh="空闲时间无法按原因拆分：导出的汇总只有 Free 一项（时间线或 DB 导出才看得到主机侧）",
    en="idle time cannot be split by cause: the exporter's totals give Free only (a trace or DB export would show the host)",
)
_IDLE_TASKS: Final = Text(
    zh="空闲时间未按原因拆分：它是设备任务没有覆盖的部分",
    en="idle time is not split by cause: it is what device tasks leave uncovered",
)
_PLANE: Final = Text(
    zh="通信的等待、传输与空闲取自导出工具报告的那一个平面",
    en="communication wait, transit and idle are those of the one plane the exporter reports",
)
_SUMS: Final = Text(
    zh="计算的细分是算子时长之和；多流并行时可能超过该部分",
    en="the splits of compute are sums of kernel durations; with concurrent streams they may exceed the part",
)


@dataclass(frozen=True, slots=True)
class Books:
    """An accounting with what it rests on.

    ``step`` is None when nothing could be accounted. ``kernel_rows`` and ``comm_rows`` are the positions of the
    step's rows in the tables ``kernels`` and ``comm_ops``. ``violations`` is not empty when the parts miss the
    step by more than ``TOLERANCE``: no share of such a step can be trusted.
    """

    accounting: Accounting
    step: Step | None
    steps: int
    kernel_rows: Array
    comm_rows: Array
    violations: tuple[Violation, ...] = ()


def account(session: Session, classes: OperatorClasses) -> Books:
    """The books of the representative step; empty ones (step_ns 0) when the session holds no step at all."""
    steps = complete_steps(session)
    step = representative(steps)
    if step is None:
        nothing = np.empty(0, np.int64)
        return Books(Accounting(step="", step_ns=0, preparing_ns=None, parts=_full({}), notes=(_NO_STEP,)), None, 0, nothing, nothing)
    only = len(steps) == 1
    kernel_rows, comm_rows = _rows(session, "kernels", step, only), _rows(session, "comm_ops", step, only)
    if step.trace_row is None:
        plain = _from_tasks(session, step, kernel_rows, comm_rows, classes)
    else:
        plain = _from_totals(session, step, step.trace_row)
    splits = _splits(session, plain, kernel_rows, comm_rows, classes)
    balanced, violations = _balanced(_with_splits(plain, splits))
    return Books(balanced, step, len(steps), kernel_rows, comm_rows, violations)


def is_communication(session: Session, kernels: Table, classes: OperatorClasses) -> Array:
    """Boolean mask of the rows of a kernel table that are communication, by core, else by operator or kernel name."""
    talks = matching(session, kernels["core"], classes.cores["communication"])
    unknown = np.flatnonzero(kernels["core"] < 0)
    for column in ("op_type", "name"):
        talks[unknown] |= starting(session, kernels[column][unknown], classes.communication_prefixes)
    return talks


def _rows(session: Session, name: str, step: Step, only: bool) -> Array:
    table = session.table(name)
    return rows_of(table, step, only=only) if table is not None else np.empty(0, np.int64)


def _full(parts: Mapping[Part, int]) -> dict[Part, int]:
    return {part: parts.get(part, 0) for part in PARTS}


def _from_totals(session: Session, step: Step, row: int) -> Accounting:
    trace = session.tables["step_trace"]

    def cell(column: str) -> int:
        return int(trace[column][row])

    bubble = cell("bubble_ns")
    exposed = cell("comm_not_overlapped_ns") - bubble
    parts: dict[Part, int] = {
        "compute": cell("computing_ns"),
        "comm_exposed": 0 if -ROUNDING_NS <= exposed < 0 else exposed,
        "idle_bubble": bubble,
        "idle_unknown": cell("free_ns"),
    }
    preparing = cell("preparing_ns") if "preparing_ns" in trace else -1
    return Accounting(
        step=step.label,
        step_ns=step.step_ns,
        preparing_ns=preparing if preparing >= 0 else None,
        parts=_full(parts),
        splits={"comm": {"overlapped": cell("overlapped_ns")}},
        source="step_trace",
        notes=(_IDLE_TOTALS,),
    )


def _from_tasks(session: Session, step: Step, kernel_rows: Array, comm_rows: Array, classes: OperatorClasses) -> Accounting:
    window = step.window or (0, 0)
    kernels, comm_ops, copies = session.table("kernels"), session.table("comm_ops"), session.table("copies")
    compute, comm, copy = _nothing(), _nothing(), _nothing()
    if kernels is not None:
        own = kernels.where(kernel_rows)
        talks = is_communication(session, own, classes)
        compute, comm = _intervals(own.where(~talks), window), _intervals(own.where(talks), window)
    if comm_ops is not None and not len(comm[0]):
        comm = _intervals(comm_ops.where(comm_rows[comm_ops["start_ns"][comm_rows] >= 0]), window)
    if copies is not None:
        copy = _intervals(copies, window)
    busy = [union_length(*_joined(*kinds)) for kinds in ((compute,), (compute, comm), (compute, comm, copy))]
    parts: dict[Part, int] = {
        "compute": busy[0],
        "comm_exposed": busy[1] - busy[0],
        "copy_exposed": busy[2] - busy[1],
        "idle_unknown": step.step_ns - busy[2],
    }
    return Accounting(
        step=step.label,
        step_ns=step.step_ns,
        preparing_ns=None,
        parts=_full(parts),
        splits={"comm": {"overlapped": union_length(*comm) - parts["comm_exposed"]}},
        source="kernels" if kernels is not None else "steps",
        notes=(_IDLE_TASKS,) if busy[2] else (_NO_DEVICE,),
    )


def _nothing() -> tuple[Array, Array]:
    return np.empty(0, np.int64), np.empty(0, np.int64)


def _intervals(table: Table, window: tuple[int, int]) -> tuple[Array, Array]:
    return clipped(table["start_ns"], table["start_ns"] + table["duration_ns"], window)


def _joined(*kinds: tuple[Array, Array]) -> tuple[Array, Array]:
    return np.concatenate([kind[0] for kind in kinds]), np.concatenate([kind[1] for kind in kinds])


def _splits(
    session: Session, plain: Accounting, kernel_rows: Array, comm_rows: Array, classes: OperatorClasses
) -> Mapping[str, Mapping[str, int]]:
    """Sub-splits beside the parts: compute by engine, communication by state; only what was captured."""
    splits: dict[str, dict[str, int]] = {}
    kernels, comm_ops = session.table("kernels"), session.table("comm_ops")
    if kernels is not None and len(kernel_rows):
        own = kernels.where(kernel_rows)
        own = own.where(~is_communication(session, own, classes))
        engines = {engine: matching(session, own["core"], names) for engine, names in classes.cores.items() if engine != "communication"}
        sums = {engine: int(own["duration_ns"][mask].sum()) for engine, mask in engines.items()}
        sums["other"] = int(own["duration_ns"].sum()) - sum(sums.values())
        splits["compute"] = {engine: spent for engine, spent in sums.items() if spent}
    comm = dict(plain.splits.get("comm", {}))
    if comm_ops is not None:
        for state in ("wait", "transit", "idle"):
            values = comm_ops[f"{state}_ns"][comm_rows] if f"{state}_ns" in comm_ops else np.empty(0, np.int64)
            if (values >= 0).any():
                comm[state] = int(values[values >= 0].sum())
    return {**splits, "comm": comm}


def _with_splits(plain: Accounting, splits: Mapping[str, Mapping[str, int]]) -> Accounting:
    notes = list(plain.notes)
    if "wait" in splits["comm"]:
        notes.append(_PLANE)
    if sum(splits.get("compute", {}).values()) > plain.parts["compute"] + ROUNDING_NS:
        notes.append(_SUMS)
    return replace(plain, splits=splits, notes=tuple(notes))


def _balanced(books: Accounting) -> tuple[Accounting, tuple[Violation, ...]]:
    """Rounding joins the idle time; a larger difference stays visible, and beyond the tolerance it is a violation."""
    off = books.imbalance_ns
    parts = dict(books.parts)
    negative = [part for part, value in parts.items() if value < 0]
    if abs(off) <= ROUNDING_NS and parts["idle_unknown"] >= off:
        parts["idle_unknown"] -= off
        off = 0
    if not negative and abs(off) <= TOLERANCE * books.step_ns:
        miss = Text(zh=f"各部分之和与单步相差 {off} ns，在容差之内", en=f"the parts miss the step by {off} ns, within the tolerance")
        return replace(books, parts=parts, notes=(*books.notes, miss) if off else books.notes), ()
    detail = f"parts sum to {books.step_ns + off} ns, the step is {books.step_ns} ns"
    if negative:
        detail += f"; negative: {', '.join(negative)}"
    violation = Violation(oracle="sum of parts = step", detail=detail, difference_ns=off)
    broken = Text(zh=f"账目不平：{detail}", en=f"the books do not balance: {detail}")
    return replace(books, parts=parts, notes=(*books.notes, broken)), (violation,)
