"""Ordered steps from a recommendation to a faster model."""

from __future__ import annotations

import msgspec

from kb.domain.catalogue import Command, StrategyId
from kb.domain.finding import Priority
from kb.domain.provenance import Provenance
from kb.domain.text import Text


class PlanStep(msgspec.Struct, frozen=True, kw_only=True):
    """One change: exact commands (each marked verified or not), what to expect, how to check, how to go back."""

    strategy: StrategyId
    priority: Priority
    title: Text
    commands: tuple[Command, ...]
    expected_gain_fraction: float
    provenance: Provenance
    verify: Text
    roll_back: Text
    risks: tuple[Text, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Steps in the order to try them; after each one, profile again and compare."""

    session: str
    steps: tuple[PlanStep, ...]
