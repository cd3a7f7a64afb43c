"""Levers that did not help, as postings."""

from __future__ import annotations

from typing import Final

from kb.domain.case import Result
from kb.domain.catalogue import StrategyId

AGAINST: Final[frozenset[Result]] = frozenset({"worse", "no_gain"})
"""Results that speak against a lever."""


def against_token(strategy: StrategyId) -> str:
    """The posting of records in which the lever did not help; no text gives it, so no question finds it by chance."""
    return f"!{strategy}"
