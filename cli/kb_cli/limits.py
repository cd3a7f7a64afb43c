"""The limits that several commands take, as options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kb.domain.catalogue import EFFORTS, Catalogue
from kb.domain.recommendation import TARGETS, Constraints
from kb.domain.soc import SocFamily
from kb.errors import UsageError
from kb.recommend.limits import AskedLimits, read_constraints
from kb.workflow.diagnose import Diagnosed
from kb_cli.command import Common, Flag


@dataclass(frozen=True, kw_only=True)
class LimitOptions(Common):
    """What the user can live with."""

    target: Annotated[str, Flag("--target", "What to improve first.", choices=TARGETS)] = "latency"
    max_latency: Annotated[str | None, Flag("--max-latency", "Longest acceptable step, as 100ms.", "TIME")] = None
    max_memory: Annotated[str | None, Flag("--max-memory", "Most device memory held, as 2.5GB.", "SIZE")] = None
    min_throughput: Annotated[str | None, Flag("--min-throughput", "Least samples a second, as 150/s.", "RATE")] = None
    samples: Annotated[float | None, Flag("--samples", "Samples in one step; for captures that do not say.", "N")] = None
    max_precision_loss: Annotated[
        str | None, Flag("--max-precision-loss", "Largest acceptable relative error added, as 0.1%.", "SHARE")
    ] = None
    soc: Annotated[str | None, Flag("--soc", "The chip or its family; for captures that do not say.", "SOC")] = None
    no_model_change: Annotated[bool, Flag("--no-model-change", "Only what leaves the model as it is.")] = False
    no_retrain: Annotated[bool, Flag("--no-retrain", "Nothing that may need training or calibrating again.")] = False
    allow: Annotated[tuple[str, ...], Flag("--allow", "Only these strategies; may be repeated.", "STRATEGY")] = ()
    forbid: Annotated[tuple[str, ...], Flag("--forbid", "Never this strategy; may be repeated.", "STRATEGY")] = ()
    max_effort: Annotated[str, Flag("--max-effort", "Largest acceptable kind of change.", choices=EFFORTS)] = "kernel"


def constraints_of(options: LimitOptions, catalogue: Catalogue) -> Constraints:
    """The checked limits. Raises UsageError for what cannot be read or contradicts itself."""
    if options.samples is not None and not 0 < options.samples < float("inf"):
        raise UsageError(f"--samples {options.samples:g}", allowed="a number above zero")
    return read_constraints(
        AskedLimits(
            target=options.target,
            max_latency=options.max_latency,
            max_memory=options.max_memory,
            min_throughput=options.min_throughput,
            max_precision_loss=options.max_precision_loss,
            soc=options.soc,
            no_model_change=options.no_model_change,
            no_retrain=options.no_retrain,
            allow=options.allow,
            forbid=options.forbid,
            max_effort=options.max_effort,
        ),
        catalogue,
    )


def check_family(asked: SocFamily | None, diagnosed: Diagnosed) -> None:
    """A family that contradicts the capture would bring advice for another chip: UsageError."""
    known = {session.meta.soc.family for session in diagnosed.sessions} - {"unknown"}
    if asked is not None and known and asked not in known:
        raise UsageError(
            f"--soc says {asked}, the capture says {', '.join(sorted(known))}", do="leave --soc out, or check which capture this is"
        )
