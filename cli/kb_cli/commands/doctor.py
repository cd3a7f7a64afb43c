"""``kb doctor``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kb.errors import ExitCode
from kb.report.payload import plain
from kb.workflow.doctor import examine
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Whether to repair."""

    repair: Annotated[bool, Flag("--repair", "Rebuild caches that are wrong; what is published is never touched.")] = False


def run(options: Options, console: Console) -> int:
    """Check the installation and the workspace."""
    checks = examine(workspace(), console.progress(), repair=options.repair)
    healthy = all(check.ok for check in checks)
    if options.as_json:
        console.json({"ok": healthy, "checks": [plain(check) for check in checks]})
    else:
        for check in checks:
            mark = "FIXED" if check.repaired else "ok" if check.ok else "BAD"
            console.line(f"{mark:5} {check.name}: {check.detail.pick(console.lang)}")
    return ExitCode.DONE if healthy else ExitCode.CANNOT


COMMAND = Command("Check the installation and the workspace.", Options, run, ("kb doctor", "kb doctor --json", "kb doctor --repair"))
