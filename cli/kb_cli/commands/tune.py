"""``kb tune``"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from kb.errors import UsageError
from kb.profile.simulated.model_files import SUFFIXES
from kb.profile.simulated.models.names import MODELS
from kb.profile.simulated.setup import Setup
from kb.profile.sources import load
from kb.tune.space import parse_space
from kb.workflow.casebook import Casebook, open_casebook
from kb.workflow.simulate import DEFAULT_SOC, options_from
from kb.workflow.subject import subject
from kb.workflow.tune import default_journal, setup_in, tune_setup
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Flag
from kb_cli.console import Console
from kb_cli.limits import constraints_of
from kb_cli.running import Running, bounds_of, prepared_journal, show_tuning


@dataclass(frozen=True, kw_only=True)
class Options(Running):
    """What to tune, under which limits and bounds; ``--soc`` is the chip of a model."""

    subject: Annotated[str, Argument("A simulated session (.prof), or a model: a built-in name or a model file.", "SESSION|MODEL")]
    seed: Annotated[int, Flag("--seed", "Seed of the noise and of the numeric search, for a model.", "N", least=0)] = 1
    batch: Annotated[int, Flag("--batch", "Batch size, for a model.", "N")] = 1
    set: Annotated[tuple[str, ...], Flag("--set", "Any other option of the simulator, for a model; may be given often.", "NAME=VALUE")] = ()
    space: Annotated[str | None, Flag("--space", 'Numeric search space, as "tile_size: [128,192]; stream_depth: [2,4]".', "SPACE")] = None


def run(options: Options, console: Console) -> int:
    """Profile, recommend, apply, compare, next bottleneck."""
    bounds = bounds_of(options)
    space = parse_space(options.space) if options.space else None
    place = workspace()
    with open_casebook(place, console.progress()) as casebook:
        constraints = constraints_of(replace(options, soc=None), casebook.catalogue)
        setup, rank = _setup(options, casebook, console)
        journal = prepared_journal(options.journal or default_journal(place, setup, constraints), options)
        try:
            tuning, session = tune_setup(
                casebook,
                setup,
                constraints,
                bounds=bounds,
                progress=console.progress(),
                journal=journal,
                rank=rank,
                space=space,
                knobs=not options.no_knobs,
            )
        except KeyboardInterrupt:
            console.remark(
                f"已完成的试验在 {journal}；再次运行同一命令即可继续", f"finished trials are in {journal}; the same call goes on from there"
            )
            raise
        console.remark(f"试验日志：{journal}", f"journal of the trials: {journal}")
        return show_tuning(tuning, session, casebook.catalogue, options, console)


def _setup(options: Options, casebook: Casebook, console: Console) -> tuple[Setup, int]:
    path = Path(options.subject)
    if path.exists() and path.suffix not in SUFFIXES and options.subject not in MODELS:
        sessions = load(path)
        if len(sessions) != 1:
            raise UsageError(f"{path} holds {len(sessions)} sessions", allowed="one", do="name one rank")
        return setup_in(sessions[0], casebook), sessions[0].meta.rank or 0
    own = options_from(options.set, {"batch": options.batch})
    found = subject(options.subject, casebook.catalogue, soc=options.soc or DEFAULT_SOC, seed=options.seed, options=own)
    if found.remark.en:
        console.remark(found.remark.zh, found.remark.en)
    return found.setup, 0


COMMAND = Command(
    "Tune a model on the simulated backend in a closed loop, until its limits hold or nothing credible is left.",
    Options,
    run,
    (
        "kb tune bert-large --batch 8 --max-latency 100ms --max-memory 2.5GB --min-throughput 150/s",
        "kb tune sd3.prof --target latency --max-precision-loss 0.5% --output sd3_tuned.prof",
        "kb tune resnet50-train --set data_parallel=8 --devices 8 --target throughput --max-time 60",
        'kb tune bert-base --space "tile_size: [128,160,192,224]; stream_depth: [2,4,8]"',
    ),
)
