"""``profiler publish``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec.structs import replace

from kb.workflow.casebook import open_casebook
from kb.workflow.key_findings import split_names
from kb.workflow.named import record_in
from kb.workflow.nearness import near_records
from kb.workflow.publish import publish
from kb.workflow.workspace import workspace
from kb_cli.authorship import author
from kb_cli.command import Command, Common, Flag
from kb_cli.commands.publish import VISIBILITIES, announce, preview, visibility, warn_of_near
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which report, and who may see the record."""

    report: Annotated[Path, Flag("--report", "A report file of ours (PDF, HTML, JSON).", "FILE")]
    tags: Annotated[str, Flag("--tags", "Tags, separated by commas.", "LIST")] = ""
    visibility: Annotated[str, Flag("--visibility", "Who may see it.", choices=VISIBILITIES)] = "private"
    slug: Annotated[str, Flag("--slug", "Publish under this name, for example as a new version of a near record.", "SLUG")] = ""
    author: Annotated[str | None, Flag("--author", "Author; default KB_AUTHOR, else anonymous.", "NAME")] = None
    preview: Annotated[bool, Flag("--preview", "Show the record and what is near to it; publish nothing.")] = False


def run(options: Options, console: Console) -> int:
    """Publish the record the report carries."""
    drafted = record_in(options.report)
    record = replace(drafted, slug=options.slug or drafted.slug, tags=tuple(dict.fromkeys((*drafted.tags, *split_names(options.tags)))))
    with open_casebook(workspace(), console.progress(), writable=not options.preview) as casebook:
        if options.preview:
            return preview(casebook, record, options.report.name, console)
        warn_of_near(near_records(casebook, record), console)
        published = publish(casebook, record, author=author(options.author), visibility=visibility(options.visibility))
    return announce(published, console)


COMMAND = Command(
    "Publish the diagnosis in a report file as a versioned record.",
    Options,
    run,
    ('profiler publish --report sd3_diagnosis_report.pdf --tags "sd3,aigc,bottleneck" --visibility public',),
)
