"""The named defaults of the rules, and the judgements that every rule makes the same way with them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from kb.domain.finding import Priority
from kb.domain.thresholds import Threshold, Thresholds

_FILE: Final = Path(__file__).with_name("thresholds.json")


def default_thresholds() -> tuple[Threshold, ...]:
    """The shipped defaults with unit and reason, in the order of the file."""
    return msgspec.json.decode(_FILE.read_bytes(), type=tuple[Threshold, ...])


def load_thresholds() -> Thresholds:
    """The shipped defaults by name."""
    return Thresholds({threshold.name: threshold.value for threshold in default_thresholds()})


def priority(share: float, thresholds: Thresholds) -> Priority:
    """P0 to P3 by the exposed share (0..1) of the step."""
    levels: tuple[Priority, ...] = ("P0", "P1", "P2")
    for level in levels:
        if share >= thresholds[f"priority_{level.lower()}_share"]:
            return level
    return "P3"
