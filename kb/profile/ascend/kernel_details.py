"""``kernel_details.csv`` and ``op_summary_*.csv``: one row a task on the device."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kb.profile.ascend.columns import Specs
from kb.profile.ascend.csv_table import CsvTable
from kb.profile.ascend.metrics import Metrics, counter_columns
from kb.profile.ascend.part import Part, device_of, schema_table
from kb.profile.ascend.table import read_table
from kb.session.builder import Strings
from kb.session.meta import Violation
from kb.session.session import Array

FILE = "kernel_details.csv"
_HCCL_PREFIX = "hcom_"


@dataclass(frozen=True, slots=True)
class KernelFile:
    """``split_cores``: counters carry the ``aic_``/``aiv_`` prefixes of products with separate cube and vector cores."""

    part: Part
    split_cores: bool


def read_kernels(path: Path, label: str, specs: Specs, strings: Strings, metrics: Metrics) -> KernelFile:
    """The ``kernels`` table of ``path``. Rows of another width or with a negative duration are dropped and counted.

    At Level0 the exporter names no core; rows named ``hcom_*`` are communication all the same. Raises MalformedInputError.
    """
    read = read_table(path, label, specs, strings, metrics)
    split = any(name.startswith("aic_") for name in read.header)
    sound, violations = _without_negative(read, label)
    extra = {"core": _cores(sound, strings), **counter_columns(sound, metrics)} if len(sound) else None
    if extra is not None:
        extra |= _blocks(sound, extra["core"] == strings.code("COMMUNICATION"))
    table = schema_table("kernels", sound, label, strings, extra)
    return KernelFile(Part(label, table, device_of(sound), read.dropped + len(read) - len(sound), (*sound.violations, *violations)), split)


def _without_negative(read: CsvTable, label: str) -> tuple[CsvTable, tuple[Violation, ...]]:
    durations = read.columns.get("duration_ns")
    if durations is None or not np.any(durations < 0):
        return read, ()
    negative = durations < 0
    first = int(np.argmax(negative))
    detail = f"{label}:{read.lines[first]}: negative duration, {int(negative.sum())} such rows dropped"
    violation = Violation(oracle="durations are not negative", detail=detail, difference_ns=int(durations.min()))
    return read.where(~negative), (violation,)


def _blocks(read: CsvTable, talking: Array) -> dict[str, Array]:
    """Communication runs on no core of the compute engines: the 0 some exporters write there is no block count."""
    return {
        name: np.where(talking & (read.columns[name] == 0), -1, read.columns[name])
        for name in ("block", "mix_block")
        if name in read.columns
    }


def _cores(read: CsvTable, strings: Strings) -> Array:
    cores = read.columns.get("core", np.full(len(read), -1, dtype="<i4"))
    if not np.any(cores < 0):
        return cores
    hccl = [code for code, text in enumerate(strings.frozen()) if text.startswith(_HCCL_PREFIX)]
    unnamed = (cores < 0) & np.isin(read.columns["name"], hccl)
    return np.where(unnamed, strings.code("COMMUNICATION"), cores) if np.any(unnamed) else cores
