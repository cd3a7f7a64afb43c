"""``kb plan``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.domain.plan import Plan
from kb.errors import ExitCode, UsageError
from kb.report.payload import plan_payload
from kb.report.plain import PlainRenderer
from kb.report.plan import plan_document
from kb.workflow.casebook import open_casebook
from kb.workflow.diagnose import diagnose_paths
from kb.workflow.plan import PlanWishes, configuration, plan_for, plan_saved, plan_text, read_priorities, saved_diagnosis
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Flag
from kb_cli.console import Console
from kb_cli.files import write_new
from kb_cli.limits import LimitOptions, check_family, constraints_of

SUFFIXES = (".md", ".json")


@dataclass(frozen=True, kw_only=True)
class PlanOptions(LimitOptions):
    """How the plan should look and where it goes."""

    priorities: Annotated[str, Flag("--priorities", "Only steps of these, as P0,P1; default all.", "LIST")] = ""
    toolchain: Annotated[tuple[str, ...], Flag("--toolchain", "Commands of this software only; may be repeated.", "NAME")] = ()
    steps: Annotated[int, Flag("--steps", "How many changes at most.", "N")] = 5
    output: Annotated[Path | None, Flag("--output", "Write the plan to this new file (.md or .json).", "FILE", short="-o")] = None
    config: Annotated[Path | None, Flag("--config", "Write the commands as files into this folder.", "FOLDER")] = None
    force: Annotated[bool, Flag("--force", "Overwrite files.")] = False


@dataclass(frozen=True, kw_only=True)
class Options(PlanOptions):
    """What to plan for."""

    sources: Annotated[tuple[Path, ...], Argument("Profile folders or files, or one saved diagnosis or report.", "PATH...")]


def run(options: Options, console: Console) -> int:
    """Diagnose, rank, order, write."""
    return planned(options.sources, options, console)


def planned(sources: tuple[Path, ...], options: PlanOptions, console: Console) -> int:
    """The plan of one saved diagnosis or of profiles, printed and written as ``options`` ask. Exit 5 when the limits cannot be met."""
    wishes = _wishes(options)
    saved = saved_diagnosis(sources[0]) if len(sources) == 1 else None
    diagnosed = diagnose_paths(sources) if saved is None else None
    with open_casebook(workspace(), console.progress()) as casebook:
        constraints = constraints_of(options, casebook.catalogue)
        if diagnosed is not None:
            check_family(constraints.soc_family, diagnosed)
            made = plan_for(casebook, diagnosed, constraints, wishes)
        elif saved is not None:
            made = plan_saved(casebook, saved, constraints, wishes)
    _write(made, options, console)
    if console.as_json:
        console.json(plan_payload(made))
    elif options.output is None:
        console.text(PlainRenderer().render(plan_document(made, console.lang)))
    return ExitCode.DONE if made.feasible else ExitCode.INFEASIBLE


def _wishes(options: PlanOptions) -> PlanWishes:
    if options.steps < 1:
        raise UsageError(f"--steps {options.steps}", allowed="1 or more")
    if options.output is not None and options.output.suffix.lower() not in SUFFIXES:
        raise UsageError(f"--output {options.output}", allowed=f"a file ending in {' or '.join(SUFFIXES)}")
    return PlanWishes(
        limit=options.steps, priorities=read_priorities(options.priorities), toolchains=options.toolchain, samples=options.samples
    )


def _write(made: Plan, options: PlanOptions, console: Console) -> None:
    if options.output is not None:
        write_new(options.output, plan_text(made, options.output.suffix.lower(), console.lang), force=options.force)
        console.remark(f"已写入 {options.output}", f"wrote {options.output}")
    if options.config is not None:
        files = configuration(made)
        for name, content in files:
            write_new(options.config / name, content, force=options.force)
        console.remark(f"已写入 {len(files)} 个文件到 {options.config}", f"wrote {len(files)} files to {options.config}")


COMMAND = Command(
    "Ordered changes with exact commands, expected figures, checks and roll-back.",
    Options,
    run,
    (
        "kb plan run.prof",
        "kb plan rank_0_ascend_pt --toolchain torch_npu --max-latency 100ms --output plan.md --config plan_files",
        "kb plan diagnosis.json --priorities P0,P1 --output plan.json",
    ),
)
