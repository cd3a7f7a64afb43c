"""The named numbers of the ranking, read from the data file beside this module."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

import msgspec

from kb.domain.catalogue import StrategyId
from kb.domain.provenance import Provenance


class Weights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See ``weights.json``: every number with its reason."""

    tier_weight: Mapping[Provenance, float]
    family_unknown_discount: float
    prior_share_of_bound: float
    prior_confidence: float
    prior_weight: float
    other_model_discount: float
    case_saturation: float
    interval_level: float
    equal_fit: float
    case_worth: float
    estimate_worth: float
    use_worth: float
    unprompted_odds: float
    adds_work: tuple[StrategyId, ...]
    reasons: Mapping[str, str]


def load_weights() -> Weights:
    """The shipped weights."""
    return msgspec.json.decode(resources.files("kb.recommend").joinpath("weights.json").read_bytes(), type=Weights)
