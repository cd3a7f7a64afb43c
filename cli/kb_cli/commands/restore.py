"""``kb restore``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.report.payload import plain
from kb.workflow.backup import restore_workspace
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """From where."""

    source: Annotated[Path, Argument("A file made by kb backup.", "FILE")]
    force: Annotated[bool, Flag("--force", "Replace the store that is there; it is kept beside.")] = False


def run(options: Options, console: Console) -> int:
    """Bring a backup back."""
    done = restore_workspace(workspace(), options.source, force=options.force)
    if console.as_json:
        console.json(plain(done))
        return ExitCode.DONE
    console.say(f"已恢复，采集 {done.sessions} 份", f"restored, {done.sessions} sessions")
    if done.replaced:
        console.say(f"原来的库保存在 {done.replaced}", f"the store that was there is kept as {done.replaced}")
    return ExitCode.DONE


COMMAND = Command(
    "Bring back what a backup holds, after checking all of it.", Options, run, ("kb restore casebook-2026-11-30.zip --force",)
)
