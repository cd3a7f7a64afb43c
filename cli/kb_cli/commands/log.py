"""``kb log``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kb.errors import ExitCode
from kb.report.payload import plain
from kb.report.plain import PlainRenderer
from kb.report.records import history_document
from kb.workflow.casebook import open_casebook
from kb.workflow.records import history
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which record."""

    slug: Annotated[str, Argument("The record's slug.", "SLUG")]


def run(options: Options, console: Console) -> int:
    """Print versions and events."""
    with open_casebook(workspace(), console.progress()) as casebook:
        versions, events = history(casebook.store, options.slug)
    if console.as_json:
        rows = [
            {"ref": str(item.ref), "version": item.n, "origin": item.origin, "sha256": item.sha256, "author": item.author,
             "created_ns": item.created_ns, "parent": item.parent, "provenance": item.record.provenance} for item in versions
        ]  # fmt: skip
        console.json({"versions": rows, "events": [plain(event) for event in events]})
    else:
        console.text(PlainRenderer().render(history_document(versions, events, console.lang)))
    return ExitCode.DONE


COMMAND = Command("Versions of a record and what was said about them.", Options, run, ("kb log sd3-attention-unfused",))
