"""``kb aoe tune``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode, UsageError
from kb.tune.space import parse_space
from kb.workflow.casebook import open_casebook
from kb.workflow.simulate import DEFAULT_SOC, options_from
from kb.workflow.subject import named_or_last, subject
from kb.workflow.toolchain import texts
from kb.workflow.tune import default_journal, tune_setup
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Flag
from kb_cli.console import Console
from kb_cli.limits import constraints_of
from kb_cli.running import Running, bounds_of, prepared_journal, show_tuning


@dataclass(frozen=True, kw_only=True)
class Options(Running):
    """A model and the space to search."""

    rest: Annotated[tuple[str, ...], Argument("Literally ..., as the articles abbreviate: the model used last.", "[...]")] = ()
    model: Annotated[str, Flag("--model", "A model file (.onnx, .om, .json) or a built-in name; default the one used last.", "MODEL")] = ""
    search_space: Annotated[
        str | None, Flag("--search_space", 'As "tile_size: [128,160,192,224]"; several split by ";". Default: the usual knobs.', "SPACE")
    ] = None
    enable_profiler_feedback: Annotated[
        str,
        Flag(
            "--enable_profiler_feedback", "true: profile every step, try strategies for each new bottleneck too.", choices=("true", "false")
        ),
    ] = "false"
    soc_version: Annotated[str, Flag("--soc_version", "Chip: a name, CORESxMHZ, or a JSON file of your own.", "SOC")] = DEFAULT_SOC
    seed: Annotated[int, Flag("--seed", "Seed of the noise and of the search.", "N", least=0)] = 1
    batch: Annotated[int, Flag("--batch", "Batch size of a built-in model.", "N")] = 1
    set: Annotated[tuple[str, ...], Flag("--set", "Any other option of the simulator; may be given often.", "NAME=VALUE")] = ()


def run(options: Options, console: Console) -> int:
    """Search the space; what the chip cannot hold is cut with the reason."""
    bounds = bounds_of(options)
    space = parse_space(options.search_space) if options.search_space else None
    strategies = options.enable_profiler_feedback == "true"
    if options.no_knobs and not strategies:
        raise UsageError("--no-knobs leaves nothing to search", do="add --enable_profiler_feedback true, or leave --no-knobs out")
    place = workspace()
    named = named_or_last(options.model, options.rest, place)
    model = named.model
    if named.remark.en:
        console.remark(named.remark.zh, named.remark.en)
    console.remark(f"[仿真] {texts().banner.zh}", f"[simulated] {texts().banner.en}")
    with open_casebook(place, console.progress()) as casebook:
        own = options_from(options.set, {"batch": options.batch})
        found = subject(model, casebook.catalogue, soc=options.soc_version, seed=options.seed, options=own)
        if found.remark.en:
            console.remark(found.remark.zh, found.remark.en)
        constraints = constraints_of(options, casebook.catalogue)
        journal = prepared_journal(options.journal or default_journal(place, found.setup, constraints), options)
        tuning, session = tune_setup(
            casebook,
            found.setup,
            constraints,
            bounds=bounds,
            progress=console.progress(),
            journal=journal,
            space=space,
            knobs=not options.no_knobs,
            strategies=strategies,
        )
        status = show_tuning(tuning, session, casebook.catalogue, options, console)
    command = texts().tune.format(model=f"{Path(model).stem}.onnx", framework=5, output=Path(model).stem)
    console.remark(f"真实工具：{command}", f"the real tool: {command}")
    return status if status else ExitCode.DONE


COMMAND = Command(
    "SIMULATED search over kernel and run settings; no device is involved.",
    Options,
    run,
    (
        'kb aoe tune --model sd3_converted.om --search_space "tile_size: [128,160,192,224]"',
        'kb aoe tune --model bert-large --search_space "stream_depth: [2,4,8]" --enable_profiler_feedback true',
    ),
)
