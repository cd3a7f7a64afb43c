"""``kb backup``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.report.payload import plain
from kb.workflow.backup import back_up_workspace
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Where to."""

    target: Annotated[Path, Argument("A new .zip file.", "FILE")]


def run(options: Options, console: Console) -> int:
    """Copy the workspace's store and sessions while they are in use."""
    done = back_up_workspace(workspace(), options.target.absolute(), console.progress())
    if console.as_json:
        console.json(plain(done))
    else:
        console.say(
            f"已备份到 {done.path}：{done.size_b / 1e6:.1f} MB，采集 {done.sessions} 份，已核对",
            f"backed up to {done.path}: {done.size_b / 1e6:.1f} MB, {done.sessions} sessions, checked",
        )
    return ExitCode.DONE


COMMAND = Command("A checked copy of the workspace, taken while it is in use.", Options, run, ("kb backup casebook-2026-11-30.zip",))
