"""``kb diff``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.domain.record import Record
from kb.domain.version import parse_ref
from kb.errors import ExitCode
from kb.report.payload import plain
from kb.workflow.casebook import Casebook, open_casebook
from kb.workflow.diff import Change, diff_records
from kb.workflow.draft import draft_from_file, is_record_file
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common
from kb_cli.console import Console

_MARKS = {"added": "+", "removed": "-", "changed": "~", "respelled": "=", "moved": ">"}


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """What to compare with what."""

    before: Annotated[str, Argument("SLUG, SLUG@N, or a record file.", "A")]
    after: Annotated[str, Argument("SLUG, SLUG@N, or a record file.", "B")]


def run(options: Options, console: Console) -> int:
    """Print what changed, by field and item."""
    with open_casebook(workspace(), console.progress()) as casebook:
        before, after = (_record(casebook, text) for text in (options.before, options.after))
    changes = diff_records(before, after)
    if console.as_json:
        console.json({"a": options.before, "b": options.after, "equal": not changes, "changes": [plain(item) for item in changes]})
        return ExitCode.DONE
    if not changes:
        console.say("没有差异", "no differences")
    for change in changes:
        _print(change, console)
    return ExitCode.DONE


def _record(casebook: Casebook, text: str) -> Record:
    path = Path(text)
    return draft_from_file(path) if is_record_file(path) else casebook.store.get(parse_ref(text)).record


def _print(change: Change, console: Console) -> None:
    head = f"{_MARKS[change.kind]} {change.path}"
    if change.lines:
        console.line(f"{head}:")
        for line in change.lines:
            console.line(f"    {line}")
        return
    sides = [side for side in (change.before, change.after) if side]
    console.line(f"{head}: {' -> '.join(sides)}")


COMMAND = Command(
    "What changed between two records: by field, list item and unit, prose as text.",
    Options,
    run,
    ("kb diff sd3-attention-unfused@1 sd3-attention-unfused", "kb diff my-model-attention@2 edited.md --json"),
)
