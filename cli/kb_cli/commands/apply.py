"""``kb apply``"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from kb.domain.event import Event
from kb.domain.protocols import Store
from kb.domain.recommendation import Constraints
from kb.domain.text import Text
from kb.domain.version import Ref, parse_ref
from kb.errors import ExitCode, KbError, UsageError
from kb.profile.sources import load
from kb.report.comparison import comparison_document
from kb.report.document import Bullets, Document
from kb.report.payload import comparison_payload, plain
from kb.report.plain import PlainRenderer
from kb.session.codec import to_bytes
from kb.session.session import Session
from kb.tune.telling import commands_document, figures_payload, limits_payload, step_payload, steps_document
from kb.workflow.apply import OnMachine, Stepped, awaited, judged_on_machine, planned, stepped
from kb.workflow.casebook import Casebook, open_casebook
from kb.workflow.location import shipped_catalogue
from kb.workflow.recipe_use import advised, record_change, record_trial
from kb.workflow.workspace import workspace
from kb_cli.authorship import author
from kb_cli.command import Argument, Command, Flag
from kb_cli.console import Console
from kb_cli.files import write_new
from kb_cli.limits import LimitOptions, constraints_of


@dataclass(frozen=True, kw_only=True)
class Options(LimitOptions):
    """A session, strategies, and what must hold after each of them."""

    session: Annotated[Path, Argument("A simulated session (.prof), or a profile of your machine.", "SESSION")]
    strategies: Annotated[
        tuple[str, ...], Argument("Strategy ids in the order to try them; without any, the recommended ones.", "[STRATEGY...]")
    ] = ()
    recipe: Annotated[str, Flag("--recipe", "Try what this record reports to have worked, and record there how it went.", "RECORD")] = ""
    after: Annotated[Path | None, Flag("--after", "A profile taken after the change on your machine: judge it.", "PATH")] = None
    wait: Annotated[float, Flag("--wait", "Seconds to wait for the --after profile to come.", "SECONDS", least=0, most=604800)] = 0.0
    output: Annotated[Path | None, Flag("--output", "Keep the last kept run in this new .prof file.", "FILE.prof")] = None
    force: Annotated[bool, Flag("--force", "Overwrite the output file.")] = False


def run(options: Options, console: Console) -> int:
    """On the simulator: run, profile again, compare, step by step. On a machine: the commands, then the verdict."""
    sessions = load(options.session)
    if options.recipe:
        options = _advised(options, console)
    if options.after is not None:
        return _judge(options, sessions, options.after, console)
    if len(sessions) != 1:
        raise UsageError(f"{options.session} holds {len(sessions)} sessions", allowed="one", do="name one rank")
    catalogue = shipped_catalogue()
    constraints = constraints_of(options, catalogue)
    named = tuple(catalogue.strategy(name).id for name in options.strategies)
    if sessions[0].meta.origin == "simulated" and named:
        return show_steps(stepped(sessions[0], named, catalogue, constraints, console.progress()), options, console)
    with open_casebook(workspace(), console.progress()) as casebook:
        if sessions[0].meta.origin != "simulated":
            return _tell(options, casebook, sessions[0], named, constraints, console)
        steps = planned(casebook, sessions[0], named, constraints)
        done = stepped(sessions[0], [step.strategy for step in steps.steps], catalogue, constraints, console.progress())
    return show_steps(done, options, console)


def _advised(options: Options, console: Console) -> Options:
    """The options with the recipe's strategies, unless the user named some, and its exact version."""
    with open_casebook(workspace(), console.progress()) as casebook:
        version = casebook.store.get(parse_ref(options.recipe))
    return replace(options, recipe=str(version.ref), strategies=options.strategies or advised(version))


def _say_recorded(options: Options, record: Callable[[Store, Ref], Event | None], console: Console) -> None:
    """Record how the recipe went, for the ranking to learn from."""
    with open_casebook(workspace(), console.progress(), writable=True) as casebook:
        event = record(casebook.store, parse_ref(options.recipe))
    if event is not None:
        result = event.detail["result"]
        console.remark(f"已在 {options.recipe} 记录结果：{result}", f"recorded at {options.recipe}: {result}")


def show_steps(done: Stepped, options: Options, console: Console) -> int:
    """Print what became of each step, keep the last kept run."""
    raise_only_reason(done)
    if options.recipe:
        _say_recorded(options, lambda store, ref: record_trial(store, ref, done, author=author(None)), console)
    kept = [step.strategy for step in done.steps if step.status == "kept"]
    if options.output is not None and kept:
        write_new(options.output, to_bytes(done.end.session), force=options.force, keep=(options.session,))
        console.remark(f"已写入 {options.output}", f"wrote {options.output}")
    elif options.output is not None:
        console.remark("没有采用任何步骤，不写文件", "no step was kept, nothing written")
    if console.as_json:
        console.json(_stepped_payload(done, kept))
    else:
        console.text(PlainRenderer().render(_stepped_document(done, console)))
    regressed = any(step.comparison is not None and step.comparison.verdict == "regressed" for step in done.steps)
    return ExitCode.REGRESSION if regressed and not kept else ExitCode.DONE


def raise_only_reason(done: Stepped) -> None:
    """One step that could not run is an error of the call, with its reason."""
    if len(done.steps) == 1 and done.steps[0].comparison is None:
        step = done.steps[0]
        commands = "; ".join(command.text for command in step.commands)
        do = f"run these commands on your machine: {commands}; then profile again and compare" if commands else "try another strategy"
        raise KbError(f"{step.strategy} was not applied: {step.reasons[0].en}", do=do)


def _stepped_document(done: Stepped, console: Console) -> Document:
    name = done.begin.session.meta.name
    blocks = steps_document(name, done.steps, done.begin.figures, done.end.figures, done.limits, console.lang).blocks
    compared = [step.comparison for step in done.steps if step.comparison is not None]
    if len(done.steps) == 1 and compared:
        blocks = (*blocks, *comparison_document(compared[0], console.lang).blocks)
    return Document(blocks, lang=console.lang)


def _stepped_payload(done: Stepped, kept: list[str]) -> dict[str, Any]:
    compared = [step for step in done.steps if step.comparison is not None]
    first = compared[0] if compared else None
    return {
        "strategy": done.steps[0].strategy if done.steps else "",
        "comparison": comparison_payload(first.comparison) if first is not None and first.comparison is not None else None,
        "origin": "simulated",
        "kept": kept,
        "steps": [step_payload(step) for step in done.steps],
        "before": figures_payload(done.begin.figures),
        "after": figures_payload(done.end.figures),
        "limits": limits_payload(done.limits),
    }


def _tell(
    options: Options, casebook: Casebook, session: Session, named: tuple[str, ...], constraints: Constraints, console: Console
) -> int:
    """The commands for the user's machine, and how to come back."""
    steps = planned(casebook, session, named, constraints)
    if not steps.steps:
        console.say("没有可推荐的步骤", "nothing to recommend")
        return ExitCode.DONE
    back = ["kb", "apply", str(options.session), steps.steps[0].strategy, "--after", "NEW_PROFILE", "--wait", "3600"]
    following = shlex.join(back)
    if console.as_json:
        console.json({"origin": "measured", "steps": [plain(step) for step in steps.steps], "next": following})
    else:
        console.text(PlainRenderer().render(commands_document(steps, console.lang, following)))
    return ExitCode.DONE


def _judge(options: Options, sessions: tuple[Session, ...], after: Path, console: Console) -> int:
    catalogue = shipped_catalogue()
    constraints = constraints_of(options, catalogue)
    if len(options.strategies) > 1:
        raise UsageError("several strategies at once cannot be told apart", allowed="one a profile", do="judge each change by itself")
    after = awaited(after, options.wait) if options.wait else after
    strategy = options.strategies[0] if options.strategies else None
    done = judged_on_machine(sessions, after, strategy, catalogue, constraints)
    if options.recipe:
        _say_recorded(options, lambda store, ref: record_change(store, ref, done, author=author(None)), console)
    if console.as_json:
        console.json(_machine_payload(done))
    else:
        lines = [reason.pick(console.lang) for reason in done.reasons] if done.keep is not None else []
        lines += [done.roll_back.pick(console.lang)] if done.roll_back.pick(console.lang) else []
        if done.keep:
            lines.append(Text(f"下一步：kb apply {after}", f"next step: kb apply {after}").pick(console.lang))
        blocks = comparison_document(done.comparison, console.lang).blocks
        console.text(PlainRenderer().render(Document((*blocks, Bullets(tuple(lines))), lang=console.lang)))
    return ExitCode.REGRESSION if done.keep is False else ExitCode.DONE


def _machine_payload(done: OnMachine) -> dict[str, Any]:
    return {
        "strategy": done.strategy,
        "keep": done.keep,
        "reasons": [plain(reason) for reason in done.reasons],
        "roll_back": plain(done.roll_back),
        "comparison": comparison_payload(done.comparison),
    }


COMMAND = Command(
    "Try strategies on the simulator, each verified before the next; for a real machine, print commands and judge the new profile.",
    Options,
    run,
    (
        "kb apply sd3.prof use_fused_attention --output sd3_fused.prof",
        "kb apply sd3.prof use_fused_attention increase_stream_depth fuse_operators --max-memory 8GB",
        "kb apply sd3.prof --max-latency 900ms --max-precision-loss 0.1%",
        "kb apply sd3.prof --recipe sd3-attention-unfused",
        "kb apply rank_0_ascend_pt enable_task_queue",
        "kb apply rank_0_ascend_pt enable_task_queue --after new_run/rank_0_ascend_pt --wait 3600",
    ),
)
