"""The named numbers of the ranking, read from the data file beside this module."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import msgspec


class Calibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of one embedder: moments of the cosine of unrelated pairs, and the cosine under which nothing is similar (None: no cut known):
    ``abstain_below`` among ``abstain_vectors`` vectors, ``abstain_most`` among very many."""

    center: float
    scale: float
    abstain_below: float | None
    abstain_vectors: int = 1
    abstain_growth: float = 0.0
    abstain_most: float = 1.0

    def cut(self, vectors: int) -> float | None:
        """The cosine under which nothing is similar among so many vectors: the best of many unrelated ones is higher than that of
        few, by about a fixed step for each factor."""
        if self.abstain_below is None:
            return None
        return min(self.abstain_most, self.abstain_below + self.abstain_growth * math.log(max(1.0, vectors / self.abstain_vectors)))


class StructureWeights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What full agreement of each feature adds to the score."""

    causes: float
    model: float
    model_type: float
    phase: float
    soc_same: float
    metrics: float


class Weights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See ``weights.json``: every number with its reason."""

    k1: float
    b: float
    dense: float
    lexical: float
    turn: float
    guess: float
    guesses: int
    minimum_group: int
    widest: float
    pool: int
    rerank: int
    lexical_span: float
    abstain_coverage: float
    models: Mapping[str, Calibration]
    uncalibrated: Calibration
    structure: StructureWeights
    soc_unknown: float
    metric_span: float
    structure_enough: float
    reasons: Mapping[str, str]

    def calibration(self, embedder: str) -> Calibration:
        """The numbers of an embedder by its name."""
        return self.models.get(embedder, self.uncalibrated)


def load_weights() -> Weights:
    """The shipped weights. A plain path, as ``importlib.resources`` costs a text search 10 ms."""
    return msgspec.json.decode(Path(__file__).with_name("weights.json").read_bytes(), type=Weights)
