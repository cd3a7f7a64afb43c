"""The named numbers of the gain model, read from the data file beside this module."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

import msgspec

from kb.recommend.boosting import Recipe


class GainWeights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See ``gain_weights.json``: every number with its reason."""

    trees: Recipe
    ridge: float
    folds: int
    seed: int
    noise: float
    level: float
    reasons: Mapping[str, str]


def load_gain_weights() -> GainWeights:
    """The shipped numbers."""
    return msgspec.json.decode(resources.files("kb.recommend").joinpath("gain_weights.json").read_bytes(), type=GainWeights)
