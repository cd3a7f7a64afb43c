"""Ordered steps from a recommendation to a faster model."""

from __future__ import annotations

import msgspec

from kb.domain.catalogue import Command, Effort, StrategyId
from kb.domain.finding import Priority
from kb.domain.provenance import Provenance
from kb.domain.recommendation import Effect, Per
from kb.domain.text import Text


class PlanFile(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration file of one step: a plain file ``name``, its whole ``content``, and the tool that reads it."""

    name: str
    tool: str
    content: str


class PlanStep(msgspec.Struct, frozen=True, kw_only=True):
    """One change: exact commands (each marked verified or not), what to expect, how to check, how to go back.

    ``expected_gain_fraction`` of the step (0..1), or of the time of a sample where ``per`` says so, lies in ``interval`` at
    ``interval_level``. ``prerequisites`` must hold before,
    ``precision_check`` says how to check the outputs (empty: the change cannot touch them). ``files`` are the same commands as files.
    """

    strategy: StrategyId
    priority: Priority
    title: Text
    commands: tuple[Command, ...]
    expected_gain_fraction: float
    provenance: Provenance
    verify: Text
    roll_back: Text
    risks: tuple[Text, ...] = ()
    cause: str = ""
    interval: tuple[float, float] | None = None
    interval_level: float = 0.0
    confidence: float | None = None
    effort: Effort | None = None
    simulatable: bool = False
    prerequisites: tuple[Text, ...] = ()
    precision_check: Text = Text()
    effects: tuple[Effect, ...] = ()
    files: tuple[PlanFile, ...] = ()
    per: Per = "step"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Steps in the order to try them; after each one, profile again and compare.

    ``expected`` is the fraction of the step that all steps together may save and ``interval`` its bounds, changes against one cause
    counted once. ``left_out`` are strategies that conflict with a chosen one, and why. ``feasible`` and ``closest`` as in
    the recommendation.
    """

    session: str
    steps: tuple[PlanStep, ...]
    expected: float | None = None
    interval: tuple[float, float] | None = None
    left_out: tuple[tuple[StrategyId, Text], ...] = ()
    notes: tuple[Text, ...] = ()
    feasible: bool = True
    closest: Text = Text()
