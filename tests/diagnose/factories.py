"""Small real sessions for the tests of diagnosis and comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kb.diagnose.operators import load_classes
from kb.diagnose.ruleset import RULES
from kb.diagnose.view import RankView, rank_view
from kb.domain.catalogue import Catalogue, Cause
from kb.domain.text import Text
from kb.session.builder import Strings, session, table
from kb.session.meta import Capture, SessionMeta
from kb.session.session import Session, Table

MS = 1_000_000
KERNEL_FILE = "rank/kernel_details.csv"
TRACE_FILE = "rank/step_trace_time.csv"


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the kernel table; times in ns."""

    op_type: str | None
    start: int = -1
    duration: int = 100
    core: str | None = "AI_VECTOR_CORE"
    stream: int = 2
    step: str | None = None
    inputs: str | None = None
    outputs: str | None = None
    mac_ratio: float = float("nan")
    aicore: float = float("nan")
    name: str = "kernel"


def in_sequence(kernels: Iterable[Kernel], *, gap: int = 0, start: int = 0) -> tuple[Kernel, ...]:
    """The kernels back to back from ``start``."""
    placed = []
    for kernel in kernels:
        placed.append(msgspec.structs.replace(kernel, start=start))
        start += kernel.duration + gap
    return tuple(placed)


def kernel_table(kernels: Sequence[Kernel], strings: Strings) -> Table:
    columns: dict[str, Any] = {
        "start_ns": [kernel.start for kernel in kernels],
        "duration_ns": [kernel.duration for kernel in kernels],
        "step_id": [kernel.step for kernel in kernels],
        "name": [kernel.name for kernel in kernels],
        "op_type": [kernel.op_type for kernel in kernels],
        "core": [kernel.core for kernel in kernels],
        "stream": [kernel.stream for kernel in kernels],
        "input_shapes": [kernel.inputs for kernel in kernels],
        "output_shapes": [kernel.outputs for kernel in kernels],
        "aic_mac_ratio": [kernel.mac_ratio for kernel in kernels],
        "aicore_time_ns": [kernel.aicore for kernel in kernels],
        "file": [KERNEL_FILE] * len(kernels),
        "row": list(range(2, len(kernels) + 2)),
    }
    return table("kernels", columns, strings)


def trace_table(rows: Sequence[dict[str, Any]], strings: Strings) -> Table:
    """``step_trace`` rows; a column not given is 0, ``stage_ns`` not given closes the books."""
    names = ("computing_ns", "comm_not_overlapped_ns", "overlapped_ns", "communication_ns", "free_ns", "bubble_ns")
    full = [{"step_id": "1", **dict.fromkeys(names, 0), **row} for row in rows]
    closing = [row["computing_ns"] + row["comm_not_overlapped_ns"] + row["free_ns"] - row["bubble_ns"] for row in full]
    columns: dict[str, Any] = {name: [row[name] for row in full] for name in ("step_id", *names)}
    columns["stage_ns"] = [row.get("stage_ns", close) for row, close in zip(full, closing, strict=True)]
    columns["preparing_ns"] = [row.get("preparing_ns", -1) for row in full]
    columns |= {"file": [TRACE_FILE] * len(full), "row": list(range(2, len(full) + 2))}
    return table("step_trace", columns, strings)


def steps_table(rows: Sequence[tuple[str, int, int, int]], strings: Strings) -> Table:
    """Markers as (id, begin, end, warmup)."""
    ids, begins, ends, warmups = ([row[place] for row in rows] for place in range(4))
    return table("steps", {"step_id": ids, "start_ns": begins, "end_ns": ends, "warmup": warmups}, strings)


def exchange_table(names: Sequence[str], duration: int, strings: Strings, *, kind: str = "p2p") -> Table:
    count = len(names)
    columns: dict[str, Any] = {
        "start_ns": list(range(count)),
        "duration_ns": [duration] * count,
        "name": list(names),
        "kind": [kind] * count,
    }
    return table("comm_ops", columns, strings)


def made(
    *,
    kernels: Sequence[Kernel] = (),
    trace: Sequence[dict[str, Any]] = (),
    steps: Sequence[tuple[str, int, int, int]] = (),
    exchanges: Sequence[str] = (),
    exchange_ns: int = 0,
    copies: Sequence[tuple[int, int]] = (),
    **meta: Any,
) -> Session:
    """A session with the tables given."""
    strings = Strings()
    tables = []
    if kernels:
        tables.append(kernel_table(kernels, strings))
    if trace:
        tables.append(trace_table(trace, strings))
    if steps:
        tables.append(steps_table(steps, strings))
    if exchanges:
        tables.append(exchange_table(exchanges, exchange_ns, strings))
    if copies:
        columns: dict[str, Any] = {
            "start_ns": [row[0] for row in copies],
            "duration_ns": [row[1] for row in copies],
            "kind": ["h2d"] * len(copies),
        }
        tables.append(table("copies", columns, strings))
    described = {"name": "run", "origin": "measured", "capture": Capture(format="ascend_text"), **meta}
    return session(SessionMeta(**described), tables, strings)


def view_of(made_session: Session) -> RankView:
    assert not made_session.self_check()
    return rank_view(made_session, load_classes())


def catalogue(*causes: str) -> Catalogue:
    """A catalogue with these causes, each answered by ``fix_<cause>``."""
    entries = {
        cause: Cause(
            id=cause,
            layer="graph",
            name=Text(cause, cause),
            definition=Text(cause, cause),
            evidence=Text(cause, cause),
            strategies=(f"fix_{cause}",),
        )
        for cause in causes
    }
    return Catalogue(causes=entries, strategies={}, metrics={}, socs={}, glossary=())


SHIPPED = catalogue(*(cause for entry in RULES for cause in entry.causes))
