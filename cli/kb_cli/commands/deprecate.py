"""``kb deprecate``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kb.domain.version import parse_ref
from kb.errors import ExitCode
from kb.report.payload import plain
from kb.workflow.casebook import open_casebook
from kb.workflow.events import REASONS, deprecate
from kb.workflow.workspace import workspace
from kb_cli.authorship import author
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which version, and why."""

    ref: Annotated[str, Argument("SLUG (newest), SLUG@N, or ORIGIN:SLUG@N.", "RECORD")]
    reason: Annotated[str, Flag("--reason", "Why.", choices=REASONS)]
    note: Annotated[str, Flag("--note", "In your own words.")] = ""
    replacement: Annotated[str | None, Flag("--replacement", "What to use instead.", "RECORD")] = None
    author: Annotated[str | None, Flag("--author", "Who says so; default KB_AUTHOR, else anonymous.", "NAME")] = None


def run(options: Options, console: Console) -> int:
    """Mark a version as one that is on its way out."""
    reason = next(known for known in REASONS if known == options.reason)
    with open_casebook(workspace(), console.progress(), writable=True) as casebook:
        version = casebook.store.get(parse_ref(options.ref))
        replacement = parse_ref(options.replacement) if options.replacement else None
        event = deprecate(
            casebook.store, version.ref, author=author(options.author), reason=reason, note=options.note, replacement=replacement
        )
    if console.as_json:
        console.json({"ref": str(version.ref), "event": plain(event)})
    else:
        console.say(f"已标记弃用 {version.ref}；仍可搜索，读取时会警告", f"deprecated {version.ref}: still found, reading it warns")
    return ExitCode.DONE


COMMAND = Command(
    "Warn about a version that stays visible; `kb yank --undo` lifts it.",
    Options,
    run,
    ("kb deprecate my-model-attention@1 --reason superseded --replacement my-model-attention@2",),
)
