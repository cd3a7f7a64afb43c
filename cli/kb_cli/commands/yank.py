"""``kb yank``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kb.domain.version import parse_ref
from kb.errors import ExitCode, UsageError
from kb.report.payload import plain
from kb.workflow.casebook import open_casebook
from kb.workflow.events import REASONS, unyank, yank
from kb.workflow.workspace import workspace
from kb_cli.authorship import author
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which version, and why."""

    ref: Annotated[str, Argument("SLUG@N, or ORIGIN:SLUG@N.", "RECORD")]
    reason: Annotated[str, Flag("--reason", "Why; required unless --undo.", choices=REASONS)] = ""
    note: Annotated[str, Flag("--note", "In your own words.")] = ""
    replacement: Annotated[str | None, Flag("--replacement", "What to use instead.", "RECORD")] = None
    undo: Annotated[bool, Flag("--undo", "Show a withdrawn or deprecated version again.")] = False
    author: Annotated[str | None, Flag("--author", "Who says so; default KB_AUTHOR, else anonymous.", "NAME")] = None


def run(options: Options, console: Console) -> int:
    """Withdraw a version, or lift that."""
    ref = parse_ref(options.ref)
    reason = next((known for known in REASONS if known == options.reason), None)
    if options.undo == (reason is not None):
        raise UsageError("give either --reason or --undo", allowed=f"--reason {' | '.join(REASONS)}, or --undo")
    with open_casebook(workspace(), console.progress(), writable=True) as casebook:
        version = casebook.store.get(ref)
        if reason is None:
            event = unyank(casebook.store, version.ref, author=author(options.author), note=options.note)
        else:
            replacement = parse_ref(options.replacement) if options.replacement else None
            event = yank(
                casebook.store, version.ref, author=author(options.author), reason=reason, note=options.note, replacement=replacement
            )
    if console.as_json:
        console.json({"ref": str(version.ref), "event": plain(event)})
    elif reason is None:
        console.say(f"{version.ref} 恢复可见", f"{version.ref} is visible again")
    else:
        console.say(
            f"已撤回 {version.ref}：搜索与列表不再显示，指定版本号仍可读取",
            f"withdrew {version.ref}: hidden from search and lists, still served to an exact pin",
        )
    return ExitCode.DONE


COMMAND = Command(
    "Withdraw a version: hidden from search, still served to an exact pin with a warning.",
    Options,
    run,
    ("kb yank my-model-attention@2 --reason wrong --replacement my-model-attention@3", "kb yank my-model-attention@2 --undo"),
)
