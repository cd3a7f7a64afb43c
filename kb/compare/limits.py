"""The named limits of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from kb.domain.thresholds import Threshold, Thresholds

_FILE: Final = Path(__file__).with_name("limits.json")


def default_limits() -> tuple[Threshold, ...]:
    """The shipped limits with unit and reason, in the order of the file."""
    return msgspec.json.decode(_FILE.read_bytes(), type=tuple[Threshold, ...])


def load_limits() -> Thresholds:
    """The shipped limits by name."""
    return Thresholds({limit.name: limit.value for limit in default_limits()})
