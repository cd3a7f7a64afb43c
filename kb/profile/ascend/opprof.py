"""``msprof op``: one operator measured alone, one CSV a counter family, one row a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from kb.profile.ascend.columns import ColumnSpec, Specs
from kb.profile.ascend.csv_table import CsvTable
from kb.profile.ascend.gathered import Gathered
from kb.profile.ascend.part import Part, device_of, evidence
from kb.profile.ascend.reading import Reading
from kb.profile.ascend.table import read_table
from kb.session.builder import Strings
from kb.session.builder import table as made_table
from kb.session.session import Array, Table

_BASIC: Final = "OpBasicInfo.csv"
_SPECS: Final[Specs] = {
    "name": ColumnSpec(names=("Op Name",), kind="text", required=True),
    "op_type": ColumnSpec(names=("Op Type",), kind="text"),
    "duration_ns": ColumnSpec(names=("Task Duration(us)",), kind="duration", required=True),
    "block": ColumnSpec(names=("Block Dim", "Block Num"), kind="id"),
    "mix_block": ColumnSpec(names=("Mix Block Dim", "Mix Block Num"), kind="id"),
    "device": ColumnSpec(names=("Device Id", "Device_id"), kind="id"),
    "current": ColumnSpec(names=("Current Freq",), kind="real"),
    "rated": ColumnSpec(names=("Rated Freq",), kind="real"),
}
_CORES: Final[Mapping[str, str]] = {"vector": "AI_VECTOR_CORE", "cube": "AI_CORE", "mix": "MIX_AIC"}
# Per block: our column, the exporter's names, and whether they are percent.
_RATIOS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "PipeUtilization.csv": (
        ("aic_mac_ratio", "aic_scalar_ratio", "aic_mte1_ratio", "aic_mte2_ratio", "aic_fixpipe_ratio", "aic_icache_miss_rate",
         "aiv_vec_ratio", "aiv_scalar_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio", "aiv_icache_miss_rate"),
        ("aic_cube_ratio", "aic_scalar_ratio", "aic_mte1_ratio", "aic_mte2_ratio", "aic_fixpipe_ratio", "aic_icache_miss_rate",
         "aiv_vec_ratio", "aiv_scalar_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio", "aiv_icache_miss_rate"),
    ),
}  # fmt: skip
_HITS: Final = ("aic_total_hit_rate(%)", "aiv_total_hit_rate(%)")


def read_opprof(files: Sequence[Path], reading: Reading, strings: Strings) -> Gathered:
    """One kernel with the mean of its blocks' ratios, and its clock as counters. Raises MalformedInputError.

    The tool gives no start, so the kernel begins at 0 of a clock of its own.
    """
    paths = {path.name: path for path in files}
    basic = paths[_BASIC]
    label = reading.label(basic)
    read = read_table(basic, label, _SPECS, strings)
    parts = [Part(label, None, device_of(read), read.dropped, read.violations)]
    if not len(read):
        return Gathered({}, tuple(parts))
    columns: dict[str, Array] = {name: read.columns[name] for name in ("name", "duration_ns", "block", "mix_block") if name in read.columns}
    starts = np.concatenate([[0], np.cumsum(np.maximum(read.columns["duration_ns"], 0))[:-1]])
    columns |= {"start_ns": starts, "duration_ns": np.maximum(columns["duration_ns"], 0), "op_type": read.columns["name"]}
    columns["core"] = _cores(read, strings)
    for name, path in paths.items():
        if name in ("PipeUtilization.csv", "L2Cache.csv"):
            found, part = _means(path, name, reading, strings)
            parts.append(part)
            columns |= {ours: np.full(len(read), value) for ours, value in found.items()}
    tables = {"kernels": made_table("kernels", {**columns, **evidence(label, read.lines, strings)}, strings)}
    clocks = _clocks(read, label, strings)
    return Gathered(tables | ({"counters": clocks} if clocks is not None else {}), tuple(parts), True)


def _cores(read: CsvTable, strings: Strings) -> Array:
    kinds = read.columns.get("op_type", np.full(len(read), -1))
    known = strings.frozen()
    return strings.codes([_CORES.get(known[code].casefold()) if code >= 0 else None for code in kinds.tolist()])


def _clocks(read: CsvTable, label: str, strings: Strings) -> Table | None:
    rows = [
        (name, column)
        for name, column in (("AI Core Freq [MHz]", "current"), ("AI Core rated Freq [MHz]", "rated"))
        if column in read.columns
    ]
    if not rows:
        return None
    count = len(read)
    columns: dict[str, Array] = {
        "start_ns": np.zeros(count * len(rows)),
        "name": np.concatenate([np.full(count, strings.code(name)) for name, _ in rows]),
        "value": np.concatenate([read.columns[column] for _, column in rows]),
        **evidence(label, np.tile(read.lines, len(rows)), strings),
    }
    table = made_table("counters", columns, strings)
    sound = table.where(~np.isnan(table["value"]))
    return sound if len(sound) else None


def _means(path: Path, name: str, reading: Reading, strings: Strings) -> tuple[dict[str, float], Part]:
    """Ratios of the blocks that have them, averaged; L2 hit rates of both engines likewise."""
    label = reading.label(path)
    if name == "L2Cache.csv":
        specs: Specs = {header: ColumnSpec(names=(header,), kind="percent") for header in _HITS}
        read = read_table(path, label, specs, strings)
        values = [read.columns[header] for header in _HITS if header in read.columns]
        hits = np.concatenate(values) if values else np.empty(0)
        hits = hits[~np.isnan(hits)]
        found = {"l2_hit_ratio": float(hits.mean())} if len(hits) else {}
    else:
        ours, theirs = _RATIOS[name]
        read = read_table(
            path, label, {column: ColumnSpec(names=(header,), kind="real") for column, header in zip(ours, theirs, strict=True)}, strings
        )
        sound = {column: values[~np.isnan(values)] for column, values in read.columns.items()}
        found = {column: float(values.mean()) for column, values in sound.items() if len(values)}
    return found, Part(label, dropped=read.dropped, violations=read.violations)
