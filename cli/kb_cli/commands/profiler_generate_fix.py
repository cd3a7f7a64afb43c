"""``profiler generate-fix``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb_cli.command import Command, Flag
from kb_cli.commands.plan import PlanOptions, planned
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(PlanOptions):
    """What to fix."""

    bottlenecks: Annotated[Path, Flag("--bottlenecks", "A diagnosis saved by profiler analyze, a report, or a profile.", "FILE")]


def run(options: Options, console: Console) -> int:
    """The same plan as ``kb plan``."""
    return planned((options.bottlenecks,), options, console)


COMMAND = Command(
    "A plan of changes for the bottlenecks found.",
    Options,
    run,
    ('profiler generate-fix --bottlenecks bottleneck_report.json --priorities "P0,P1,P2" --output optimization_plan.md',),
)
