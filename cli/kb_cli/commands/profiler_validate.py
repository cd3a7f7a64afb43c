"""``profiler validate``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb_cli.command import Command, Common, Flag
from kb_cli.commands.health import judge
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """What to look at."""

    data: Annotated[Path, Flag("--data", "A profile folder or file.", "PATH")]
    soc: Annotated[str, Flag("--soc", "The chip it ran on, where the capture does not say.", "ID")] = ""
    export: Annotated[bool, Flag("--export", "Export raw captures first, with the profiler's own tool (writes into them).")] = False


def run(options: Options, console: Console) -> int:
    """Say whether the capture is fit for use."""
    return judge(options.data, console, soc=options.soc, export=options.export)


COMMAND = Command("Check the quality of a capture.", Options, run, ("profiler validate --data sd3_full_capture",))
