"""``profiler path-map``"""

from __future__ import annotations

from dataclasses import dataclass

from kb_cli.command import Command
from kb_cli.console import Console
from kb_cli.drilling import DrillOptions, drill

_LEVELS = "module, operator, hardware, event"


@dataclass(frozen=True, kw_only=True)
class Options(DrillOptions):
    """The shared options."""


def run(options: Options, console: Console) -> int:
    """Every level; a written file also holds the picture."""
    return drill(options, _LEVELS, console, picture=True)


COMMAND = Command(
    "Draw the way from a module down to single events.",
    Options,
    run,
    ("profiler path-map --session sd3_profiling --target attention_block", "profiler path-map --session run.prof --output path.html"),
)
