"""``kb recommend``"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args

from kb.domain.catalogue import EFFORTS
from kb.domain.quantity import parse_quantity
from kb.domain.recommendation import Constraints
from kb.domain.soc import SocFamily
from kb.errors import ExitCode, UsageError
from kb.report.answers import recommendation_document
from kb.report.payload import recommendation_payload
from kb.report.plain import PlainRenderer
from kb.workflow.casebook import Casebook, open_casebook
from kb.workflow.diagnose import Diagnosed, diagnose_paths
from kb.workflow.recommend import recommend_for
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console

_FAMILIES: tuple[SocFamily, ...] = get_args(SocFamily)


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """A profile and the constraints to respect."""

    paths: Annotated[tuple[Path, ...], Argument("Profile folders or files.", "PATH...")]
    max_latency: Annotated[str | None, Flag("--max-latency", "Longest acceptable step, as 100ms.", "TIME")] = None
    soc: Annotated[str | None, Flag("--soc", "The chip or its family; for captures that do not say.", "SOC")] = None
    no_model_change: Annotated[bool, Flag("--no-model-change", "Only what leaves the model as it is.")] = False
    allow: Annotated[tuple[str, ...], Flag("--allow", "Only these strategies; may be repeated.", "STRATEGY")] = ()
    forbid: Annotated[tuple[str, ...], Flag("--forbid", "Never this strategy; may be repeated.", "STRATEGY")] = ()
    max_effort: Annotated[str, Flag("--max-effort", "Largest acceptable kind of change.", choices=EFFORTS)] = "kernel"


def run(options: Options, console: Console) -> int:
    """Diagnose, find cases, rank."""
    diagnosed = diagnose_paths(options.paths)
    with open_casebook(workspace(), console.progress()) as casebook:
        constraints = _constraints(options, casebook)
        _check_family(constraints.soc_family, diagnosed)
        recommendation = recommend_for(casebook, diagnosed, constraints)
        document = recommendation_document(recommendation, casebook.catalogue, console.lang)
    if console.as_json:
        console.json(recommendation_payload(recommendation))
    else:
        console.text(PlainRenderer().render(document))
    return ExitCode.DONE if recommendation.feasible else ExitCode.INFEASIBLE


def _constraints(options: Options, casebook: Casebook) -> Constraints:
    catalogue = casebook.catalogue
    family = next((family for family in _FAMILIES if family == options.soc), None)
    return Constraints(
        max_latency_ns=_latency(options.max_latency) if options.max_latency else None,
        soc_family=family or (catalogue.soc(options.soc).family if options.soc else None),
        allow_model_change=not options.no_model_change,
        allow=tuple(catalogue.strategy(name).id for name in options.allow),
        forbid=tuple(catalogue.strategy(name).id for name in options.forbid),
        max_effort=next(effort for effort in EFFORTS if effort == options.max_effort),
    )


def _latency(text: str) -> float:
    limit = parse_quantity(text).to("ns")
    if not 0 < limit < math.inf:
        raise UsageError(f"--max-latency {text}", allowed="a time above zero, as 100ms")
    return limit


def _check_family(asked: SocFamily | None, diagnosed: Diagnosed) -> None:
    """A family that contradicts the capture would bring advice for another chip."""
    known = {session.meta.soc.family for session in diagnosed.sessions} - {"unknown"}
    if asked is not None and known and asked not in known:
        raise UsageError(
            f"--soc says {asked}, the capture says {', '.join(sorted(known))}", do="leave --soc out, or check which capture this is"
        )


COMMAND = Command(
    "Rank strategies for a profile, with an honest expected gain.",
    Options,
    run,
    ("kb recommend rank_0_ascend_pt", "kb recommend run.prof --max-latency 100ms --no-model-change --json"),
)
