"""The named numbers of the field recommender, read from the data file beside this module."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec


class FieldWeights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See ``weights.json``: every number with its reason."""

    smoothing: float
    definition: float
    answers: float
    translation: float
    ridge: float
    definition_vectors: float
    vectors: float
    prior: float
    decay: float
    reasons: Mapping[str, str]


def load_field_weights() -> FieldWeights:
    """The shipped weights."""
    return msgspec.json.decode(Path(__file__).with_name("weights.json").read_bytes(), type=FieldWeights)
