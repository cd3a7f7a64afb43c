"""Writes rank folders in the layouts and column sets of the real exporters, from values the tests know."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

COLUMN_SETS: Mapping[str, list[str]] = json.loads(Path(__file__).with_name("column_sets.json").read_text())
OUTPUT = "ASCEND_PROFILER_OUTPUT"
BASE_NS = 1_764_246_877_000_000_000
_OLD_NAMES = {
    "Op Name": "Name", "OP Type": "Type", "Task Type": "Accelerator Core", "Block Num": "Block Dim", "Mix Block Num": "Mix Block Dim",
    "Task Start Time(us)": "Start Time(us)", "Task Duration(us)": "Duration(us)", "Task Wait Time(us)": "Wait Time(us)",
}  # fmt: skip


@dataclass(frozen=True)
class Kernel:
    """One device task; ``metrics`` by header name, missing ones are written as N/A."""

    name: str
    start_ns: int
    duration_ns: int
    op_type: str = "MatMulV3"
    core: str = "AI_CORE"
    wait_ns: int = 0
    step: str = "13"
    stream: int = 2
    task_id: int = 7
    block: int = 20
    shapes: str = "4096,1024;1024,1024"
    metrics: Mapping[str, float] | None = None


def microseconds(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def cell(kernel: Kernel, column: str) -> str:
    """What the exporter writes for ``kernel`` under the header ``column``."""
    communicating = kernel.core == "COMMUNICATION"
    plain: Mapping[str, Callable[[], str]] = {
        "Step Id": lambda: kernel.step,
        "Device_id": lambda: "4",
        "Model ID": lambda: "4294967295",
        "Task ID": lambda: "N/A" if communicating else str(kernel.task_id),
        "Stream ID": lambda: "N/A" if communicating else str(kernel.stream),
        "OP State": lambda: "N/A" if communicating else "dynamic",
        "Block Dim": lambda: str(kernel.block),
        "Mix Block Dim": lambda: "0",
        "HF32 Eligible": lambda: "NO",
        "Context ID": lambda: "N/A",
        "Name": lambda: kernel.name,
        "Type": lambda: kernel.op_type,
        "Accelerator Core": lambda: kernel.core,
        "Start Time(us)": lambda: microseconds(kernel.start_ns) + "\t",
        "Duration(us)": lambda: microseconds(kernel.duration_ns),
        "Wait Time(us)": lambda: microseconds(kernel.wait_ns),
        "Input Shapes": lambda: "N/A" if communicating else f'"{kernel.shapes}"',
        "Output Shapes": lambda: "N/A" if communicating else f'"{kernel.shapes}"',
        "Input Formats": lambda: "FORMAT_ND;NCHW",
    }
    name = _OLD_NAMES.get(column, column)
    if name in plain:
        return plain[name]()
    value = (kernel.metrics or {}).get(column)
    return "N/A" if value is None or communicating else repr(value)


def csv_text(header: Sequence[str], rows: Sequence[Sequence[str]], *, newline: str = "\n") -> str:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator=newline)
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()


def kernel_csv(kernels: Sequence[Kernel], column_set: str, *, newline: str = "\n") -> str:
    header = COLUMN_SETS[column_set]
    return csv_text(header, [[cell(kernel, column) for column in header] for kernel in kernels], newline=newline)


def step_csv(kernels: Sequence[Kernel], free_ns: int = 250_000, device: int = 4) -> str:
    """Totals that agree with ``kernels``: nothing overlaps and there is no bubble."""
    steps = dict.fromkeys(kernel.step for kernel in kernels)
    header = ["Device_id", "Step", "Computing", "Communication(Not Overlapped)", "Overlapped", "Communication", "Free", "Stage", "Bubble",
              "Communication(Not Overlapped and Exclude Receive)", "Preparing"]  # fmt: skip
    rows = []
    for step in steps:
        mine = [kernel for kernel in kernels if kernel.step == step]
        communication = sum(kernel.duration_ns for kernel in mine if kernel.core == "COMMUNICATION")
        computing = sum(kernel.duration_ns for kernel in mine) - communication
        spans = (computing, communication, 0, communication, free_ns, computing + communication + free_ns, 0, communication, 206_250)
        rows.append([str(device), step, *map(microseconds, spans)])
    return csv_text(header, rows)


def communication_json(kernels: Sequence[Kernel]) -> str:
    transports = {"HCCS": {"Transit Size(MB)": 2.5}, "SDMA": {"Transit Size(MB)": 2.5}, "RDMA": {"Transit Size(MB)": 1.0}}
    operators = {
        f"{kernel.name}@398531": {
            "Communication Time Info": {
                "Start Timestamp(us)": kernel.start_ns / 1000, "Elapse Time(ms)": kernel.duration_ns / 1e6, "Transit Time(ms)": 0,
                "Wait Time(ms)": 2e-05, "Synchronization Time(ms)": 0.0, "Idle Time(ms)": 0.5, "Wait Time Ratio": 1.0,
            },
            "Communication Bandwidth Info": transports,
        }
        for kernel in kernels
        if kernel.core == "COMMUNICATION"
    }  # fmt: skip
    total = {"Total Op Info": {"Communication Time Info": {"Elapse Time(ms)": 1.0}, "Communication Bandwidth Info": {}}}
    return json.dumps({"step13": {"p2p": [], "collective": {**operators, **total}}})


def info_json(rank: int) -> str:
    experimental = {"_profiler_level": "Level1", "_aic_metrics": "ACL_AICORE_PIPE_UTILIZATION", "_export_type": ["text"]}
    config = {"common_config": {"schedule": {"wait": 0}}, "experimental_config": experimental}
    return json.dumps({"config": config, "torch_npu_version": "2.7.1", "cann_version": "8.3.RC1", "rank_id": str(rank)}, indent=1)


def metadata_json(rank: int, world_size: int) -> str:
    sizes = {"tensor_model_parallel_size": 1, "pipeline_model_parallel_size": world_size, "rank": rank, "world_size": world_size}
    group = {"group_name": "pp", "group_rank": rank, "global_ranks": list(range(world_size))}
    return json.dumps({"distributed_args": sizes, "ENV_VARIABLES": {"HCCL_ALGO": ""}, "parallel_group_info": {"group_name_19": group}})


def small_kernels(rank: int = 0) -> list[Kernel]:
    """Five tasks of one step, one of them communication."""
    start = BASE_NS + rank * 1_000
    pipe = {"aic_mac_ratio": 0.61, "aicore_time(us)": 99.123, "aic_total_cycles": 3_271_059.0, "cube_utilization(%)": 98.2}
    return [
        Kernel("aclnnMatmul_1", start, 100_250, metrics=pipe),
        Kernel("aclnnCast_2", start + 110_000, 20_125, "Cast", "AI_VECTOR_CORE", 9_750, metrics={"aiv_vec_ratio": 0.4}),
        Kernel("hcom_allReduce__586_0_1", start + 140_000, 500_000, "hcom_allReduce_", "COMMUNICATION", 9_875, block=0),
        Kernel("trans_TransData_4", start + 650_000, 53_741, "TransData", "AI_VECTOR_CORE", shapes=";;"),
        Kernel("aclnnAdd_5", start + 710_000, 10_001, "Add", "AI_VECTOR_CORE"),
    ]


def write_rank(folder: Path, rank: int, *, world_size: int = 2, column_set: str = "cann_8_3") -> Path:
    """A complete small rank folder that obeys every oracle."""
    output = folder / OUTPUT
    output.mkdir(parents=True)
    kernels = small_kernels(rank)
    memory = [["PTA", microseconds(BASE_NS + 10 * index) + "\t", "954.37", "1452.0", "", "897357296", "NPU:0"] for index in range(4)]
    blocks = [["aten::empty", "0.5", microseconds(BASE_NS) + "\t", "", "897357296"],
              ["aten::add", "32.5", microseconds(BASE_NS + 5) + "\t", microseconds(BASE_NS + 9) + "\t", "2"]]  # fmt: skip
    files = {
        f"{OUTPUT}/kernel_details.csv": kernel_csv(kernels, column_set),
        f"{OUTPUT}/step_trace_time.csv": step_csv(kernels, device=rank),
        f"{OUTPUT}/communication.json": communication_json(kernels),
        f"{OUTPUT}/api_statistic.csv": csv_text(
            ["Device_id", "Level", "API Name", "Time(us)", "Count", "Avg(us)", "Min(us)", "Max(us)", "Variance"],
            [["host", "hccl", "Launch_Ffts", "474.41", "4", "118.603", "89.18", "138.75", "389.155"]],
        ),
        f"{OUTPUT}/memory_record.csv": csv_text(
            ["Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Total Active(MB)", "Stream Ptr", "Device Type"],
            memory,
        ),
        f"{OUTPUT}/operator_memory.csv": csv_text(["Name", "Size(KB)", "Allocation Time(us)", "Release Time(us)", "Stream Ptr"], blocks),
        f"profiler_info_{rank}.json": info_json(rank),
        "profiler_metadata.json": metadata_json(rank, world_size),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    return folder


def write_cluster(folder: Path, ranks: int = 2) -> Path:
    """A folder of rank folders."""
    for rank in range(ranks):
        write_rank(folder / f"rank_{rank}_ascend_pt", rank, world_size=ranks)
    return folder
