"""Bounds, journal and output of commands that tune, and how their result is shown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.domain.catalogue import Catalogue
from kb.errors import ExitCode
from kb.report.plain import PlainRenderer
from kb.session.codec import to_bytes
from kb.session.session import Session
from kb.tune.loop import Tuning
from kb.tune.telling import tuning_document, tuning_payload
from kb.tune.trials import Bounds
from kb_cli.command import Flag
from kb_cli.console import Console
from kb_cli.files import write_new
from kb_cli.limits import LimitOptions


@dataclass(frozen=True, kw_only=True)
class Running(LimitOptions):
    """How long, where it is written down, what is kept."""

    trials: Annotated[int, Flag("--trials", "Most trials in all.", "N", least=1)] = 80
    max_time: Annotated[float, Flag("--max-time", "Most seconds of this call.", "SECONDS", least=0.001)] = 300.0
    knob_trials: Annotated[int, Flag("--knob-trials", "Most trials of one numeric search.", "N", least=1)] = 24
    devices: Annotated[int, Flag("--devices", "Devices there are; default those the job uses.", "N", least=1)] = 1
    no_knobs: Annotated[bool, Flag("--no-knobs", "Strategies only, no numeric search.")] = False
    journal: Annotated[
        Path | None, Flag("--journal", "Where finished trials are kept; the same call goes on from there.", "FILE.jsonl")
    ] = None
    fresh: Annotated[bool, Flag("--fresh", "Forget an earlier journal of the same run.")] = False
    output: Annotated[Path | None, Flag("--output", "Keep the tuned run in this new .prof file.", "FILE.prof")] = None
    force: Annotated[bool, Flag("--force", "Overwrite the output file.")] = False


def bounds_of(options: Running) -> Bounds:
    """The bounds as a value."""
    return Bounds(trials=options.trials, seconds=options.max_time, knob_trials=options.knob_trials, devices=options.devices)


def prepared_journal(path: Path, options: Running) -> Path:
    """The journal to use; with ``--fresh`` an earlier one is gone."""
    if options.fresh:
        path.unlink(missing_ok=True)
    return path


def show_tuning(tuning: Tuning, session: Session, catalogue: Catalogue, options: Running, console: Console) -> int:
    """Print a run, keep its session; exit status 5 when a limit is missed."""
    if options.output is not None:
        write_new(options.output, to_bytes(session), force=options.force)
        console.remark(f"已写入 {options.output}（仿真）", f"wrote {options.output} (simulated)")
    if console.as_json:
        console.json(tuning_payload(tuning))
    else:
        console.text(PlainRenderer().render(tuning_document(session.meta.name, tuning, catalogue, console.lang)))
    return ExitCode.DONE if tuning.met else ExitCode.INFEASIBLE
