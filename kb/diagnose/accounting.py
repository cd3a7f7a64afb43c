"""The books of one step: exclusive parts that add up to it (design section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from msgspec.structs import replace

from kb.diagnose.hosts import load_host_classes
from kb.diagnose.idle import Idle, Intervals, split_idle
from kb.diagnose.intervals import clipped, union_length
from kb.diagnose.operators import OperatorClasses, matching, starting
from kb.diagnose.planes import OpWait, op_waits
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
    zh="没有采集到设备活动：设备上的任何问题都无法判断，整步计为原因未知的空闲",
    en="no device activity was captured: nothing on the device can be judged, and the whole step counts as idle of unknown cause",
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
_PLANES: Final = Text(
    zh="通信的等待取自各平面的任务：wait 为各平面之并集，wait_longest_plane 为等待最长的平面",
    en="communication wait comes from the tasks of the planes: wait is the union over planes, wait_longest_plane the plane that waits most",
)
_IDLE_CAUSES: Final = Text(
    zh="空闲按主机侧事件拆分：设备空闲时主机在做什么；没有对应事件的计为原因未知",
    en="idle time is split by what the host did meanwhile; what no host event explains counts as unknown",
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
    idle: Idle | None = None
    """Idle intervals by cause; None where no device task places the step in time."""
    waits: Mapping[int, OpWait] = field(default_factory=dict)
    """Waiting by communication operator (string code); empty without ``comm_tasks``."""


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
    plain, idle = _with_idle(session, step, plain, kernel_rows, comm_rows)
    waits = op_waits(session, extent(session, step, kernel_rows))
    splits = _splits(session, plain, kernel_rows, comm_rows, classes, waits)
    balanced, violations = _balanced(_with_splits(plain, splits, planes=bool(waits)))
    return Books(balanced, step, len(steps), kernel_rows, comm_rows, violations, idle, waits)


def extent(session: Session, step: Step, kernel_rows: Array) -> tuple[int, int] | None:
    """Where the step lies in time: its marker or the span of its kernels; None when neither was captured.

    With the exporter's totals the one of nearer length: Stage begins with the first device task, the marker earlier.
    """
    if not len(kernel_rows):
        return step.window
    kernels = session.tables["kernels"]
    starts = kernels["start_ns"][kernel_rows]
    span = int(starts.min()), int((starts + kernels["duration_ns"][kernel_rows]).max())
    if step.window is None:
        return span
    if step.trace_row is None:
        return step.window
    return min(step.window, span, key=lambda window: abs(window[1] - window[0] - step.step_ns))


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


def _with_idle(session: Session, step: Step, plain: Accounting, kernel_rows: Array, comm_rows: Array) -> tuple[Accounting, Idle | None]:
    """Move unknown idle time to the causes that host events and copies show; never more than there is."""
    window = extent(session, step, kernel_rows)
    tasks = device_tasks(session, kernel_rows, comm_rows)
    if window is None or not len(tasks[0]):
        return plain, None
    copies = _copies(session)
    busy = _joined(tasks, copies)
    classes = load_host_classes()
    idle = split_idle(session, window, busy, session.tables["kernels"].where(kernel_rows) if len(kernel_rows) else None, classes)
    parts = dict(plain.parts)
    if step.trace_row is not None:
        copied = union_length(*clipped(*busy, window)) - union_length(*clipped(*tasks, window))
        parts["copy_exposed"] = min(copied, parts["idle_unknown"])
        parts["idle_unknown"] -= parts["copy_exposed"]
    lengths = {cause: idle.length(cause) for cause in idle.owned if cause != "unknown"}
    named, free = sum(lengths.values()), parts["idle_unknown"]
    if not named or free <= 0:
        return replace(plain, parts=parts), idle
    scale = min(1.0, free / named)
    lengths = {cause: int(length * scale) for cause, length in lengths.items() if length}
    for cause, length in lengths.items():
        parts[classes.parts[cause]] += length
    parts["idle_unknown"] -= sum(lengths.values())
    notes = tuple(note for note in plain.notes if note not in (_IDLE_TOTALS, _IDLE_TASKS))
    splits = {**plain.splits, "idle": {**lengths, "unknown": parts["idle_unknown"]}}
    return replace(plain, parts=parts, splits=splits, notes=(*notes, _IDLE_CAUSES)), idle


def device_tasks(session: Session, kernel_rows: Array, comm_rows: Array) -> Intervals:
    """Intervals of the step's kernels and communication operators."""
    found = [_nothing()]
    for name, rows in (("kernels", kernel_rows), ("comm_ops", comm_rows)):
        table = session.table(name)
        if table is not None and len(rows):
            own = rows[table["start_ns"][rows] >= 0]
            found.append((table["start_ns"][own], table["start_ns"][own] + table["duration_ns"][own]))
    return _joined(*found)


def _copies(session: Session) -> Intervals:
    copies = session.table("copies")
    return _nothing() if copies is None else (copies["start_ns"], copies["start_ns"] + copies["duration_ns"])


def _nothing() -> tuple[Array, Array]:
    return np.empty(0, np.int64), np.empty(0, np.int64)


def _intervals(table: Table, window: tuple[int, int]) -> tuple[Array, Array]:
    return clipped(table["start_ns"], table["start_ns"] + table["duration_ns"], window)


def _joined(*kinds: tuple[Array, Array]) -> tuple[Array, Array]:
    return np.concatenate([kind[0] for kind in kinds]), np.concatenate([kind[1] for kind in kinds])


def _splits(
    session: Session, plain: Accounting, kernel_rows: Array, comm_rows: Array, classes: OperatorClasses, waits: Mapping[int, OpWait]
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
    splits |= {name: dict(split) for name, split in plain.splits.items() if name != "comm"}
    comm = dict(plain.splits.get("comm", {}))
    if waits:
        comm |= _plane_states(waits, _communicating_ns(session, kernel_rows, comm_rows, classes))
    elif comm_ops is not None:
        for state in ("wait", "transit", "idle"):
            values = comm_ops[f"{state}_ns"][comm_rows] if f"{state}_ns" in comm_ops else np.empty(0, np.int64)
            if (values >= 0).any():
                comm[state] = int(values[values >= 0].sum())
    return {**splits, "comm": comm}


def _plane_states(waits: Mapping[int, OpWait], total_ns: int) -> dict[str, int]:
    wait, transit = (sum(getattr(wait, name) for wait in waits.values()) for name in ("union", "transfer"))
    longest = sum(wait.longest for wait in waits.values())
    return {"wait": wait, "wait_longest_plane": longest, "transit": transit, "idle": max(0, total_ns - wait - transit)}


def _communicating_ns(session: Session, kernel_rows: Array, comm_rows: Array, classes: OperatorClasses) -> int:
    """Summed duration of the step's communication operators."""
    if len(comm_rows):
        return int(session.tables["comm_ops"]["duration_ns"][comm_rows].sum())
    if not len(kernel_rows):
        return 0
    own = session.tables["kernels"].where(kernel_rows)
    return int(own["duration_ns"][is_communication(session, own, classes)].sum())


def _with_splits(plain: Accounting, splits: Mapping[str, Mapping[str, int]], *, planes: bool) -> Accounting:
    notes = list(plain.notes)
    if "wait" in splits["comm"]:
        notes.append(_PLANES if planes else _PLANE)
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
