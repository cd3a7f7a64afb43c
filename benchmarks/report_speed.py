"""How long a report takes in a new process, and how large it is.

    python benchmarks/report_speed.py [--seed N] [--repeats N] [--out rows.jsonl] [--million]

Sessions are made up: one step on three streams, operator types and durations drawn from ``--seed``. Each format is written by
``kb report`` as a user calls it, in an emptied workspace without a casebook (``--no-cases``) and, for the small session, with
one. T0 is the wall time of ``python -c "import numpy"`` in the same run. Times are medians over ``--repeats``, s; the last
line is JSON. CPU time stands beside, for machines that do other work at the same time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kb.session import builder
from kb.session.codec import to_bytes
from kb.session.meta import Capture, Model, SessionMeta
from kb.session.session import Session

TYPES = ("MatMulV3", "Add", "SoftmaxV2", "LayerNormV3", "Transpose", "Cast", "Mul", "FlashAttentionScore", "hcom_allReduce_", "Gelu")
CORES = ("AI_CORE", "AI_VECTOR_CORE", "AI_VECTOR_CORE", "AI_VECTOR_CORE", "AI_VECTOR_CORE", "AI_VECTOR_CORE", "AI_VECTOR_CORE", "MIX_AIC",
         "COMMUNICATION", "AI_VECTOR_CORE")  # fmt: skip


def made_up(kernels: int, seed: int) -> Session:
    """A session of one step with ``kernels`` device tasks on three streams, ten shapes a type, gaps between tasks."""
    draw = np.random.default_rng(seed)
    kind = draw.integers(0, len(TYPES), kernels)
    durations = np.maximum(draw.lognormal(9.5, 1.2, kernels).astype(np.int64), 500)
    gaps = draw.integers(0, 4_000, kernels)
    starts = np.cumsum(durations + gaps) - durations
    strings = builder.Strings()
    columns: dict[str, Any] = {
        "start_ns": starts,
        "duration_ns": durations,
        "wait_ns": gaps,
        "name": [f"aclnn{TYPES[place]}_{place}" for place in kind.tolist()],
        "op_type": [TYPES[place] for place in kind.tolist()],
        "core": [CORES[place] for place in kind.tolist()],
        "stream": draw.integers(0, 3, kernels),
        "input_shapes": [f"{1 + size},1024;1024,512" for size in draw.integers(0, 10, kernels).tolist()],
        "output_shapes": [f"{1 + size},512" for size in draw.integers(0, 10, kernels).tolist()],
        "aic_mac_ratio": draw.random(kernels),
        "aiv_vec_ratio": draw.random(kernels),
        "l2_hit_ratio": draw.random(kernels),
    }
    meta = SessionMeta(name="made-up", origin="measured", capture=Capture(format="benchmark"), rank=0, model=Model(name="made-up"))
    return builder.session(meta, [builder.table("kernels", columns, strings)], strings)


def seconds(command: Sequence[str], environment: dict[str, str], repeats: int) -> tuple[float, float]:
    """Medians of wall and of CPU time of ``command``. Raises CalledProcessError when it fails."""
    wall, cpu = [], []
    for _ in range(repeats):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        wall.append(time.perf_counter() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(wall), statistics.median(cpu)


def measured(folder: Path, kernels: int, suffix: str, options: argparse.Namespace, *, cases: bool) -> dict[str, Any]:
    """One row: a session of ``kernels`` written as ``suffix``."""
    profile, target = folder / f"{kernels}.prof", folder / f"{kernels}{suffix}"
    if not profile.exists():
        profile.write_bytes(to_bytes(made_up(kernels, options.seed)))
    environment = {**os.environ, "KB_HOME": str(folder / "home"), "LC_ALL": "C.UTF-8"}
    command = [
        sys.executable,
        "-m",
        "kb_cli",
        "report",
        str(profile),
        "--output",
        str(target),
        "--force",
        *([] if cases else ["--no-cases"]),
    ]
    if cases:
        # The first call brings the casebook up to date; that is no part of a report.
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    t0_wall, t0_cpu = seconds([sys.executable, "-c", "import numpy"], environment, options.repeats)
    wall, cpu = seconds(command, environment, options.repeats)
    return {
        "kernels": kernels,
        "format": suffix.lstrip("."),
        "cases": cases,
        "seconds": round(wall, 3),
        "t0": round(wall / t0_wall, 1),
        "t0_seconds": round(t0_wall, 3),
        "cpu_seconds": round(cpu, 3),
        "cpu_t0": round(cpu / t0_cpu, 1),
        "megabytes": round(target.stat().st_size / 1e6, 2),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--million", action="store_true", help="also a session of 1,000,000 kernels, once")
    options = parser.parse_args()
    plan = [(2_500, ".html", False), (2_500, ".html", True), (2_500, ".pdf", False), (2_500, ".md", False), (100_000, ".html", False),
            (100_000, ".pdf", False)]  # fmt: skip
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for kernels, suffix, cases in [*plan, *([(1_000_000, ".html", False)] if options.million else [])]:
            rows.append(measured(Path(name), kernels, suffix, options, cases=cases))
            print(json.dumps(rows[-1]), file=sys.stderr)
    if options.out is not None:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(json.dumps({"benchmark": "report_speed", "seed": options.seed, "repeats": options.repeats, "rows": rows}))


if __name__ == "__main__":
    main()
