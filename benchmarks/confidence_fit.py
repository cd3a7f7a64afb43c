"""Fit the confidence of findings on planted truth of development seeds, and write ``kb/diagnose/confidence.json``.

    python benchmarks/diagnosis_quality.py --planted 300 --seed 1002 --out rows.jsonl
    python benchmarks/confidence_fit.py rows.jsonl [--write]

A finding is right with log-odds that depend on how far its share is above the rule's least share (four steps) and on its
cause; both are pulled towards the mean, so that few findings move little. Never give it a seed that is to be reported.
One JSON line last: findings, right ones, and the calibration error on the same rows and with each tenth left out.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.diagnosis_quality import read
from benchmarks.planted_cases import Row
from kb.diagnose.confidence import FILE, Calibration, Step

Floats = npt.NDArray[np.float64]
MARGINS: Final = (0.0, 1.5, 3.0, 6.0)
MARGIN_PULL, CAUSE_PULL = 0.5, 2.0
"""Precision of the Gaussian priors around the mean log-odds."""
FOLDS: Final = 10


class Sample:
    """Findings that count: cause, margin (NaN = none), right or wrong."""

    def __init__(self, rows: list[Row]) -> None:
        found = [(cause, guess, row.truth(cause)) for row in rows for cause, guess in sorted(row.found.items())]
        found = [one for one in found if one[2] is not None]
        self.rows = len(rows)
        self.causes = [cause for cause, _, _ in found]
        self.margins = np.array([guess.share / guess.least if guess.least else np.inf for _, guess, _ in found])
        self.right = np.array([bool(truth) for _, _, truth in found], np.float64)


def fitted(sample: Sample, chosen: npt.NDArray[np.bool_]) -> tuple[Floats, dict[str, float]]:
    """Log-odds of the steps and of the causes, by Newton's method on the penalised likelihood."""
    names = sorted(set(sample.causes))
    step = np.searchsorted(MARGINS, sample.margins, side="right") - 1
    cause = np.array([names.index(one) for one in sample.causes])
    design = np.zeros((len(step), len(MARGINS) + len(names)))
    design[np.arange(len(step)), step] = 1.0
    design[np.arange(len(step)), len(MARGINS) + cause] = 1.0
    design, right = design[chosen], sample.right[chosen]
    rate = min(0.98, (right.sum() + 1.0) / (len(right) + 2.0))
    middle = math.log(rate / (1.0 - rate))
    centre = np.concatenate((np.full(len(MARGINS), middle), np.zeros(len(names))))
    pull = np.concatenate((np.full(len(MARGINS), MARGIN_PULL), np.full(len(names), CAUSE_PULL)))
    weights = centre.copy()
    for _ in range(50):
        chance = 1.0 / (1.0 + np.exp(-design @ weights))
        gradient = design.T @ (right - chance) - pull * (weights - centre)
        curvature = (design * (chance * (1.0 - chance))[:, None]).T @ design + np.diag(pull)
        weights = weights + np.linalg.solve(curvature, gradient)
    return weights[: len(MARGINS)], dict(zip(names, weights[len(MARGINS) :].tolist(), strict=True))


def calibration(sample: Sample, chosen: npt.NDArray[np.bool_]) -> Calibration:
    steps, causes = fitted(sample, chosen)
    count = int(chosen.sum())
    return Calibration(
        about="Log-odds that a finding is right, on planted truth of development seeds; made by benchmarks/confidence_fit.py --write.",
        rows=sample.rows,
        findings=count,
        steps=tuple(Step(least=least, log_odds=round(odds, 3)) for least, odds in zip(MARGINS, steps.tolist(), strict=True)),
        causes={cause: round(odds, 3) for cause, odds in causes.items()},
        highest=0.99,
    )


def error(sample: Sample, made: Calibration, chosen: npt.NDArray[np.bool_], bins: int = 10) -> float:
    """Expected calibration error of the fit on the chosen findings."""
    values = np.array([made.probability(cause, margin) for cause, margin in zip(sample.causes, sample.margins.tolist(), strict=True)])
    place = np.minimum((values * bins).astype(int), bins - 1)
    total = 0.0
    for each in range(bins):
        own = chosen & (place == each)
        if own.any():
            total += abs(float(values[own].mean() - sample.right[own].mean())) * int(own.sum())
    return total / max(1, int(chosen.sum()))


def left_out(sample: Sample) -> float:
    """Mean calibration error on tenths that the fit did not see; a tenth is small, so this is pessimistic."""
    fold = np.random.default_rng(0).permutation(len(sample.right)) % FOLDS
    errors = [error(sample, calibration(sample, fold != each), fold == each) for each in range(FOLDS)]
    return float(np.mean(errors))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, nargs="+", help="files written by diagnosis_quality.py --out")
    parser.add_argument("--write", action="store_true", help="write kb/diagnose/confidence.json")
    options = parser.parse_args()
    sample = Sample([row for file in options.rows for row in read(file)])
    every = np.ones(len(sample.right), np.bool_)
    made = calibration(sample, every)
    if options.write:
        FILE.write_text(json.dumps(_plain(made), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    figures = {
        "findings": len(every),
        "right": int(sample.right.sum()),
        "ece": error(sample, made, every),
        "ece_left_out": left_out(sample),
    }
    print(json.dumps(figures))


def _plain(made: Calibration) -> dict[str, Any]:
    return {
        "about": made.about,
        "rows": made.rows,
        "findings": made.findings,
        "steps": [{"least": step.least, "log_odds": step.log_odds} for step in made.steps],
        "causes": dict(made.causes),
        "highest": made.highest,
    }


if __name__ == "__main__":
    main()
