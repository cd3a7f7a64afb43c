"""The database export of one rank to tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from kb.domain.soc import SocFamily, SocRef
from kb.profile.ascend import db_host, db_tasks
from kb.profile.ascend.database import Database, opened
from kb.profile.ascend.db_names import read_names
from kb.profile.ascend.db_totals import totals
from kb.profile.ascend.gathered import Gathered
from kb.profile.ascend.part import Part
from kb.profile.ascend.profiler_info import metadata_of_database
from kb.profile.ascend.reading import Reading
from kb.session.builder import Strings
from kb.session.meta import Violation
from kb.session.session import Array, Table

_FAMILIES: Final[tuple[tuple[str, SocFamily], ...]] = (
    ("Ascend910_93", "A3"), ("Ascend910B", "A2"), ("Ascend950", "A5"), ("Ascend910_95", "A5"), ("Ascend910", "910"),
    ("Ascend310P", "310P"), ("Ascend310B", "310B"), ("Ascend310", "310"),
)  # fmt: skip


def read_database(path: Path, reading: Reading, strings: Strings) -> Gathered:
    """Every table of ours that ``path`` holds. Raises MalformedInputError naming the file."""
    label = reading.label(path)
    with opened(path, label) as database:
        names = read_names(database, strings)
        tasks, dropped = db_tasks.read_tasks(database)
        found = [
            db_tasks.kernels(database, tasks, names),
            *db_tasks.comm_ops(database, names),
            db_tasks.comm_tasks(database, tasks, names),
            db_tasks.copies(database, tasks, names),
            db_host.host_ops(database, names),
            db_host.counters(database, names),
            db_host.allocations(database, names),
            db_host.marks(database, names),
            *totals(database, names),
        ]
        markers = _markers(database, label)
        tables = {table.name: table for table in found if table is not None}
        if "kernels" in tables:
            tables["kernels"] = _with_steps(tables["kernels"], tables.get("host_ops"), markers, strings)
        rank, device = _place(database)
        meta = database.rows("META_DATA", "name", "value")
        values = {name: value for name, value in zip(meta.texts("name"), meta.texts("value"), strict=True) if name and value}
        sources = sorted({strings.frozen()[code] for table in tables.values() for code in np.unique(table["file"]).tolist()} - {label})
        part = Part(label, None, device, dropped, _unmerged(path, label))
        return Gathered(tables, (part,), True, markers, _soc(database), metadata_of_database(values), rank, tuple(sources))


def _unmerged(path: Path, label: str) -> tuple[Violation, ...]:
    """A write-ahead log beside the file: a program still has it open, and what it wrote last is not read."""
    log = path.with_name(f"{path.name}-wal")
    size = log.stat().st_size if log.is_file() else 0
    if not size:
        return ()
    detail = f"{label}: {size} bytes of its write-ahead log are not merged; close the program that has it open, then read again"
    return (Violation(oracle="a database is closed", detail=detail, difference_ns=0),)


def _markers(database: Database, label: str) -> Mapping[str, tuple[int, int, int, str]]:
    rows = database.rows("STEP_TIME", "id", "startNs", "endNs")
    spans = zip(rows.texts("id"), rows.integers("startNs").tolist(), rows.integers("endNs").tolist(), rows.ids.tolist(), strict=True)
    return {name: (start, end, min(row, 2**31 - 1), f"{label}#STEP_TIME") for name, start, end, row in spans if name and 0 <= start < end}


def _with_steps(kernels: Table, host: Table | None, markers: Mapping[str, tuple[int, int, int, str]], strings: Strings) -> Table:
    """The step of each kernel: the last that had begun when the host launched it, or, unlinked, when it ran itself."""
    if not markers:
        return kernels
    begun = kernels["start_ns"].copy()
    if host is not None:
        order = np.argsort(host["connection_id"], kind="stable")
        place = np.minimum(np.searchsorted(host["connection_id"][order], kernels["connection_id"]), len(order) - 1)
        launch = order[place]
        linked = (kernels["connection_id"] >= 0) & (host["connection_id"][launch] == kernels["connection_id"])
        begun = np.where(linked, host["start_ns"][launch], begun)
    names = sorted(markers, key=lambda name: markers[name][0])
    starts = np.array([markers[name][0] for name in names])
    codes = strings.codes(names)
    place = np.maximum(np.searchsorted(starts, begun, side="right") - 1, 0)
    return Table("kernels", {**kernels.columns, "step_id": codes[place].astype("<i4")})


def _place(database: Database) -> tuple[int | None, int | None]:
    rows = database.rows("RANK_DEVICE_MAP", "rankId", "deviceId")
    if len(rows) == 1:
        rank, device = int(rows.integers("rankId")[0]), int(rows.integers("deviceId")[0])
        return rank if rank >= 0 else None, device if device >= 0 else None
    devices: Array = np.unique(database.rows("TASK", "deviceId").integers("deviceId"))
    return None, int(devices[0]) if len(devices) == 1 and devices[0] >= 0 else None


def _soc(database: Database) -> SocRef | None:
    """What NPU_INFO names (a family more than a chip) and the clock the samples show most."""
    named = [name for name in database.rows("NPU_INFO", "name").texts("name") if name]
    clocks = [value for value in database.rows("AICORE_FREQ", "freq").reals("freq").tolist() if value > 0]
    if not named:
        return None
    family: SocFamily = next((family for start, family in _FAMILIES if named[0].startswith(start)), "unknown")
    clock = Counter(clocks).most_common(1)[0][0] if clocks else None
    return SocRef(reported_name=named[0], family=family, clock_mhz=clock, confidence="medium", how="NPU_INFO")
