"""A session as an Ascend text export, in the newest column set, that this package (and msprof-analyze) reads back.

The origin travels in ``session_origin.json``: a simulated session written here is a simulated session when read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from kb.errors import KbError
from kb.profile.ascend import mark
from kb.profile.ascend.layout import OUTPUT
from kb.profile.ascend.writing_communication import communication_bytes, matrix_bytes
from kb.profile.ascend.writing_trace import trace_bytes
from kb.profile.ascend.writing_values import (
    csv_bytes,
    microseconds,
    numbers,
    percent_of,
    quoted,
    real,
    reals,
    stamp,
    texts,
    times,
    written_as,
)
from kb.session.meta import SessionMeta
from kb.session.session import Session, Table

SUFFIX: Final = "_ascend_pt"
_CODES: Final[Mapping[str, str]] = {
    "Input Shapes": "input_shapes", "Input Data Types": "input_dtypes", "Input Formats": "input_formats",
    "Output Shapes": "output_shapes", "Output Data Types": "output_dtypes", "Output Formats": "output_formats",
}  # fmt: skip
_PIPES: Final = (
    ("aicore_time(us)", "aicore_time_ns"), ("aic_total_cycles", "aic_total_cycles"), ("aic_mac_ratio", "aic_mac_ratio"),
    ("aic_scalar_ratio", "aic_scalar_ratio"), ("aic_mte1_ratio", "aic_mte1_ratio"), ("aic_mte2_ratio", "aic_mte2_ratio"),
    ("aic_fixpipe_ratio", "aic_fixpipe_ratio"), ("aic_icache_miss_rate", "aic_icache_miss_rate"), ("aiv_time(us)", "aiv_time_ns"),
    ("aiv_total_cycles", "aiv_total_cycles"), ("aiv_vec_ratio", "aiv_vec_ratio"), ("aiv_scalar_ratio", "aiv_scalar_ratio"),
    ("aiv_mte2_ratio", "aiv_mte2_ratio"), ("aiv_mte3_ratio", "aiv_mte3_ratio"), ("aiv_icache_miss_rate", "aiv_icache_miss_rate"),
)  # fmt: skip
_STEP: Final = (
    ("Computing", "computing_ns"), ("Communication(Not Overlapped)", "comm_not_overlapped_ns"), ("Overlapped", "overlapped_ns"),
    ("Communication", "communication_ns"), ("Free", "free_ns"), ("Stage", "stage_ns"), ("Bubble", "bubble_ns"),
)  # fmt: skip
_KIBI: Final = 1024


def write_rank(session: Session, folder: Path) -> Path:
    """Write ``session`` below ``folder`` and return the new ``<name>_ascend_pt`` folder.

    Every table that a text export can carry is written; the importer reads it back equal, evidence columns aside, and
    the metadata with it. Raises KbError when the folder is already there; OSError when the disk refuses.
    """
    name = session.meta.name if session.meta.name.endswith(SUFFIX) else f"{session.meta.name}{SUFFIX}"
    root = folder / "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)
    if root.exists():
        raise KbError(f"{root} is already there", do="choose another folder, or remove it first")
    for path, data in rank_files(session):
        put(root / path, data)
    return root


def put(path: Path, data: bytes) -> None:
    """Write one file of an export. An export can be made again, so nothing waits for the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def rank_files(session: Session) -> Iterator[tuple[Path, bytes]]:
    """The files of the export by their path inside the rank folder."""
    meta = session.meta
    number = meta.rank if meta.rank is not None else -1
    yield Path(f"profiler_info_{number}.json" if number >= 0 else "profiler_info.json"), _info(meta)
    yield Path("profiler_metadata.json"), _metadata(meta)
    yield Path(mark.FILE), mark.mark_bytes(session)
    output = Path(OUTPUT)
    for file, table, make in _FILES:
        found = session.table(table)
        if found is not None and len(found):
            yield output / file, make(session, found)
    if any(session.table(name) is not None for name in ("host_ops", "comm_tasks", "counters", "copies", "marks", "steps")):
        yield output / "trace_view.json", trace_bytes(session)


def _info(meta: SessionMeta) -> bytes:
    experimental = {"_profiler_level": meta.capture.level, "_aic_metrics": meta.capture.metrics, "_export_type": ["text"]}
    document: dict[str, object] = {"config": {"common_config": {}, "experimental_config": experimental}, "rank_id": meta.rank}
    versions = {"torch_npu": "torch_npu_version", "cann": "cann_version"}
    document |= {theirs: meta.software[ours] for ours, theirs in versions.items() if ours in meta.software}
    return msgspec.json.format(msgspec.json.encode(document), indent=4)


def _metadata(meta: SessionMeta) -> bytes:
    layout = meta.parallel
    sizes = {
        "tensor_model_parallel_size": layout.tensor, "pipeline_model_parallel_size": layout.pipeline, "data_parallel_size": layout.data,
        "context_parallel_size": layout.context, "expert_model_parallel_size": layout.expert,
        "virtual_pipeline_model_parallel_size": layout.virtual,
        "rank": meta.rank, "world_size": meta.world_size,
    }  # fmt: skip
    groups = {
        group.name: {
            "group_name": group.dimension,
            "group_rank": group.ranks.index(meta.rank) if meta.rank in group.ranks else -1,
            "global_ranks": group.ranks,
        }
        for group in layout.groups
    }
    document = {
        "ENV_VARIABLES": dict(meta.environment),
        "distributed_args": {name: value for name, value in sizes.items() if value is not None},
        "parallel_group_info": groups,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=4)


def _kernels(session: Session, table: Table) -> bytes:
    rows = len(table)
    columns: list[tuple[str, Sequence[str]]] = [
        ("Step Id", texts(session, table, "step_id")),
        ("Device_id", [str(session.meta.device if session.meta.device is not None else 0)] * rows),
        ("Model ID", ["4294967295"] * rows),
        ("Task ID", numbers(table, "task_id")),
        ("Stream ID", numbers(table, "stream")),
        ("Name", texts(session, table, "name")),
        ("Type", texts(session, table, "op_type")),
        ("OP State", texts(session, table, "op_state")),
        ("Accelerator Core", texts(session, table, "core")),
        ("Start Time(us)", [stamp(value) for value in table["start_ns"].tolist()]),
        ("Duration(us)", times(table, "duration_ns")),
        ("Wait Time(us)", times(table, "wait_ns")),
        ("Block Num", numbers(table, "block")),
        ("Mix Block Num", numbers(table, "mix_block")),
        ("HF32 Eligible", ["NO"] * rows),
        *((header, quoted(texts(session, table, column)) if "Shapes" in header else texts(session, table, column))
          for header, column in _CODES.items()),
        ("Context ID", ["N/A"] * rows),
        *((header, reals(table, column, 1000.0 if column.endswith("_ns") else 1.0)) for header, column in _PIPES if column in table),
    ]  # fmt: skip
    if "cube_utilization" in table:
        columns.append(("cube_utilization(%)", [real(value) for value in percent_of(table["cube_utilization"]).tolist()]))
    columns += _counters(table)
    return csv_bytes([header for header, _ in columns], [cells for _, cells in columns])


def _counters(table: Table) -> Iterator[tuple[str, Sequence[str]]]:
    for column, (header, scale) in _COUNTERS.items():
        if column in table:
            written = written_as(table[column], partial(np.multiply, scale), table[column] / scale)
            yield header, [real(value) for value in written.tolist()]
    if "l2_hit_ratio" in table:
        # Hits and misses that give the very same quotient: the ratio itself of one access.
        yield "aic_write_cache_hit", reals(table, "l2_hit_ratio")
        yield "aic_write_cache_miss_allocate", [real(1 - value) for value in table["l2_hit_ratio"].tolist()]


_COUNTERS: Final[Mapping[str, tuple[str, float]]] = {
    "hbm_read_bytes": ("aic_read_main_memory_datas(KB)", 1024.0), "hbm_write_bytes": ("aic_write_main_memory_datas(KB)", 1024.0),
    **{f"{place}_{way}_rate": (f"aic_{name}_{way}_bw(GB/s)", 1e9) for place, name in (("hbm", "main_mem"), ("l2", "l2"), ("l1", "l1"))
       for way in ("read", "write")},
}  # fmt: skip


def _step_trace(session: Session, table: Table) -> bytes:
    steps = [text if text != "N/A" else "" for text in texts(session, table, "step_id")]
    columns: list[tuple[str, Sequence[str]]] = [("Device_id", [str(session.meta.device or 0)] * len(table)), ("Step", steps)]
    columns += [(header, times(table, column)) for header, column in _STEP]
    receiving = table["comm_not_overlapped_ns"] - np.maximum(table["bubble_ns"], 0)
    columns.append(("Communication(Not Overlapped and Exclude Receive)", [microseconds(value) for value in receiving.tolist()]))
    if "preparing_ns" in table:
        columns.append(("Preparing", times(table, "preparing_ns")))
    return csv_bytes([header for header, _ in columns], [cells for _, cells in columns])


def _api_totals(session: Session, table: Table) -> bytes:
    averages = np.where(table["count"] > 0, table["total_ns"] // np.maximum(table["count"], 1), 0)
    columns = {
        "Device_id": ["host"] * len(table), "Level": texts(session, table, "layer"), "API Name": texts(session, table, "name"),
        "Time(us)": times(table, "total_ns"), "Count": numbers(table, "count"),
        "Avg(us)": [microseconds(value) for value in averages.tolist()],
        "Min(us)": ["N/A"] * len(table), "Max(us)": times(table, "max_ns"), "Variance": ["N/A"] * len(table),
    }  # fmt: skip
    return csv_bytes(list(columns), list(columns.values()))


def _op_totals(session: Session, table: Table) -> bytes:
    averages = np.where(table["count"] > 0, table["total_ns"] // np.maximum(table["count"], 1), 0)
    share = 100 * table["total_ns"] / max(int(table["total_ns"].sum()), 1)
    columns = {
        "Device_id": [str(session.meta.device or 0)] * len(table), "OP Type": texts(session, table, "op_type"),
        "Core Type": texts(session, table, "core"), "Count": numbers(table, "count"), "Total Time(us)": times(table, "total_ns"),
        "Min Time(us)": times(table, "min_ns"), "Avg Time(us)": [microseconds(value) for value in averages.tolist()],
        "Max Time(us)": times(table, "max_ns"), "Ratio(%)": [f"{value:.3f}" for value in share.tolist()],
    }  # fmt: skip
    return csv_bytes(list(columns), list(columns.values()))


def _allocations(session: Session, table: Table) -> bytes:
    ends = table["end_ns"].tolist() if "end_ns" in table else [-1] * len(table)
    columns = {
        "Name": texts(session, table, "name"), "Size(KB)": [repr(value / _KIBI) for value in table["bytes"].tolist()],
        "Allocation Time(us)": [stamp(max(value, 0)) for value in table["start_ns"].tolist()],
        "Release Time(us)": ["" if value < 0 else stamp(value) for value in ends],
    }  # fmt: skip
    return csv_bytes(list(columns), list(columns.values()))


def _operators(session: Session, table: Table) -> bytes:
    columns: dict[str, Sequence[str]] = {
        "Name": texts(session, table, "name"),
        "Input Shapes": quoted(texts(session, table, "input_shapes")),
    }
    columns["Call Stack"] = texts(session, table, "stack")
    columns |= {header: times(table, column) for header, column in _OPERATOR_TIMES if column in table}
    return csv_bytes(list(columns), list(columns.values()))


_OPERATOR_TIMES: Final = (
    ("Host Self Duration(us)", "host_self_ns"), ("Host Total Duration(us)", "host_total_ns"),
    ("Device Self Duration(us)", "device_self_ns"), ("Device Total Duration(us)", "device_total_ns"),
    ("Device Self Duration With AICore(us)", "device_self_aicore_ns"), ("Device Total Duration With AICore(us)", "device_total_aicore_ns"),
)  # fmt: skip


def _communication(session: Session, table: Table) -> bytes:
    return communication_bytes(session, table)


_FILES: Final[tuple[tuple[str, str, Callable[[Session, Table], bytes]], ...]] = (
    ("kernel_details.csv", "kernels", _kernels),
    ("step_trace_time.csv", "step_trace", _step_trace),
    ("api_statistic.csv", "api_totals", _api_totals),
    ("op_statistic.csv", "op_totals", _op_totals),
    ("operator_details.csv", "operators", _operators),
    ("operator_memory.csv", "allocations", _allocations),
    ("communication.json", "comm_ops", _communication),
    ("communication_matrix.json", "comm_links", matrix_bytes),
)
