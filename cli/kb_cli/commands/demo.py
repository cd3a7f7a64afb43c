"""``kb demo``"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.report.payload import plain
from kb.workflow.demo import demo, demo_on_profile
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which model, chip and seed; or a profile of one's own."""

    profile: Annotated[Path | None, Flag("--profile", "A real profile instead of a simulated model.", "PATH")] = None
    model: Annotated[str, Flag("--model", "Simulated model.", "MODEL")] = "sd3"
    soc: Annotated[str, Flag("--soc", "Simulated chip.", "SOC")] = "910b2"
    seed: Annotated[int, Flag("--seed", "Seed of the simulated noise.", "N", least=0)] = 1


def run(options: Options, console: Console) -> int:
    """Tell the story, a step at a time."""
    place = workspace()
    if options.profile is not None:
        story = demo_on_profile(place, console.progress(), console.lang, options.profile, program=_program())
    else:
        story = demo(place, console.progress(), console.lang, model=options.model, soc=options.soc, seed=options.seed, program=_program())
    if console.as_json:
        console.json({"steps": [plain(step) for step in story]})
        return ExitCode.DONE
    for number, step in enumerate(story, start=1):
        console.line(f"{number}. {step.pick(console.lang)}")
    return ExitCode.DONE


def _program() -> str:
    """How the user reaches this program: its bare name when that is on the path, else as it was called."""
    called = Path(sys.argv[0])
    if called.name not in ("kb", "diagnosis-recipes"):
        return "kb"
    found = shutil.which(called.name)
    return called.name if found and Path(found).resolve() == called.resolve() else str(called)


COMMAND = Command(
    "The whole story in under a minute: profile, diagnose, find, recommend, try, verify, publish.",
    Options,
    run,
    ("kb demo", "kb demo --soc 910b4 --seed 7", "kb demo --profile path/to/rank_0_ascend_pt"),
)
