"""How fast and how lean profiles are read: one JSON line a path, and one for a generated kernel table.

    python benchmarks/import_speed.py PATH.. [--kernels ROWS] [--traces MB] [--repeat N] [--tools PYTHON] [--out rows.jsonl]

``mb`` is the size of the decompressed input in 10^6 bytes, ``cpu_s`` the CPU seconds of ``load()`` (median of N, user and
system, imports excluded), ``rss_over_size`` the peak memory above that of the imports over the size. ``--traces`` makes device
timelines of so many MB (GPU and Ascend), ``--kernels`` kernel tables. ``msprof_analyze_s`` (advisor, all checks) and ``hta_s``
(the trace read into HTA's data frame) are the wall seconds of those tools in a process of their own on the same path, where the
interpreter ``--tools`` (default: this one, or KB_BENCH_TOOLS) has them, else null; ``.._cpu_s`` are their CPU seconds.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_HEADER = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num,"
    "Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,Context ID,"
    "aicore_time(us),aic_total_cycles,aic_mac_time(us),aic_mac_ratio,aic_scalar_time(us),aic_scalar_ratio,aic_mte1_time(us),aic_mte1_ratio,"
    "aic_mte2_time(us),aic_mte2_ratio,aic_fixpipe_time(us),aic_fixpipe_ratio,aic_icache_miss_rate,aiv_time(us),aiv_total_cycles,"
    "aiv_vec_time(us),aiv_vec_ratio,aiv_scalar_time(us),aiv_scalar_ratio,aiv_mte2_time(us),aiv_mte2_ratio,aiv_mte3_time(us),aiv_mte3_ratio,"
    "aiv_icache_miss_rate,cube_utilization(%)"
)
_CHILD = """
import json, resource, sys, time
from pathlib import Path
from kb.profile.sources import load
import kb.profile.ascend.rank, kb.profile.chrome.kineto
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = time.process_time()
sessions = load(Path(sys.argv[1]))
cpu = time.process_time() - begin
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([cpu, (peak - base) * 1024, sum(len(table) for session in sessions for table in session.tables.values())]))
"""
_HTA = (
    "import sys; from pathlib import Path; from hta.common.trace import Trace; path = Path(sys.argv[1]); "
    "Trace({0: path.name}, str(path.parent)).parse_traces(use_multiprocessing=False)"
)
_ADVISOR = "import sys; from msprof_analyze.cli.entrance import msprof_analyze_cli as main; sys.argv[0] = 'msprof-analyze'; main()"


def size_of(path: Path) -> int:
    """Bytes of everything at ``path``, gzip files by their content."""
    if path.is_dir():
        return sum(size_of(child) for child in path.rglob("*") if child.is_file())
    if path.suffix != ".gz":
        return path.stat().st_size
    with gzip.open(path) as handle:
        return sum(len(piece) for piece in iter(lambda: handle.read(1 << 20), b""))


def measured(path: Path, repeat: int, tools: str) -> dict[str, object]:
    """The figures of one path."""
    runs = []
    for _ in range(repeat):
        done = subprocess.run([sys.executable, "-c", _CHILD, str(path)], check=True, capture_output=True, text=True)
        runs.append(json.loads(done.stdout))
        print(f"{path.name}: {runs[-1][0]:.3f} s", file=sys.stderr)
    size, cpu = size_of(path), statistics.median(run[0] for run in runs)
    return {
        "path": path.name,
        "mb": round(size / 1e6, 3),
        "rows": runs[0][2],
        "cpu_s": round(cpu, 4),
        "mb_per_cpu_s": round(size / 1e6 / cpu, 1),
        "rss_over_size": round(statistics.median(run[1] for run in runs) / size, 2),
        "n": repeat,
        **_beside(path, tools),
    }


def _beside(path: Path, tools: str) -> dict[str, float | None]:
    """What the other tools take for the same path; None where they are not installed, do not read it or fail."""
    found: dict[str, float | None] = {}
    advisor = ["-c", _ADVISOR, "advisor", "all", "-d", str(path.resolve())] if path.is_dir() and _has(tools, "msprof_analyze") else None
    trace = ["-c", _HTA, str(path.resolve())] if path.is_file() and _has(tools, "hta") else None
    for name, arguments in (("msprof_analyze", advisor), ("hta", trace)):
        wall, cpu = _timed([tools, *arguments]) if arguments else (None, None)
        found |= {f"{name}_s": wall, f"{name}_cpu_s": cpu}
    return found


def _has(tools: str, module: str) -> bool:
    code = f"import sys, importlib.util; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([tools, "-c", code], check=False, capture_output=True).returncode == 0


def _timed(command: list[str]) -> tuple[float | None, float | None]:
    """Wall and CPU seconds of a process; None where it failed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, check=False, capture_output=True, cwd=folder, text=True)
    wall = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        print(f"{' '.join(command[:2])}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None, None
    return round(wall, 3), round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 3)


def kernel_table(folder: Path, rows: int) -> Path:
    """A rank folder with ``rows`` kernels of names that never repeat, in the newest column set."""
    output = folder / "rank_0_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    with (output / "kernel_details.csv").open("w") as file:
        file.write(_HEADER + "\n")
        for row in range(rows):
            start = 1_764_246_877_000_000_000 + row * 11_300
            share = (row * 7919 % 1000) / 1000
            file.write(
                f"13,0,4294967295,{row % 65536},{row % 7},aclnnMatmul_{row}_MatMulV3,"
                f"MatMulV3,dynamic,AI_CORE,{start // 1000}.{start % 1000:03d}\t,"
                f'{9 + share:.3f},{share:.3f},{20 + row % 5},0,NO,"""4096,{1024 + row % 512};1024,{1024 + row % 97}""",'
                "DT_BF16;DT_BF16,FORMAT_ND;FORMAT_ND,"
                f'"""4096,{1024 + row % 97}""",DT_BF16,FORMAT_ND,N/A,{8 + share:.3f},{271059 + row % 9999},{share * 5:.3f},'
                f"{share:.3f},0.41,0.05,1.213,0.14,"
                f"2.951,{1 - share:.3f},0.9,0.11,0.002,0,0,0,0,0,0,0,0,0,0,0,{90 + share * 9:.3f}\n"
            )
    return output.parent


def gpu_trace(path: Path, megabytes: int) -> Path:
    """A Kineto trace of about that size: operators, launches, kernels and arrows, one event after the other."""
    event = (
        '{{"ph": "X", "cat": "cpu_op", "name": "aten::op{0}", "pid": 7, "tid": 7, "ts": {1}.123, "dur": {2}.456, "args": '
        '{{"External id": {3}, "Input Dims": [[{4}, 1024], []], "Input type": ["float", "Scalar"], "Sequence number": {3}}}}},\n'
        '{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": {1}.789, "dur": 3.25, "args": '
        '{{"cbid": 211, "correlation": {3}, "External id": {3}}}}},\n'
        '{{"ph": "s", "id": {3}, "pid": 7, "tid": 7, "ts": {1}.789, "cat": "ac2g", "name": "ac2g"}},\n'
        '{{"ph": "X", "cat": "kernel", "name": "void gemm_{0}<float, {4}>", "pid": 0, "tid": 7, "ts": {5}.001, "dur": {2}.125, "args": '
        '{{"External id": {3}, "device": 0, "context": 1, "stream": 7, "correlation": {3}, "grid": [{4}, 1, 1]}}}},\n'
        '{{"ph": "f", "id": {3}, "pid": 0, "tid": 7, "ts": {5}.001, "cat": "ac2g", "name": "ac2g", "bp": "e"}}'
    )
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100", "numSms": 108}], "traceEvents": [\n')
        number = 0
        while file.tell() < megabytes * 1_000_000:
            at = 1_712_168_511_000_000 + 100 * number
            file.write((",\n" if number else "") + event.format(number % 300, at, 5 + number % 60, number, 8 + number % 97, at + 20))
            number += 1
        file.write("]}\n")
    return path


def ascend_trace(folder: Path, megabytes: int) -> Path:
    """A rank folder whose ``trace_view.json`` has about that size: framework operators, node launches and device tasks."""
    event = (
        '{{"ph": "X", "name": "aten::op{0}", "pid": 9, "tid": 9, "ts": "{1}.120", "dur": {2}.450, "cat": "cpu_op", "args": '
        '{{"Sequence number": {3}, "Fwd thread id": 0, "Input Dims": "{4},1024;\\r\\n1024", "Input type": "float"}}}},\n'
        '{{"ph": "X", "name": "Node@launch", "pid": 10, "tid": 9, "ts": "{1}.800", "dur": 3.220, "args": '
        '{{"Thread Id": 9, "Mode": "launch", "level": "node", "id": "aclnnOp{0}", "item_id": "aclnnOp{0}", "connection_id": {3}}}}},\n'
        '{{"ph": "X", "name": "aclnnOp{0}_MatMulV3", "pid": 11, "tid": 2, "ts": "{5}.001", "dur": {2}.120, "args": '
        '{{"Model Id": 4294967295, "Task Type": "AI_CORE", "Physic Stream Id": 2, "Task Id": {3}, "connection_id": {3}}}}}'
    )
    output = folder / "rank_0_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    with (output / "trace_view.json").open("w") as file:
        file.write("[")
        number = 0
        while file.tell() < megabytes * 1_000_000:
            at = 1_736_408_883_000_000 + 100 * number
            file.write((",\n" if number else "") + event.format(number % 300, at, 5 + number % 60, number, 8 + number % 97, at + 20))
            number += 1
        file.write("]\n")
    return output.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--kernels", type=int, nargs="*", default=[], help="rows of generated kernel tables")
    parser.add_argument("--traces", type=int, nargs="*", default=[], help="MB of generated timelines")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--tools", default=os.environ.get("KB_BENCH_TOOLS", sys.executable), help="an interpreter that has the other tools")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = [measured(path, options.repeat, options.tools) for path in options.paths]
    for rows in options.kernels:
        with tempfile.TemporaryDirectory() as folder:
            lines.append({"kernels": rows, **measured(kernel_table(Path(folder), rows), options.repeat, options.tools)})
    for size in options.traces:
        with tempfile.TemporaryDirectory() as folder:
            made = gpu_trace(Path(folder) / "gpu.pt.trace.json", size), ascend_trace(Path(folder), size)
            lines += [{"trace_mb": size, **measured(path, options.repeat, sys.executable)} for path in made]
    if options.out:
        options.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for line in lines:
        print(json.dumps(line))
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"lines": len(lines), "cpu_s_all": round(children.ru_utime + children.ru_stime, 2)}))


if __name__ == "__main__":
    main()
