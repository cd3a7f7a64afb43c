"""``kb health``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.profile.sources import load
from kb.report.health import health_document
from kb.report.payload import plain
from kb.report.plain import PlainRenderer
from kb.session.health import assess
from kb_cli.command import Argument, Command, Common
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """What to look at."""

    path: Annotated[Path, Argument("A profile folder or file.", "PATH")]


def run(options: Options, console: Console) -> int:
    """Say whether the capture is fit for use."""
    return judge(options.path, console)


def judge(path: Path, console: Console) -> int:
    """Load ``path``, print its health, and return 3 for an unusable capture."""
    health = assess(load(path))
    if console.as_json:
        console.json(plain(health))
    else:
        console.text(PlainRenderer().render(health_document(health, console.lang)))
    return ExitCode.UNUSABLE_CAPTURE if health.verdict == "unusable" else ExitCode.DONE


COMMAND = Command(
    "Is this capture fit for a diagnosis, and what is missing?",
    Options,
    run,
    ("kb health path/to/rank_0_ascend_pt", "kb health cluster --json"),
)
