"""How long a diagnosis takes: real profiles in a new process, beside the incumbent where it is installed, and a million kernels.

    python benchmarks/diagnose_speed.py PATH... [--kernels 1000000] [--interpreter venv/bin/python] [--repeat 3]

Every time is the middle of ``--repeat`` runs of a new process; CPU is user and system time. T0 is the time of
``python -c "import numpy"`` in the same run.
One JSON line last: cold_s, t0_s, msprof_analyze_s, peak_rss_mb, kernels, and the same for each path.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np

from kb.diagnose.diagnosis import diagnose
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.profile.sources import load
from kb.session.builder import Strings, session, table
from kb.session.meta import Capture, SessionMeta
from kb.session.session import Session

_NUMPY: Final = [sys.executable, "-c", "import numpy"]
_DIAGNOSE: Final = [sys.executable, "-m", "kb_cli", "diagnose"]
_TYPES: Final = ("MatMulV3", "Add", "Mul", "SoftmaxV2", "Cast", "TransData", "LayerNormV3", "FlashAttentionScore")


class Timed(NamedTuple):
    """Middle wall and CPU (user + system) seconds of new processes, and the highest resident memory in MB."""

    wall: float
    cpu: float
    peak_mb: float


def timed(command: list[str], repeat: int) -> Timed:
    """Run ``command`` ``repeat`` times; exits when one fails."""
    walls, cpus, peak = [], [], 0.0
    for _ in range(repeat):
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        walls.append(time.perf_counter() - begin)
        cpus.append(usage.ru_utime + usage.ru_stime)
        process.returncode = os.waitstatus_to_exitcode(status)
        peak = max(peak, usage.ru_maxrss / 1024)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} exited with {process.returncode}")
    return Timed(median(walls), median(cpus), peak)


def incumbent(program: str | None, path: Path, repeat: int) -> Timed | None:
    """The incumbent's advisor on the same path; None where it is not installed."""
    if program is None:
        return None
    with TemporaryDirectory() as folder:
        return timed([program, "advisor", "all", "-d", str(path), "-o", folder], repeat)


def of_path(path: Path, program: str | None, repeat: int) -> dict[str, Any]:
    cold = timed([*_DIAGNOSE, str(path), "--json"], repeat)
    t0 = timed(_NUMPY, repeat)
    kernels = sum(len(found["kernels"]) for found in (one.tables for one in load(path)) if "kernels" in found)
    theirs = incumbent(program, path, repeat)
    return {
        "path": path.name,
        "cold_s": round(cold.wall, 3),
        "cold_cpu_s": round(cold.cpu, 3),
        "t0_s": round(t0.wall, 3),
        "cold_t0": round(cold.wall / t0.wall, 2),
        "cold_cpu_t0": round(cold.cpu / t0.cpu, 2),
        "peak_rss_mb": round(cold.peak_mb, 1),
        "kernels": kernels,
        "msprof_analyze_s": theirs and round(theirs.wall, 2),
        "msprof_analyze_cpu_s": theirs and round(theirs.cpu, 2),
        "times_faster": theirs and round(theirs.wall / cold.wall, 1),
        "times_less_cpu": theirs and round(theirs.cpu / cold.cpu, 1),
    }


def synthetic(kernels: int) -> Session:
    """Kernels of eight types and many shapes with pipe counters, back to back with launch gaps, on two streams."""
    random = np.random.default_rng(1)
    strings = Strings()
    durations = random.integers(2_000, 80_000, kernels)
    starts = np.cumsum(durations + random.integers(500, 20_000, kernels)) - durations
    shapes = [f"{8 * (place % 97 + 1)},1024;1024,{16 * (place % 61 + 1)}" for place in range(kernels)]
    outputs = [f"{8 * (place % 97 + 1)},{16 * (place % 61 + 1)}" for place in range(kernels)]
    columns: dict[str, Any] = {
        "start_ns": starts, "duration_ns": durations, "name": [f"kernel_{place}" for place in range(kernels)],
        "op_type": [_TYPES[place] for place in random.integers(0, len(_TYPES), kernels).tolist()],
        "core": ["AI_CORE"] * kernels,
        "stream": random.integers(1, 3, kernels), "block": random.integers(1, 49, kernels), "input_shapes": shapes,
        "output_shapes": outputs,
        "aic_mac_ratio": random.random(kernels), "aic_mte2_ratio": random.random(kernels),
    }  # fmt: skip
    meta = SessionMeta(name="million", origin="simulated", capture=Capture(format="simulated"))
    return session(meta, [table("kernels", columns, strings)], strings)


def scaled(kernels: int) -> tuple[float, float]:
    """Wall and CPU seconds to diagnose a synthetic session already in memory."""
    made, catalogue = synthetic(kernels), load_catalogue(library_root())
    begin, worked = time.perf_counter(), time.process_time()
    diagnosis = diagnose([made], catalogue)
    spent = round(time.perf_counter() - begin, 2), round(time.process_time() - worked, 2)
    if diagnosis.has_fault():
        raise SystemExit("a rule raised")
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--kernels", type=int, default=1_000_000)
    parser.add_argument("--incumbent", default=shutil.which("msprof-analyze"), help="msprof-analyze itself")
    parser.add_argument("--interpreter", type=Path, help="Python of an environment that holds msprof-analyze, instead")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    beside = options.interpreter and options.interpreter.with_name("msprof-analyze")
    program = str(beside) if beside else options.incumbent
    rows = []
    for path in options.paths:
        rows.append(of_path(path, program, options.repeat))
        print(rows[-1], file=sys.stderr)
    sizes = (options.kernels // 10, options.kernels)
    seconds = [scaled(size) for size in sizes]
    first = rows[0]
    summary = {name: first[name] for name in ("cold_s", "t0_s", "msprof_analyze_s", "peak_rss_mb", "kernels")}
    print(json.dumps({**summary, "paths": rows, "synthetic_kernels": sizes, "synthetic_wall_cpu_s": seconds, "repeat": options.repeat}))


if __name__ == "__main__":
    main()
