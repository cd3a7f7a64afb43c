"""How long the closed loop takes, what it reaches, and that it can be killed.

    python benchmarks/autotune.py [--runs 3] [--seed 1] [--scenarios] [--out rows.jsonl]

Each run is ``kb tune`` in a new process on a synced workspace: BERT-large on a training card (no limits), and on an inference
card under the limits of the tuning article. With ``--scenarios`` every case study as well. With every run one twin is killed
(SIGKILL) in the middle and called again: its result must equal the unbroken one and no finished trial may be lost.

Progress goes to standard error. The last line is JSON; times in s (wall, CPU of the process, and T0 = importing numpy).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CASES: dict[str, tuple[str, ...]] = {
    "bert-large free": ("tune", "bert-large", "--batch", "8"),
    "bert-large article limits": (
        "tune", "bert-large", "--soc", "310p3", "--batch", "16", "--set", "precision=fp32", "--set", "planner=none",
        "--max-latency", "100ms", "--max-memory", "2.5GB", "--min-throughput", "150/s", "--max-precision-loss", "1%",
    ),
}  # fmt: skip
SCENARIOS = ("bert-large", "sd3", "yolov8-310p", "resnet50-8", "llama3-70b")


def kb(words: tuple[str, ...], home: Path) -> tuple[dict[str, Any], float, float, int]:
    """Answer, wall s, CPU s and exit status of one call in a new process."""
    environment = {**os.environ, "KB_HOME": str(home), "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "cli")])}
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "kb_cli", *words, "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 5):
        raise SystemExit(f"{' '.join(words)}: status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout), wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.returncode


def killed(words: tuple[str, ...], home: Path, journal: Path, after: int) -> int:
    """Run, kill once ``after`` trials are written; returns the trials that were finished."""
    environment = {**os.environ, "KB_HOME": str(home), "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "cli")])}
    command = [sys.executable, "-m", "kb_cli", *words, "--journal", str(journal)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        if journal.exists() and journal.read_bytes().count(b"\n") > after:
            process.send_signal(signal.SIGKILL)
            process.wait()
        time.sleep(0.005)
    return journal.read_bytes().count(b"\n") - 1


def t0() -> float:
    """Wall time of a process that imports numpy, the least of three."""
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import numpy"], check=True)
        times.append(time.perf_counter() - begun)
    return min(times)


def one(name: str, words: tuple[str, ...], seed: int, home: Path, folder: Path) -> dict[str, Any]:
    own = (*words, "--seed", str(seed))
    fresh = folder / f"{name.replace(' ', '-')}-{seed}.jsonl"
    answer, wall, cpu, status = kb((*own, "--journal", str(fresh)), home)
    torn = folder / f"{name.replace(' ', '-')}-{seed}-killed.jsonl"
    finished = killed(own, home, torn, max(1, answer["trials"] // 2))
    resumed, _, _, _ = kb((*own, "--journal", str(torn)), home)
    same = {key: resumed[key] == answer[key] for key in ("best", "changed", "kept", "stop")}
    return {
        "case": name, "seed": seed, "wall_s": wall, "cpu_s": cpu, "status": status, "trials": answer["trials"], "stop": answer["stop"],
        "met": answer["met"], "baseline_ns": answer["baseline"]["latency_ns"], "best_ns": answer["best"]["latency_ns"],
        "baseline_memory_b": answer["baseline"]["memory_b"], "best_memory_b": answer["best"]["memory_b"],
        "baseline_per_s": answer["baseline"]["throughput_per_s"], "best_per_s": answer["best"]["throughput_per_s"],
        "killed_after": finished, "replayed": resumed["replayed"], "lost": finished - resumed["replayed"], "same": all(same.values()),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scenarios", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows, scenarios = [], {}
    with tempfile.TemporaryDirectory() as place:
        home, folder = Path(place) / "home", Path(place)
        print("syncing the library", file=sys.stderr)
        kb(("list",), home)
        for number in range(options.runs):
            for name, words in CASES.items():
                row = one(name, words, options.seed + number, home, folder)
                print(f"{name} seed {row['seed']}: {row['wall_s']:.1f} s, {row['trials']} trials, lost {row['lost']}", file=sys.stderr)
                rows.append(row)
        for name in SCENARIOS if options.scenarios else ():
            answer, wall, cpu, status = kb(("simulate", "scenario", name), home)
            scenarios[name] = {
                "wall_s": wall, "cpu_s": cpu, "status": status, "trials": answer["tuning"]["trials"], "met": answer["tuning"]["met"],
                "baseline_ns": answer["tuning"]["baseline"]["latency_ns"], "best_ns": answer["tuning"]["best"]["latency_ns"],
            }  # fmt: skip
            print(f"scenario {name}: {wall:.1f} s", file=sys.stderr)
    if options.out is not None:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    summary = {
        name: {
            "wall_s_max": max(row["wall_s"] for row in rows if row["case"] == name),
            "cpu_s_median": statistics.median(row["cpu_s"] for row in rows if row["case"] == name),
            "gain_median": statistics.median(1 - row["best_ns"] / row["baseline_ns"] for row in rows if row["case"] == name),
            "met": all(row["met"] for row in rows if row["case"] == name),
        }
        for name in CASES
    }
    lost, same = sum(row["lost"] for row in rows), all(row["same"] for row in rows)
    print(json.dumps({"t0_s": t0(), "n": len(rows), "cases": summary, "scenarios": scenarios, "lost": lost, "resumed_equal": same}))


if __name__ == "__main__":
    main()
