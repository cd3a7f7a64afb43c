"""The oracle: is the ranking right, when every strategy is then really tried?

    python benchmarks/oracle.py --sessions 200 --seed 11 --holdout model-family --out rows.jsonl

A session is a random run on the simulated backend (``kb.tune.growth``, from a stream of its own: no run of a casebook is
judged) with random constraints. Its ranking is fixed from the emitted profile, its diagnosis and the casebook; only then is every
strategy with a twin tried on the simulator. With ``--holdout model-family`` the casebook that ranks a session holds no outcome of
its model's family (qwen, llama, mixtral, bert, resnet, yolo, sd3, sdxl, flux), and everything fitted is fitted again without
them; ``--holdout model-type`` leaves out the whole type (decoder, encoder, cnn, detection, diffusion). Words:

* gain: saved device time of a sample as a fraction of the time before, 1 - (after step x devices / samples) / (before ..): the saved
  part of the step unless batch or devices change (the target asked for is throughput, so a larger batch is an answer). 0 for a
  strategy that is in place already or means nothing for the model.
* feasible: allowed by the session's constraints, meant for its chip and phase by the catalogue, and fitting the chip's memory.
* best: the largest gain of a feasible strategy. Top-1 and top-3 count sessions whose first / first three contain a strategy within
  0.2 % of the step of the best; sessions where nothing gains more than the noise (1 %) are left out (``worth``: those counted).
* regret: best gain (or 0: doing nothing) - gain of the first-ranked strategy, as a fraction of the step, over all sessions; an empty
  ranking gains 0, a first one without room in memory costs the whole best gain.
* gain error: |expected - true| / true over the first three of every session whose true gain is beyond the noise;
  ``gain_error_all_median`` over every judged strategy with a true gain
  beyond twice the noise.
* judged: a strategy the constraints allow about which an expectation is stated, whether it is worth a rank or not (what gains nothing must
  be known too), and whose trial fits the memory. ``ranked`` are those the recommendation lists.
* coverage80: share of the judged strategies expected to gain more than the noise whose 80 % interval holds the true gain.
* ece: expected calibration error, ten equal bins, of the confidence that the gain is beyond the noise, over all judged strategies;
  ``ece_ranked`` over the ranked ones alone, which leaves out the easy ones.
* violations: strategies in a first three that break a constraint or do not fit the memory.
* pairs: on the first 20 sessions every feasible pair of the six best strategies is tried too; ``pair_regret_mean`` is the best pair's
  gain minus that of the first two compatible ones of the ranking.

Baselines rank the same feasible strategies: ``popularity`` by mean gain in the casebook, ``first_of_cause`` the catalogue's first answers
of the findings by exposed time, ``nearest_case`` by the gains of the one nearest past run. Progress on stderr, one JSON line last.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from kb.domain.catalogue import EFFORTS, Catalogue, Strategy
from kb.domain.diagnosis import Diagnosis
from kb.domain.recommendation import Constraints, RankedStrategy
from kb.profile.simulated.lengths import Memo
from kb.profile.simulated.setup import Setup
from kb.profile.simulated.twins import TWINS
from kb.recommend.experience import GainModel
from kb.recommend.field.calibration import Bin, calibration_error, reliability
from kb.recommend.fitting import fit_gains
from kb.recommend.gain_file import SHIPPED, read_gains
from kb.recommend.gain_weights import load_gain_weights
from kb.recommend.learnt import learnt_of
from kb.recommend.ranking import recommend
from kb.recommend.traits import Traits, traits
from kb.recommend.weights import load_weights
from kb.tune.growth import drawn, family_of
from kb.tune.growth_runs import diagnosed, rounded
from kb.tune.growth_trials import applicable, idle, meant, trials
from kb.workflow.location import shipped_catalogue

STREAM: Final = 1_000_000
"""Sessions are runs from this number on, beyond those of any casebook."""
NOISE, TIE = 0.01, 0.002
PAIRED, PAIRED_BEST = 20, 6


@dataclass(frozen=True)
class Judged:
    """One strategy: expected gain, interval and confidence as stated before the trial, and what it really gained (None: no room)."""

    strategy: str
    expected: float
    interval: tuple[float, float]
    confidence: float
    gain: float | None
    feasible: bool


@dataclass(frozen=True)
class Row:
    """One session. ``order`` and the baselines' are feasible-or-not names as ranked; ``gains`` of every strategy tried."""

    number: int
    model: str
    soc: str
    group: str
    constraints: Mapping[str, Any]
    ranked: tuple[Judged, ...]
    judged: tuple[Judged, ...]
    gains: Mapping[str, float | None]
    feasible: tuple[str, ...]
    best: float
    baselines: Mapping[str, tuple[str, ...]]
    pair_best: float | None
    pair_ranked: float | None
    rank_ms: float


def group_of(setup: Setup, holdout: str, types: Mapping[str, str]) -> str:
    """What is left out for a session of this run; "" for nothing."""
    if holdout == "model-family":
        return family_of(setup.model)
    return types[family_of(setup.model)] if holdout == "model-type" else ""


TYPES: Final = {
    "sd3": "diffusion", "sdxl": "diffusion", "flux": "diffusion", "bert": "encoder", "resnet": "cnn", "yolo": "detection",
    "qwen": "decoder", "llama": "decoder", "mixtral": "decoder",
}  # fmt: skip
"""The model type of a family; dense and sparse decoders are one."""


def constraints_of(rng: np.random.Generator, catalogue: Catalogue) -> Constraints:
    """Random constraints of a user: precision, model changes, effort, the batch, and one or two forbidden strategies."""
    forbid = [name for name in TWINS if name == "increase_batch" and rng.random() < 0.5]
    forbid += [str(name) for name in rng.choice(sorted(TWINS), size=int(rng.integers(0, 3)), replace=False)]
    if rng.random() < 0.4:
        forbid += [name for name in TWINS if catalogue.strategies[name].precision_risk in ("medium", "high")]
    return Constraints(
        target="throughput", allow=tuple(TWINS), forbid=tuple(dict.fromkeys(forbid)), allow_model_change=bool(rng.random() < 0.8),
        max_effort=str(rng.choice(EFFORTS, p=[0.03, 0.05, 0.07, 0.15, 0.7])),  # type: ignore[arg-type]  # an Effort
    )  # fmt: skip


def permitted(strategy: Strategy, constraints: Constraints) -> bool:
    """The constraints, read independently of the recommender."""
    return (
        strategy.id not in constraints.forbid
        and strategy.id in constraints.allow
        and not (strategy.changes_model and not constraints.allow_model_change)
        and EFFORTS.index(strategy.effort) <= EFFORTS.index(constraints.max_effort)
    )


def session_row(number: int, seed: int, model: GainModel, catalogue: Catalogue) -> Row:
    """Profile, rank, and only then try."""
    setup = drawn(seed, STREAM + number, catalogue.socs)
    constraints = constraints_of(np.random.default_rng([seed, number, 77]), catalogue)
    sessions, diagnosis = diagnosed(setup, catalogue)
    begun = time.perf_counter()
    shown = rounded(traits(sessions, diagnosis, catalogue.socs))
    learnt = learnt_of(model, shown, sessions[0].meta.soc.family)
    answer = recommend(
        diagnosis, (), catalogue, constraints, load_weights(), family=sessions[0].meta.soc.family, phase=sessions[0].meta.model.phase,
        learnt=learnt,
    )  # fmt: skip
    rank_ms = 1e3 * (time.perf_counter() - begun)
    offered = [name for name in meant(setup, catalogue) if permitted(catalogue.strategies[name], constraints)]
    baselines = {
        "popularity": popular(model, offered),
        "first_of_cause": first_answers(diagnosis, offered),
        "nearest_case": nearest(model, shown, sessions[0].meta.soc.family, offered),
    }
    # The ranking rests on the profile alone and is fixed; only now is the setup tried.
    memo: Memo = {}
    gains: dict[str, float | None] = dict.fromkeys(idle(setup, catalogue), 0.0)
    gains |= {trial.strategies[0]: trial.gain for trial in trials(setup, [(name,) for name in applicable(setup, catalogue)], memo)}
    feasible = tuple(name for name in offered if gains.get(name) is not None)
    best = max((gain for name in feasible if (gain := gains[name]) is not None), default=0.0)
    pair_best, pair_ranked = pairs(setup, feasible, gains, answer.strategies, catalogue, memo) if number < PAIRED else (None, None)
    judged = tuple(
        Judged(name, estimate.gain, estimate.interval, estimate.probability, gains.get(name), name in feasible)
        for name, estimate in learnt.estimates.items()
        if name in offered
    )
    ranked = tuple(
        Judged(item.id, item.gain_fraction, item.interval, item.confidence, gains.get(item.id), item.id in feasible)
        for item in answer.strategies
    )
    asked = {"forbid": constraints.forbid, "effort": constraints.max_effort, "model_change": constraints.allow_model_change}
    return Row(
        number, setup.model, setup.soc.id, family_of(setup.model), asked, ranked, judged,
        gains, feasible, max(best, 0.0), baselines, pair_best, pair_ranked, rank_ms,
    )  # fmt: skip


def pairs(setup: Setup, feasible: Sequence[str], gains: Mapping[str, float | None], ranked: Sequence[RankedStrategy], catalogue: Catalogue,
          memo: Memo) -> tuple[float, float]:  # fmt: skip
    """(gain of the best pair, gain of the first two compatible ones of the ranking)."""
    top = sorted(feasible, key=lambda name: -(gains[name] or 0.0))[:PAIRED_BEST]
    first = next((pair for pair in itertools.combinations([item.id for item in ranked], 2) if compatible(pair, catalogue)), None)
    wanted = [pair for pair in itertools.combinations(top, 2) if compatible(pair, catalogue)]
    tried = {trial.strategies: trial.gain or 0.0 for trial in trials(setup, [*wanted, *([first] if first else [])], memo)}
    return max((tried.get(pair, 0.0) for pair in wanted), default=0.0), tried.get(first, 0.0) if first else 0.0


def compatible(pair: tuple[str, ...], catalogue: Catalogue) -> bool:
    return pair[1] not in catalogue.strategies[pair[0]].conflicts and TWINS[pair[0]].option != TWINS[pair[1]].option


def popular(model: GainModel, offered: Sequence[str]) -> tuple[str, ...]:
    """By mean gain over all runs of the casebook."""
    mean = dict(zip(model.table.strategies, np.nan_to_num(np.nanmean(model.table.gains, axis=0)).tolist(), strict=True))
    return tuple(sorted(offered, key=lambda name: -mean.get(name, 0.0)))


def first_answers(diagnosis: Diagnosis, offered: Sequence[str]) -> tuple[str, ...]:
    """The first allowed answer of each finding, by exposed time; then the second ones."""
    answers = [[name for name in finding.strategies if name in offered] for finding in diagnosis.all_findings()]
    turns = itertools.zip_longest(*answers)
    return tuple(dict.fromkeys(name for turn in turns for name in turn if name is not None))


def nearest(model: GainModel, shown: Traits, family: str, offered: Sequence[str]) -> tuple[str, ...]:
    """What worked in the one most similar past run on a chip of the family."""
    values = model.complete(shown)
    allowed = [row for row, own in enumerate(model.table.families) if own == family] or list(range(len(model.table)))
    distance = np.square((model.filled[allowed] - values) / model.spread).sum(axis=1)
    row = allowed[int(distance.argmin())]
    gains = dict(zip(model.table.strategies, model.table.gains[row].tolist(), strict=True))
    known = [name for name in offered if np.isfinite(gains.get(name, np.nan))]
    return tuple(sorted(known, key=lambda name: -gains[name]))


def rows_of(task: tuple[str, tuple[int, ...], int, str]) -> list[Row]:
    """All sessions of one held-out group, in a process of its own."""
    group, numbers, seed, casebook = task
    model, catalogue = read_gains(Path(casebook)), shipped_catalogue()
    if group:
        kept = np.array([group not in (own, TYPES.get(own)) for own in model.table.groups], np.bool_)
        model = fit_gains(model.table.chosen(kept), load_gain_weights(), lambda *_: None)
    return [session_row(number, seed, model, catalogue) for number in numbers]


def all_rows(options: argparse.Namespace) -> Iterator[Row]:
    catalogue = shipped_catalogue()
    groups: dict[str, list[int]] = {}
    for number in range(options.sessions):
        setup = drawn(options.seed, STREAM + number, catalogue.socs)
        groups.setdefault(group_of(setup, options.holdout, TYPES), []).append(number)
    tasks = [
        (group, tuple(numbers), options.seed, str(options.casebook))
        for group, numbers in sorted(groups.items(), key=lambda item: -len(item[1]))
    ]
    if not options.holdout:
        numbers = tuple(range(options.sessions))
        tasks = [("", numbers[place::8], options.seed, str(options.casebook)) for place in range(8)]
    done = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for rows in pool.map(rows_of, tasks):
            done += len(rows)
            print(f"\r{done}/{options.sessions}", end="", file=sys.stderr, flush=True)
            yield from rows
    print(file=sys.stderr)


def order_scores(rows: Sequence[Row], orders: Sequence[Sequence[str]]) -> dict[str, float]:
    """Top-1, top-3 and regret of one way to rank."""
    worth = [(row, order) for row, order in zip(rows, orders, strict=True) if row.best > NOISE]
    firsts = [sum(row.gains.get(name) or 0.0 for name in order[:1]) for row, order in zip(rows, orders, strict=True)]
    regret = [row.best - first for row, first in zip(rows, firsts, strict=True)]

    def within(count: int) -> float:
        held = [
            any((row.gains.get(name) or 0.0) >= row.best - TIE for name in order[:count] if name in row.feasible) for row, order in worth
        ]
        return float(np.mean(held)) if held else 0.0

    return {
        "top1": within(1), "top3": within(3), "regret_mean": float(np.mean(regret)), "regret_median": float(np.median(regret)),
        "regret_p90": float(np.quantile(regret, 0.9)),
    }  # fmt: skip


def scores(rows: Sequence[Row]) -> dict[str, Any]:
    """The figures over all sessions."""
    orders = [[item.strategy for item in row.ranked] for row in rows]
    judged = [item for row in rows for item in row.judged if item.gain is not None]
    listed = [item for row in rows for item in row.ranked if item.gain is not None]
    confident = diagram(judged)
    promising = [item for item in judged if item.expected > NOISE]
    covered = [item.interval[0] <= (item.gain or 0.0) <= item.interval[1] for item in promising]
    first = [item for row in rows for item in row.ranked[:3]]
    leading = [abs(item.expected - item.gain) / item.gain for item in first if item.gain is not None and item.gain > NOISE]
    every = [abs(item.expected - item.gain) / item.gain for item in judged if item.gain is not None and item.gain > 2 * NOISE]
    paired = [row.pair_best - row.pair_ranked for row in rows if row.pair_best is not None and row.pair_ranked is not None]
    return {
        **order_scores(rows, orders),
        "gain_error_median": float(np.median(leading)),
        "gain_error_n": len(leading),
        "gain_error_all_median": float(np.median(every)),
        "coverage80": float(np.mean(covered)),
        "coverage_n": len(covered),
        "ece": calibration_error(confident),
        "judged": len(judged),
        "ece_ranked": calibration_error(diagram(listed)),
        "ranked": len(listed),
        "violations": sum(item.gain is None or not item.feasible for item in first),
        "n": len(rows),
        "worth": sum(row.best > NOISE for row in rows),
        "best_gain_mean": float(np.mean([row.best for row in rows])),
        "pair_regret_mean": float(np.mean(paired)) if paired else None,
        "pairs": len(paired),
        "rank_ms_median": float(np.median([row.rank_ms for row in rows])),
        "reliability": [[round(point.predicted, 3), round(point.observed, 3), point.n] for point in confident],
        "baselines": {name: order_scores(rows, [row.baselines[name] for row in rows]) for name in rows[0].baselines},
    }


def diagram(items: Sequence[Judged]) -> tuple[Bin, ...]:
    """Said against held: was the gain beyond the noise?"""
    return reliability([item.confidence for item in items], [(item.gain or 0.0) > NOISE for item in items])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--holdout", choices=("", "model-family", "model-type"), default="")
    parser.add_argument("--casebook", type=Path, default=SHIPPED, help="a file made by kb grow; default the shipped one")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    with options.out.open("w", encoding="utf-8") if options.out else nullcontext() as file:
        for row in all_rows(options):
            rows.append(row)
            if file is not None:
                file.write(json.dumps(asdict(row)) + "\n")
                file.flush()
    print(json.dumps({"seed": options.seed, "holdout": options.holdout, **scores(rows)}))


if __name__ == "__main__":
    main()
