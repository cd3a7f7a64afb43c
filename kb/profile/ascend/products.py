"""The product files of a folder by what they hold: names of every exporter, slices in order, the newest of several exports."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

KERNELS: Final = "kernel_details"
TRACE: Final = "trace_view"
_STEMS: Final[Mapping[str, str]] = {
    "kernel_details": KERNELS, "op_summary": KERNELS, "trace_view": TRACE, "msprof": TRACE, "step_trace_time": "step_trace_time",
    "step_trace": "step_trace", "api_statistic": "api_statistic", "op_statistic": "op_statistic", "memory_record": "memory_record",
    "operator_memory": "operator_memory", "operator_details": "operator_details", "npu_module_mem": "npu_module_mem",
    "static_op_mem": "static_op_mem", "l2_cache": "l2_cache", "communication": "communication",
    "communication_matrix": "communication_matrix", "communication_statistic": "communication_statistic",
    "hccl_statistic": "communication_statistic",
    "task_time": "task_time", "fusion_op": "fusion_op", "aicpu": "aicpu", "data_preprocess": "data_preprocess", "npu_mem": "npu_mem",
}  # fmt: skip
_NAME: Final = re.compile(r"([a-z0-9_]*?[a-z0-9])(?:_slice_(\d{1,6}))?((?:_\d{1,20})*)\.(csv|json)", re.ASCII)
_JSON: Final = frozenset({TRACE, "communication", "communication_matrix"})
_DATABASES: Final = ("ascend_pytorch_profiler*.db", "ascend_mindspore_profiler*.db", "msprof_*.db")


def product(name: str) -> str | None:
    """What a file of this name holds (a key of the alias map, or ``trace_view`` and the communication files), or None."""
    match = _NAME.fullmatch(name)
    kind = _STEMS.get(match[1]) if match else None
    return kind if match and kind and (match[4] == "json") == (kind in _JSON) else None


def products(files: Sequence[Path]) -> Mapping[str, tuple[Path, ...]]:
    """Files by what they hold, slices in index order. Of several exports the newest by the time in the name, else by
    modification time, is taken whole."""
    exports: dict[str, dict[tuple[str, str], list[tuple[int, Path]]]] = defaultdict(lambda: defaultdict(list))
    for path in files:
        match, kind = _NAME.fullmatch(path.name), product(path.name)
        if match and kind:
            exports[kind][match[1], match[3]].append((int(match[2] or 0), path))
    return {kind: tuple(path for _, path in sorted(max(found.items(), key=_age)[1])) for kind, found in exports.items()}


def databases(folder: Path) -> tuple[Path, ...]:
    """Main databases of ``folder``, newest first."""
    found = {path for pattern in _DATABASES for path in folder.glob(pattern) if path.is_file()}
    return tuple(sorted(found, key=lambda path: (-path.stat().st_mtime_ns, path.name)))


def is_database(name: str) -> bool:
    """Whether a file of this name is a main database."""
    return name.endswith(".db") and name.startswith(("ascend_pytorch_profiler", "ascend_mindspore_profiler", "msprof_"))


def _age(export: tuple[tuple[str, str], list[tuple[int, Path]]]) -> tuple[str, int, str]:
    (stem, numbers), files = export
    stamp = numbers.rpartition("_")[2]
    return stamp if len(stamp) == 14 else "", max(path.stat().st_mtime_ns for _, path in files), stem
