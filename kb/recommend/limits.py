"""What a user can live with, from words to checked limits."""

from __future__ import annotations

import math
from typing import get_args

import msgspec

from kb.domain.catalogue import EFFORTS, Catalogue, Effort, Strategy
from kb.domain.quantity import UNITS, dimension, parse_quantity
from kb.domain.recommendation import TARGETS, Constraints
from kb.domain.soc import SocFamily
from kb.errors import UsageError

_FAMILIES: tuple[SocFamily, ...] = get_args(SocFamily)


class AskedLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits as typed: quantities as ``100ms``, ``2.5GB``, ``150/s``, ``0.1%``; None or empty = not asked."""

    target: str = "latency"
    max_latency: str | None = None
    max_memory: str | None = None
    min_throughput: str | None = None
    max_precision_loss: str | None = None
    soc: str | None = None
    no_model_change: bool = False
    no_retrain: bool = False
    allow: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    max_effort: str = "kernel"


def read_constraints(asked: AskedLimits, catalogue: Catalogue) -> Constraints:
    """The constraints in base units.

    Raises UsageError for an unknown unit, a wrong dimension, a limit that is not above zero or not finite, an unknown target or
    effort, and for limits that contradict each other; NotFoundError for unknown strategies and chips.
    """
    target = next((target for target in TARGETS if target == asked.target), None)
    effort = next((effort for effort in EFFORTS if effort == asked.max_effort), None)
    if target is None:
        raise UsageError(f"--target {asked.target}", allowed=", ".join(TARGETS))
    if effort is None:
        raise UsageError(f"--max-effort {asked.max_effort}", allowed=", ".join(EFFORTS))
    read = Constraints(
        target=target,
        max_latency_ns=_limit("--max-latency", asked.max_latency, "ns", "100ms"),
        max_memory_b=_limit("--max-memory", asked.max_memory, "B", "2.5GB"),
        min_throughput=_limit("--min-throughput", asked.min_throughput, "/s", "150/s"),
        max_precision_loss=_limit("--max-precision-loss", asked.max_precision_loss, "ratio", "0.1%", zero=True),
        soc_family=read_family(asked.soc, catalogue),
        allow_model_change=not asked.no_model_change,
        allow_retrain=not asked.no_retrain,
        allow=tuple(catalogue.strategy(name).id for name in asked.allow),
        forbid=tuple(catalogue.strategy(name).id for name in asked.forbid),
        max_effort=effort,
    )
    _check_contradictions(read, catalogue)
    return read


def _limit(flag: str, text: str | None, unit: str, example: str, *, zero: bool = False) -> float | None:
    if text is None:
        return None
    try:
        value = parse_quantity(text).to(unit)
    except UsageError as error:
        kind = dimension(unit)[0]
        units = ", ".join(name for name, (own, _) in UNITS.items() if own == kind)
        raise UsageError(f"{flag} {text}: {error.what}", allowed=f"a number with one of {units}", do=f"write it as {example}") from error
    if value < 0 or (value == 0 and not zero) or not math.isfinite(value):
        raise UsageError(
            f"{flag} {text}", allowed="a finite value of zero or more" if zero else "a finite value above zero", do=f"as in {example}"
        )
    if unit == "ratio" and value > 1:
        raise UsageError(f"{flag} {text} is more than everything", allowed="0% to 100%", do=f"as in {example}")
    return value


def read_family(name: str | None, catalogue: Catalogue) -> SocFamily | None:
    """The family called ``name``, or that of the chip called so; None for no name. Raises NotFoundError for an unknown one."""
    if not name:
        return None
    family = next((family for family in _FAMILIES if family.casefold() == name.casefold()), None)
    return family or catalogue.soc(name).family


def _check_contradictions(read: Constraints, catalogue: Catalogue) -> None:
    both = sorted(set(read.allow) & set(read.forbid))
    if both:
        raise UsageError(f"--allow and --forbid both name {', '.join(both)}", do="drop one of the two")
    reasons = {name: _blocked(catalogue.strategies[name], read) for name in read.allow}
    if reasons and all(reasons.values()):
        named = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise UsageError(f"the other limits rule out all that --allow names ({named})", do="loosen one of them")


def _blocked(strategy: Strategy, read: Constraints) -> str:
    """Which other limit rules the strategy out whatever the profile says; empty when none does."""
    if strategy.changes_model and not read.allow_model_change:
        return "it changes the model, --no-model-change"
    if strategy.may_need_retraining and not read.allow_retrain:
        return "it may need retraining, --no-retrain"
    if above(strategy.effort, read.max_effort):
        return f"its effort is {strategy.effort}, --max-effort {read.max_effort}"
    return ""


def above(effort: Effort, limit: Effort) -> bool:
    """Whether a kind of change is more work than ``limit``."""
    return EFFORTS.index(effort) > EFFORTS.index(limit)
