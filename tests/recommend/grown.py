"""A small made-up casebook whose law is known: a strategy removes a fixed part of one exposed share."""

from __future__ import annotations

import numpy as np

from kb.recommend.boosting import Recipe
from kb.recommend.gain_weights import GainWeights
from kb.recommend.outcomes import OutcomeTable, halved

TRAITS = ("bound.host_bound_launch", "bound.unfused_attention", "log_batch", "memory.reserved")
STRATEGIES = ("enable_graph_mode", "increase_batch", "schedule_gc", "use_fused_attention")
GROUPS = ("bert", "llama", "sd3", "yolo", "qwen")
WEIGHTS = GainWeights(
    trees=Recipe(trees=30, depth=2, shrinkage=0.2, columns=1.0, rows=1.0, ridge=1.0, least_rows=3),
    ridge=0.1, folds=3, seed=1, noise=0.01, level=0.8, reasons={},
)  # fmt: skip


def quiet(_stage: str, _done: int, _total: int, /) -> None:
    pass


def table(runs: int = 120, seed: int = 3) -> OutcomeTable:
    """Graph mode removes 80 % of the launch share, fused attention half of the attention share, each with 1 % of noise; the batch
    helps where it is small and does not fit where memory is full; collecting garbage never matters."""
    rng = np.random.default_rng(seed)
    host, attention = rng.random(runs) * 0.6 * (rng.random(runs) < 0.6), rng.random(runs) * 0.5 * (rng.random(runs) < 0.6)
    batch, held = rng.integers(0, 6, runs).astype(float), rng.random(runs)
    noise = rng.normal(0, 0.01, (runs, 3))
    gains = np.column_stack(
        [0.8 * host + noise[:, 0], 0.4 / (1 + batch) + noise[:, 1], np.zeros(runs), 0.5 * attention + noise[:, 2]]
    ).astype(np.float32)
    unfit = np.zeros(gains.shape, np.bool_)
    unfit[:, 1] = held > 0.6
    gains[unfit] = np.nan
    return OutcomeTable(
        traits=TRAITS, strategies=STRATEGIES, values=halved(np.column_stack([host, attention, batch, held]).astype(np.float32)),
        gains=halved(gains), tried=np.ones(gains.shape, np.bool_), unfit=unfit, runs=tuple(f"grown-{number}" for number in range(runs)),
        groups=tuple(GROUPS[number % len(GROUPS)] for number in range(runs)),
        families=tuple("A2" if number % 4 else "310P" for number in range(runs)), made={"command": "test"},
    )  # fmt: skip
