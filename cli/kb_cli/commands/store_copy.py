"""``kb store copy``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kb.errors import ExitCode
from kb.report.payload import plain
from kb.workflow.storecopy import copy_store
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """From where to where."""

    source: Annotated[str, Argument("A store: a file, a workspace folder, sqlite:///PATH or postgresql://USER@HOST/DATABASE.", "SRC")]
    target: Annotated[str, Argument("The store to copy into; a file is made when absent.", "DST")]


def run(options: Options, console: Console) -> int:
    """Copy what the source shows this user, and check it by its hashes."""
    done = copy_store(options.source, options.target, workspace().home, console.progress())
    if console.as_json:
        console.json(plain(done))
    else:
        console.say(
            f"复制了 {done.versions} 个版本（{done.unchanged} 个已存在）、{done.events} 条事件、{done.sessions} 份采集；"
            f"按哈希核对 {done.checked} 个版本",
            f"copied {done.versions} versions ({done.unchanged} were there), {done.events} events, {done.sessions} sessions; "
            f"{done.checked} versions checked by their hashes",
        )
        for conflict in done.conflicts:
            console.remark(conflict.zh, conflict.en)
    return ExitCode.CANNOT if done.conflicts else ExitCode.DONE


COMMAND = Command(
    "Copy the records, events and sessions of one store into another, either way between a file and a server; safe to resume.",
    Options,
    run,
    ("kb store copy casebook.db postgresql://ann@db.example/casebook", "kb store copy postgresql://ann@db.example/casebook copy.db"),
)
