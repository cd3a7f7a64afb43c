"""Captures that show less than they could, for tests: lower levels, lost events, tables that were never recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from kb.domain.text import Text
from kb.session.meta import Missing
from kb.session.session import Session, Table

LEVEL0_COLUMNS: Final = ("start_ns", "duration_ns", "wait_ns", "step_id", "name", "op_type", "core", "block", "file", "row")
"""What the lowest level records of a kernel; the types are there and empty."""


def degraded(session: Session, *, seed: int = 0, lost_share: float = 0.0, level0: bool = False, without: Sequence[str] = ()) -> Session:
    """The session less a random ``lost_share`` (0..1) of its kernels, less what ``level0`` leaves out, less whole tables.

    What is gone is listed in ``meta.missing``, except lost events: no profiler knows what it lost.
    """
    tables = {name: table for name, table in session.tables.items() if name not in without}
    missing = [_gone(name) for name in without if name in session.tables]
    kernels = tables.get("kernels")
    if kernels is not None and lost_share:
        kept = np.random.default_rng(seed).random(len(kernels)) >= lost_share
        tables["kernels"] = kernels = kernels.where(kept)
    meta = session.meta
    if kernels is not None and level0:
        tables["kernels"] = _level0(kernels)
        why = Text("Level0 不记录类型、形状和计数器", "Level0 records no types, shapes or counters")
        missing.append(Missing(what="kernels.op_type", why=why, capture=Text("profiler_level=Level1", "profiler_level=Level1")))
        meta = msgspec.structs.replace(meta, capture=msgspec.structs.replace(meta.capture, level="Level0", metrics=None))
    return Session(msgspec.structs.replace(meta, missing=(*meta.missing, *missing)), tables, session.strings)


def _gone(table: str) -> Missing:
    return Missing(what=table, why=Text("没有记录", "not recorded"), capture=Text("采集时打开这一项", "switch it on when capturing"))


def _level0(kernels: Table) -> Table:
    columns = {name: values for name, values in kernels.columns.items() if name in LEVEL0_COLUMNS}
    unknown = np.full(len(kernels), -1, dtype=np.int32)
    return Table(kernels.name, {**columns, "op_type": unknown, "core": unknown})
