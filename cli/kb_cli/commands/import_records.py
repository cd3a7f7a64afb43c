"""``kb import``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.report.payload import plain
from kb.workflow.archive import open_source
from kb.workflow.casebook import open_casebook
from kb.workflow.merge import Imported, import_from
from kb.workflow.transfer import MOVABLE
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console

_CONFLICTS = ("skip", "append")


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """From where, and what to do where both sides went on."""

    source: Annotated[Path, Argument("A folder or .zip file made by kb export.", "SOURCE")]
    origin: Annotated[str, Flag("--as", "File everything under this origin; default as exported.", choices=MOVABLE)] = ""
    on_conflict: Annotated[
        str, Flag("--on-conflict", "Leave a diverged record out, or publish its versions on top.", choices=_CONFLICTS)
    ] = "skip"


def run(options: Options, console: Console) -> int:
    """Merge; status 1 when something was left out."""
    origin = next((known for known in MOVABLE if known == options.origin), None)
    source = open_source(options.source)
    try:
        with open_casebook(workspace(), console.progress(), writable=True) as casebook:
            done = import_from(
                casebook, source, console.progress(), origin=origin, on_conflict="append" if options.on_conflict == "append" else "skip"
            )
    finally:
        source.close()
    if console.as_json:
        console.json(plain(done))
    else:
        _print(done, console)
    left_out = bool(done.refused or (done.conflicts and options.on_conflict == "skip"))
    return ExitCode.CANNOT if left_out else ExitCode.DONE


def _print(done: Imported, console: Console) -> None:
    console.say(
        f"{done.records} 条记录：新版本 {done.versions}，已有 {done.unchanged}，事件 {done.events}，采集 {done.sessions}",
        f"{done.records} records: {done.versions} new versions, {done.unchanged} known, {done.events} events, {done.sessions} sessions",
    )
    for text in (*done.conflicts, *done.refused):
        console.remark(text.zh, text.en)


COMMAND = Command(
    "Merge exported records, by hash and name.", Options, run, ("kb import ./casebook", "kb import team.zip --as team --on-conflict append")
)
