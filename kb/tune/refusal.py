"""Why a strategy was not applied here, and what to do instead."""

from __future__ import annotations

from kb.domain.catalogue import Strategy
from kb.errors import KbError


class NotSimulatableError(KbError):
    """The session was measured, or the strategy has no twin in the simulator: it needs the user's machine."""


class AlreadyAppliedError(KbError):
    """The session already runs with the strategy; applying it again would change nothing."""


def not_simulatable(strategy: Strategy, why: str) -> NotSimulatableError:
    """The error that hands the strategy's real commands to the reader."""
    lines = [f"{command.text}  ({command.tool}{'' if command.verified else ', not verified by us'})" for command in strategy.commands]
    steps = "; ".join(lines) if lines else f"no command is known: {strategy.definition.en or strategy.name.en}"
    return NotSimulatableError(
        f"{strategy.id} cannot be applied here: {why}", do=f"run these commands on your machine: {steps}; then profile again and compare"
    )
