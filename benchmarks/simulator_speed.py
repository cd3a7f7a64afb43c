"""How fast the simulator is.

    python benchmarks/simulator_speed.py [--seed N] [--out rows.jsonl]

Wall times in ms, the best of several calls after one to warm up; progress on standard error. The last line is JSON:
``bert_large_ms`` and ``decoder40_ms`` for one step with full tables, ``sessions_per_s`` over short inferences of many
shapes, ``ns_per_kernel_small`` / ``ns_per_kernel_large`` for 1,000 and 10,000 kernels, and the CPU time of the first two
(what counts on a machine that does other work as well).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import msgspec

from kb.domain.soc import Soc
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import Setup, simulate

SOC_FOLDER = Path(__file__).resolve().parents[1] / "recipes" / "catalogue" / "soc"
REPEATS = 7
FUSED = {"fused_attention": True, "fused_elementwise": True, "steps": 1}


class Timed(msgspec.Struct, frozen=True):
    """One case: the best wall and CPU time, and the kernels of its session."""

    case: str
    ms: float
    cpu_ms: float
    kernels: int


def timed(case: str, setup: Setup) -> Timed:
    """The best of ``REPEATS`` calls."""
    session, _ = simulate(setup)
    walls, processor = zip(*(_once(setup) for _ in range(REPEATS)), strict=True)
    row = Timed(case, min(walls), min(processor), len(session.tables["kernels"]))
    print(f"{case:24} {row.ms:8.1f} ms {row.cpu_ms:8.1f} ms CPU {row.kernels:7} kernels", file=sys.stderr)
    return row


def _once(setup: Setup) -> tuple[float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    simulate(setup)
    return (time.perf_counter() - wall) * 1e3, (time.process_time() - processor) * 1e3


def main() -> None:
    """Time every case, then print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write every case as JSON lines")
    arguments = parser.parse_args()
    soc = msgspec.json.decode((SOC_FOLDER / "910b2.json").read_bytes(), type=Soc)

    def setup(model: str, **settings: object) -> Setup:
        return Setup(model=model, soc=soc, seed=arguments.seed, options=msgspec.convert(settings, Options))

    bert = timed("bert-large", setup("bert-large", steps=1))
    decoder = timed("llama2-13b-prefill", setup("llama2-13b-prefill", **FUSED))
    small = timed("bert-large, 2 steps", setup("bert-large", steps=2))
    large = timed("bert-large, 17 steps", setup("bert-large", steps=17))
    shapes = [timed(f"bert-base, {tokens} tokens", setup("bert-base", sequence=tokens, **FUSED)) for tokens in (32, 64, 128, 256, 512)]
    rows = [bert, decoder, small, large, *shapes]
    if arguments.out:
        arguments.out.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    figures = {
        "bert_large_ms": round(bert.ms, 2),
        "decoder40_ms": round(decoder.ms, 2),
        "sessions_per_s": round(1e3 * len(shapes) / sum(row.ms for row in shapes), 1),
        "ns_per_kernel_small": round(small.cpu_ms * 1e6 / small.kernels),
        "ns_per_kernel_large": round(large.cpu_ms * 1e6 / large.kernels),
        "bert_large_cpu_ms": round(bert.cpu_ms, 2),
        "decoder40_cpu_ms": round(decoder.cpu_ms, 2),
        "sessions_per_cpu_s": round(1e3 * len(shapes) / sum(row.cpu_ms for row in shapes), 1),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
