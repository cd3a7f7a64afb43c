"""Limits as options: what a tuned run has to meet, the same for every command that tries changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Final, get_args

from kb.domain.catalogue import Catalogue
from kb.domain.quantity import parse_quantity
from kb.domain.recommendation import Constraints, Target
from kb.errors import UsageError
from kb_cli.command import Common, Flag

TARGETS: Final[tuple[Target, ...]] = get_args(Target)


@dataclass(frozen=True, kw_only=True)
class Limits(Common):
    """What to improve, and what must hold."""

    target: Annotated[str, Flag("--target", "What to make better.", choices=TARGETS)] = "latency"
    max_latency: Annotated[str | None, Flag("--max-latency", "Longest acceptable step, as 100ms.", "TIME")] = None
    max_memory: Annotated[str | None, Flag("--max-memory", "Most device memory a rank may hold, as 2.5GB.", "SIZE")] = None
    min_throughput: Annotated[str | None, Flag("--min-throughput", "Fewest samples a second, as 150/s.", "RATE")] = None
    max_precision_loss: Annotated[
        str | None, Flag("--max-precision-loss", "Most the relative error of results may grow (emulated), as 1% or 0.01.", "FRACTION")
    ] = None
    no_model_change: Annotated[bool, Flag("--no-model-change", "Only what leaves the model as it is.")] = False
    forbid: Annotated[tuple[str, ...], Flag("--forbid", "Never this strategy; may be repeated.", "STRATEGY")] = ()
    allow: Annotated[tuple[str, ...], Flag("--allow", "Only these strategies; may be repeated.", "STRATEGY")] = ()


def constraints_of(options: Limits, catalogue: Catalogue) -> Constraints:
    """The limits as a value. Raises UsageError for a figure of the wrong kind, NotFoundError for an unknown strategy."""
    return Constraints(
        target=next(target for target in TARGETS if target == options.target),
        max_latency_ns=_read("--max-latency", options.max_latency, "ns"),
        max_memory_b=_read("--max-memory", options.max_memory, "B"),
        min_throughput=_read("--min-throughput", options.min_throughput, "/s"),
        max_precision_loss=_read("--max-precision-loss", options.max_precision_loss, "ratio"),
        allow_model_change=not options.no_model_change,
        forbid=tuple(catalogue.strategy(name).id for name in options.forbid),
        allow=tuple(catalogue.strategy(name).id for name in options.allow),
    )


def _read(flag: str, text: str | None, unit: str) -> float | None:
    if text is None:
        return None
    value = parse_quantity(text, default_unit="ratio" if unit == "ratio" else None).to(unit)
    if not 0 < value < math.inf:
        raise UsageError(f"{flag} {text}", allowed="a figure above zero with its unit")
    return value
