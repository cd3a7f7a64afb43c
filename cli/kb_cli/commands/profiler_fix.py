"""``profiler fix``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode, UsageError
from kb.profile.sources import load
from kb.report.payload import plain
from kb.report.plain import PlainRenderer
from kb.session.codec import to_bytes
from kb.tune.telling import commands_document, figures_payload, step_payload, steps_document
from kb.workflow.apply import planned, stepped
from kb.workflow.casebook import open_casebook
from kb.workflow.fix import steps_against
from kb.workflow.recent import capture_named
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Flag
from kb_cli.console import Console
from kb_cli.files import write_new
from kb_cli.limits import LimitOptions, constraints_of


@dataclass(frozen=True, kw_only=True)
class Options(LimitOptions):
    """A bottleneck, the capture that shows it, and whether to try the answer."""

    bottleneck: Annotated[str, Flag("--bottleneck", "The cause, by id or alias, as attention_unfused.", "CAUSE")]
    apply_strategy: Annotated[
        str, Flag("--apply_strategy", "true: apply on the simulated backend, each step verified.", choices=("true", "false"))
    ] = "false"
    session: Annotated[str | None, Flag("--session", "The capture; default the one used last.", "SESSION")] = None
    output: Annotated[Path | None, Flag("--output", "Keep the fixed run in this new .prof file.", "FILE.prof")] = None
    force: Annotated[bool, Flag("--force", "Overwrite the output file.")] = False


def run(options: Options, console: Console) -> int:
    """Try the answers in their order, each kept only while it helps; on a measured capture, or without
    ``--apply_strategy true``, print them."""
    place = workspace()
    taken = capture_named(options.session or "", place, Path.cwd())
    if taken.remark.en:
        console.remark(taken.remark.zh, taken.remark.en)
    sessions = load(taken.path)
    if len(sessions) != 1:
        raise UsageError(f"{taken.path} holds {len(sessions)} sessions", allowed="one", do="name one rank with --session")
    with open_casebook(place, console.progress()) as casebook:
        constraints = constraints_of(options, casebook.catalogue)
        names = steps_against(casebook, sessions[0], options.bottleneck, constraints)
        if options.apply_strategy == "false" or sessions[0].meta.origin != "simulated":
            steps = planned(casebook, sessions[0], names, constraints)
            following = f"kb apply {taken.path} {names[0] if names else ''} --after NEW_PROFILE".replace("  ", " ")
            if console.as_json:
                console.json({"origin": sessions[0].meta.origin, "steps": [plain(step) for step in steps.steps], "next": following})
            else:
                console.text(PlainRenderer().render(commands_document(steps, console.lang, following)))
            return ExitCode.DONE
        done = stepped(sessions[0], names, casebook.catalogue, constraints, console.progress())
    kept = [step.strategy for step in done.steps if step.status == "kept"]
    if options.output is not None and kept:
        write_new(options.output, to_bytes(done.end.session), force=options.force, keep=(taken.path,))
    if console.as_json:
        ends = {"before": figures_payload(done.begin.figures), "after": figures_payload(done.end.figures)}
        console.json({"origin": "simulated", "kept": kept, "steps": [step_payload(step) for step in done.steps], **ends})
    else:
        name = done.begin.session.meta.name
        document = steps_document(name, done.steps, done.begin.figures, done.end.figures, done.limits, console.lang)
        console.text(PlainRenderer().render(document))
    return ExitCode.DONE if kept else ExitCode.REGRESSION


COMMAND = Command(
    "The answer to one bottleneck: its commands, or with --apply_strategy true the change itself on the simulated backend.",
    Options,
    run,
    (
        'profiler fix --bottleneck "attention_unfused" --apply_strategy true',
        "profiler fix --bottleneck host_bound_launch --session rank_0_ascend_pt",
    ),
)
