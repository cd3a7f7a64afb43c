"""How fast and how lean profiles are read: one JSON line a path, and one for a generated kernel table.

    python benchmarks/import_speed.py PATH.. [--kernels ROWS] [--repeat N] [--out rows.jsonl]

``mb`` is the size of the decompressed input in 10^6 bytes, ``cpu_s`` the CPU seconds of ``load()`` (median of N, user and
system, imports excluded), ``rss_over_size`` the peak memory above that of the imports over the size. ``msprof_analyze_s`` and
``hta_s`` are the wall seconds of those tools on the same path where they are installed, else null.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
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
_HTA = "import sys\nfrom hta.trace_analysis import TraceAnalysis\nTraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir='')\n"


def size_of(path: Path) -> int:
    """Bytes of everything at ``path``, gzip files by their content."""
    if path.is_dir():
        return sum(size_of(child) for child in path.rglob("*") if child.is_file())
    if path.suffix != ".gz":
        return path.stat().st_size
    with gzip.open(path) as handle:
        return sum(len(piece) for piece in iter(lambda: handle.read(1 << 20), b""))


def measured(path: Path, repeat: int) -> dict[str, object]:
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
        "msprof_analyze_s": _timed(["msprof-analyze", "advisor", "all", "-d", str(path)])
        if path.is_dir() and shutil.which("msprof-analyze")
        else None,
        "hta_s": _timed([sys.executable, "-c", _HTA, str(path)]) if path.is_file() and find_spec("hta") else None,
    }


def _timed(command: list[str]) -> float | None:
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, check=False, capture_output=True, cwd=folder)
    return round(time.monotonic() - begin, 3) if done.returncode == 0 else None


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--kernels", type=int, nargs="*", default=[], help="rows of generated kernel tables")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = [measured(path, options.repeat) for path in options.paths]
    for rows in options.kernels:
        with tempfile.TemporaryDirectory() as folder:
            lines.append({"kernels": rows, **measured(kernel_table(Path(folder), rows), options.repeat)})
    if options.out:
        options.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for line in lines:
        print(json.dumps(line))
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"lines": len(lines), "cpu_s_all": round(children.ru_utime + children.ru_stime, 2)}))


if __name__ == "__main__":
    main()
