"""``kb health``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.report.health import health_document
from kb.report.payload import plain
from kb.report.plain import PlainRenderer
from kb.workflow.health import health_of
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """What to look at."""

    path: Annotated[Path, Argument("A profile folder, file or archive.", "PATH")]
    soc: Annotated[str, Flag("--soc", "The chip it ran on, where the capture does not say.", "ID")] = ""
    export: Annotated[bool, Flag("--export", "Export raw captures first, with the profiler's own tool (writes into them).")] = False


def run(options: Options, console: Console) -> int:
    """Say whether the capture is fit for use."""
    return judge(options.path, console, soc=options.soc, export=options.export)


def judge(path: Path, console: Console, *, soc: str = "", export: bool = False) -> int:
    """Load ``path``, print its health, and return 3 for an unusable capture."""
    health = health_of(path, soc=soc, export=export)
    if console.as_json:
        console.json(plain(health))
    else:
        console.text(PlainRenderer().render(health_document(health, console.lang)))
    return ExitCode.UNUSABLE_CAPTURE if health.verdict == "unusable" else ExitCode.DONE


COMMAND = Command(
    "Is this capture fit for a diagnosis, and what is missing?",
    Options,
    run,
    ("kb health path/to/rank_0_ascend_pt", "kb health cluster --json", "kb health run --soc 910b3", "kb health PROF_000001 --export"),
)
