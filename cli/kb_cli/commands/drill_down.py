"""``kb drill-down`` and ``profiler drill-down``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kb_cli.command import Command, Flag
from kb_cli.console import Console
from kb_cli.drilling import DrillOptions, drill


@dataclass(frozen=True, kw_only=True)
class Options(DrillOptions):
    """The shared options, and the levels to show."""

    levels: Annotated[str, Flag("--levels", "Levels with an arrow or comma between: module, operator, hardware, event.", "LEVELS")] = (
        "module → operator → hardware"
    )


def run(options: Options, console: Console) -> int:
    """Show the tree."""
    return drill(options, options.levels, console, picture=False)


COMMAND = Command(
    "Go from a module to its operators, the hardware and single events, with the figures at every node.",
    Options,
    run,
    (
        'profiler drill-down --session sd3_profiling --target attention_block --levels "module → operator → hardware" --output drill.md',
        "kb drill-down --session run.prof --target matmul --levels operator,hardware,event --json",
        "kb drill-down --session after.prof --baseline before.prof",
    ),
)
