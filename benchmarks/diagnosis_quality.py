"""Planted truth: random models, chips and settings with one to three causes, and clean controls; are the causes found?

    python benchmarks/diagnosis_quality.py --planted 300 --seed 7 --out rows.jsonl [--workers 2]
    python benchmarks/diagnosis_quality.py --score rows.jsonl

A planted cause counts as true where it costs time: the run is simulated again without it (both without noise), and the step
must be shorter by at least 2 %, or by the share from which the rule calls the cause a loss, if that is larger
(``kb/diagnose/thresholds.json``, ``<cause>_least_share``). Below 0.5 % it counts as absent, between the two it is left out.
Findings that the same layout shows with nothing planted are the model's own and are neither right nor wrong; so is a planted
cause that would cost time alone but is hidden by another one (a cool chip does not help where the loader is late). A cause
that the diagnosis declines to judge because the capture was degraded is counted as abstained, not as missed. Progress on
stderr, one JSON line last on stdout.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.planted_cases import JUDGED, Row, rows


def scores(made: Sequence[Row]) -> dict[str, Any]:
    """The figures over all rows."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in made:
        for cause in JUDGED:
            truth = row.truth(cause)
            if truth is not None:
                counts[cause, ("tp" if truth else "fp") if cause in row.found else ("fn" if truth else "tn")] += 1
            elif cause in row.effects and cause in row.declined:
                counts[cause, "abstained"] += 1
    by_cause = {cause: _cause_scores(counts, cause) for cause in sorted(JUDGED)}
    shown = {cause: score for cause, score in by_cause.items() if score["positives"]}
    hits, false, missed = (sum(counts[cause, kind] for cause in JUDGED) for kind in ("tp", "fp", "fn"))
    controls = [row for row in made if not row.effects]
    return {
        "macro_f1": float(np.mean([score["f1"] for score in shown.values()])) if shown else 0.0,
        "precision": hits / max(1, hits + false),
        "recall": hits / max(1, hits + missed),
        "clean_ok": sum(not row.urgent for row in controls) / max(1, len(controls)),
        "ece": calibration_error(made),
        "n": len(made),
        "controls": len(controls),
        "causes": len(shown),
        "causes_with_8": sum(score["positives"] >= 8 for score in shown.values()),
        "by_cause": by_cause,
    }


def _cause_scores(counts: Counter[tuple[str, str]], cause: str) -> dict[str, float]:
    hits, false, missed = (counts[cause, kind] for kind in ("tp", "fp", "fn"))
    f1 = 2 * hits / max(1, 2 * hits + false + missed)
    return {"positives": hits + missed, "tp": hits, "fp": false, "fn": missed, "abstained": counts[cause, "abstained"], "f1": round(f1, 4)}


def answers(made: Iterable[Row]) -> list[tuple[float, bool, str]]:
    """(confidence, was it right, cause) of every finding that counts."""
    pairs = ((cause, guess.confidence, row.truth(cause)) for row in made for cause, guess in row.found.items())
    return [(value, truth, cause) for cause, value, truth in pairs if truth is not None]


def calibration_error(made: Sequence[Row], bins: int = 10) -> float:
    """Expected calibration error over equal bins of confidence."""
    pairs = answers(made)
    error = 0.0
    for place in range(bins):
        own = [(value, right) for value, right, _ in pairs if min(int(value * bins), bins - 1) == place]
        if own:
            error += abs(float(np.mean([value for value, _ in own])) - float(np.mean([right for _, right in own]))) * len(own) / len(pairs)
    return error


def read(file: Path) -> list[Row]:
    """Rows written by ``--out``."""
    return [msgspec.json.decode(line, type=Row) for line in file.read_bytes().splitlines()]


def shown(made: Iterator[Row], count: int) -> Iterator[Row]:
    """The rows, with progress on stderr."""
    begin = time.monotonic()
    for number, row in enumerate(made, 1):
        yield row
        print(f"\r{number}/{count} {time.monotonic() - begin:.0f} s", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planted", type=int, default=300)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--score", type=Path, help="score the rows of an earlier run instead of making new ones")
    options = parser.parse_args()
    if options.score:
        print(json.dumps(scores(read(options.score))))
        return
    made = []
    with options.out.open("wb") if options.out else nullcontext() as file:
        for row in shown(rows(options.planted, options.seed, options.workers), options.planted):
            made.append(row)
            if file is not None:
                file.write(msgspec.json.encode(row) + b"\n")
                file.flush()
    print(json.dumps({"seed": options.seed, **scores(made)}))


if __name__ == "__main__":
    main()
