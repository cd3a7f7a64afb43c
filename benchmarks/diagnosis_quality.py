"""Planted truth: random models, chips and settings with one to three causes, and clean controls; are the causes found?

    python benchmarks/diagnosis_quality.py --planted 300 --seed 7 --out rows.jsonl

A planted cause counts as true only where it costs time: the run is simulated again without it, and the step must be at
least 2 % shorter (below 0.5 % it counts as absent, between the two it is left out). Findings that the same layout shows
without any planted cause are the model's own and are neither right nor wrong. A cause that the diagnosis declines to judge
because the capture was degraded is counted as abstained, not as missed. Progress on stderr, one JSON line last on stdout.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import numpy as np

from kb.diagnose.diagnosis import diagnose
from kb.diagnose.ruleset import RULES
from kb.domain.catalogue import Catalogue
from kb.domain.diagnosis import Diagnosis
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.profile.ascend.writing import write_rank
from kb.profile.simulated.memory import OutOfDeviceMemoryError
from kb.profile.simulated.options import Options
from kb.profile.simulated.planting import HEALTHY, cost_ns, plant, plantable
from kb.profile.simulated.run import Setup, simulate_ranks
from kb.profile.sources import load
from kb.session.session import Session, Table

JUDGED: Final = frozenset(cause for entry in RULES for cause in entry.causes)
MODELS: Final = (
    "bert-base", "bert-large", "resnet50", "resnet50-train", "yolov8s", "sd3", "sdxl-unet", "qwen3-0.6b-prefill", "qwen3-0.6b-decode",
    "qwen3-0.6b-train", "qwen2.5-7b-prefill", "qwen2.5-7b-decode", "llama3-8b-decode", "qwen3-30b-a3b-decode",
)  # fmt: skip
CHIPS: Final = ("910b1", "910b2", "910b3", "910b4", "910c-die")
LAYOUT: Final = ("data_parallel", "pipeline_parallel", "tensor_parallel", "expert_parallel", "microbatches", "batch", "context")
REAL, FAINT = 0.02, 0.005
CLEAN: Final = 0.15
DECODE_BATCH: Final = 128
LOSSES: Final[Mapping[str, tuple[str, ...]]] = {
    "whole": (),
    "no_host": ("host_ops", "copies"),
    "no_planes": ("comm_tasks",),
    "no_pipes": ("kernels.aic_", "kernels.aiv_", "kernels.cube_"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One case: what was planted with its effect, what was found with its confidence, what was declined."""

    number: int
    model: str
    soc: str
    loss: str
    effects: Mapping[str, float]
    found: Mapping[str, float]
    urgent: tuple[str, ...]
    ambient: tuple[str, ...]
    declined: tuple[str, ...]

    def truth(self, cause: str) -> bool | None:
        """Planted and felt; None where it is left out."""
        effect = self.effects.get(cause)
        if cause in self.declined and cause not in self.found:
            return None
        if effect is None or effect < FAINT:
            return None if effect is None and cause in self.ambient else False
        return True if effect >= REAL else None


def cases(count: int, seed: int, catalogue: Catalogue) -> Iterator[Row]:
    """Every case, each from its own random stream, so that one can be made again alone."""
    for number in range(count):
        yield fitting_case(number, seed, catalogue)
        print(f"\r{number + 1}/{count}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def fitting_case(number: int, seed: int, catalogue: Catalogue) -> Row:
    """The first draw whose workload fits the chip's memory."""
    for attempt in range(50):
        try:
            return case(number, np.random.default_rng([seed, number, attempt]), catalogue)
        except OutOfDeviceMemoryError:
            continue
    raise SystemExit(f"case {number}: no draw fits")


def case(number: int, rng: np.random.Generator, catalogue: Catalogue) -> Row:
    """Plant, write, read, diagnose."""
    name, chip = str(rng.choice(MODELS)), str(rng.choice(CHIPS))
    pool = [cause for cause in plantable(name) if cause in JUDGED]
    wanted = 0 if rng.random() < CLEAN else int(rng.integers(1, 4))
    causes = [str(cause) for cause in rng.choice(pool, size=min(wanted, len(pool)), replace=False)]
    base = replaced(HEALTHY, {"batch": DECODE_BATCH} if name.endswith("decode") else {})
    loss = str(rng.choice(list(LOSSES), p=[0.7, 0.1, 0.1, 0.1])) if causes else "whole"
    planted = plant(name, catalogue.soc(chip), int(rng.integers(1 << 30)), causes, base=base)
    effects = {cause: cost_ns(planted, cause, base=base) / planted.step_ns for cause in causes}
    layout = {option: value for change in planted.changes.values() for option, value in change.items() if option in LAYOUT}
    own: tuple[str, ...] = ()
    if causes:
        bare = simulate_ranks(replace_options(planted.setup, replaced(base, layout)))
        own = tuple(set(findings(diagnosed([session for session, _ in bare], catalogue))) - set(causes))
    judged = diagnosed([degraded(session, LOSSES[loss]) for session in planted.sessions], catalogue)
    return Row(number, name, chip, loss, effects, findings(judged), urgent(judged), own, declined(judged))


def replace_options(setup: Setup, options: Options) -> Setup:
    return msgspec.structs.replace(setup, options=options)


def replaced(options: Options, changes: Mapping[str, Any]) -> Options:
    return msgspec.structs.replace(options, **changes)


def degraded(session: Session, losses: Sequence[str]) -> Session:
    """The session without the named tables and columns."""
    tables = {name: table for name, table in session.tables.items() if name not in losses}
    prefixes = tuple(loss.removeprefix("kernels.") for loss in losses if loss.startswith("kernels."))
    if prefixes and "kernels" in tables:
        kept = {name: values for name, values in tables["kernels"].columns.items() if not name.startswith(prefixes)}
        tables["kernels"] = Table("kernels", kept)
    return replace(session, tables=tables)


def diagnosed(sessions: Sequence[Session], catalogue: Catalogue) -> Diagnosis:
    """Write every rank as an Ascend export, read the folder, diagnose what was read."""
    with TemporaryDirectory() as folder:
        for place, session in enumerate(sessions):
            named = replace(session, meta=msgspec.structs.replace(session.meta, name=f"rank_{place}_ascend_pt"))
            write_rank(named, Path(folder))
        return diagnose(load(Path(folder)), catalogue)


def findings(diagnosis: Diagnosis) -> dict[str, float]:
    """Cause -> highest confidence."""
    found: dict[str, float] = {}
    for finding in diagnosis.all_findings():
        found[finding.cause] = max(found.get(finding.cause, 0.0), finding.confidence)
    return found


def urgent(diagnosis: Diagnosis) -> tuple[str, ...]:
    return tuple(sorted({finding.cause for finding in diagnosis.all_findings() if finding.priority in ("P0", "P1")}))


def declined(diagnosis: Diagnosis) -> tuple[str, ...]:
    parts = (diagnosis.cluster.not_judged, *(session.not_judged for session in diagnosis.sessions))
    return tuple(sorted({note.cause for notes in parts for note in notes}))


def scores(rows: Sequence[Row]) -> dict[str, Any]:
    """The figures over all rows."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        for cause in JUDGED:
            truth = row.truth(cause)
            if truth is not None:
                counts[cause, ("tp" if truth else "fp") if cause in row.found else ("fn" if truth else "tn")] += 1
            elif cause in row.effects and cause in row.declined:
                counts[cause, "abstained"] += 1
    by_cause = {cause: _cause_scores(counts, cause) for cause in sorted(JUDGED)}
    shown = {cause: score for cause, score in by_cause.items() if score["positives"]}
    hits, false, missed = (sum(counts[cause, kind] for cause in JUDGED) for kind in ("tp", "fp", "fn"))
    controls = [row for row in rows if not row.effects]
    return {
        "macro_f1": float(np.mean([score["f1"] for score in shown.values()])) if shown else 0.0,
        "precision": hits / max(1, hits + false),
        "recall": hits / max(1, hits + missed),
        "clean_ok": sum(not row.urgent for row in controls) / max(1, len(controls)),
        "ece": calibration_error(rows),
        "n": len(rows),
        "controls": len(controls),
        "causes": len(shown),
        "causes_with_8": sum(score["positives"] >= 8 for score in shown.values()),
        "by_cause": by_cause,
    }


def _cause_scores(counts: Counter[tuple[str, str]], cause: str) -> dict[str, float]:
    hits, false, missed = (counts[cause, kind] for kind in ("tp", "fp", "fn"))
    f1 = 2 * hits / max(1, 2 * hits + false + missed)
    return {"positives": hits + missed, "tp": hits, "fp": false, "fn": missed, "abstained": counts[cause, "abstained"], "f1": round(f1, 4)}


def answers(rows: Sequence[Row]) -> list[tuple[float, bool, str]]:
    """(confidence, was it right, cause) of every finding that counts."""
    pairs = ((cause, value, row.truth(cause)) for row in rows for cause, value in row.found.items())
    return [(value, truth, cause) for cause, value, truth in pairs if truth is not None]


def calibration_error(rows: Sequence[Row], bins: int = 10) -> float:
    """Expected calibration error over equal bins of confidence."""
    pairs = answers(rows)
    error = 0.0
    for place in range(bins):
        own = [(value, right) for value, right, _ in pairs if min(int(value * bins), bins - 1) == place]
        if own:
            error += abs(float(np.mean([value for value, _ in own])) - float(np.mean([right for _, right in own]))) * len(own) / len(pairs)
    return error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--planted", type=int, default=300)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    with options.out.open("wb") if options.out else nullcontext() as file:
        for row in cases(options.planted, options.seed, load_catalogue(library_root())):
            rows.append(row)
            if file is not None:
                file.write(msgspec.json.encode(row) + b"\n")
                file.flush()
    print(json.dumps({"seed": options.seed, **scores(rows)}))


if __name__ == "__main__":
    main()
