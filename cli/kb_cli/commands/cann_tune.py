"""``cann-tune``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.report.payload import plain
from kb.report.plain import PlainRenderer
from kb.tune.telling import commands_document
from kb.workflow.apply import planned
from kb.workflow.casebook import open_casebook
from kb.workflow.profiling import capture_behind
from kb.workflow.tune import default_journal, setup_in, tune_setup
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Flag
from kb_cli.console import Console
from kb_cli.limits import constraints_of
from kb_cli.running import Running, bounds_of, prepared_journal, show_tuning


@dataclass(frozen=True, kw_only=True)
class Options(Running):
    """A report of ``cann-profile``, a target, and whether to try the changes."""

    profile: Annotated[Path, Flag("--profile", "The report.json of cann-profile, or a capture.", "FILE")]
    apply: Annotated[bool, Flag("--apply", "Apply the changes on the simulated backend, each verified; else only the plan.")] = False


def run(options: Options, console: Console) -> int:
    """With ``--apply`` the closed loop; without it, and for measured captures, the plan with the real tools' commands."""
    bounds = bounds_of(options)
    session = capture_behind(options.profile)
    place = workspace()
    with open_casebook(place, console.progress()) as casebook:
        constraints = constraints_of(options, casebook.catalogue)
        if not options.apply or session.meta.origin != "simulated":
            steps = planned(casebook, session, (), constraints)
            simulated = session.meta.origin == "simulated"
            following = (
                f"cann-tune --profile {options.profile} --target {options.target} --apply"
                if simulated
                else f"kb apply {options.profile} --after NEW_PROFILE"
            )
            if console.as_json:
                console.json({"origin": session.meta.origin, "steps": [plain(step) for step in steps.steps], "next": following})
            else:
                console.text(PlainRenderer().render(commands_document(steps, console.lang, following)))
            return ExitCode.DONE
        setup = setup_in(session, casebook)
        journal = prepared_journal(options.journal or default_journal(place, setup, constraints), options)
        tuning, tuned = tune_setup(
            casebook,
            setup,
            constraints,
            bounds=bounds,
            progress=console.progress(),
            journal=journal,
            rank=session.meta.rank or 0,
            knobs=not options.no_knobs,
        )
        console.remark(f"试验日志：{journal}", f"journal of the trials: {journal}")
        return show_tuning(tuning, tuned, casebook.catalogue, options, console)


COMMAND = Command(
    "Tune what cann-profile profiled: the plan, or with --apply the closed loop on the simulated backend.",
    Options,
    run,
    (
        "cann-tune --profile report.json --target latency --apply",
        "cann-tune --profile report.json --target throughput --max-latency 100ms --apply --output tuned.prof",
        "cann-tune --profile report.json",
    ),
)
