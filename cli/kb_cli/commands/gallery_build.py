"""``kb gallery build``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.workflow.casebook import open_casebook
from kb.workflow.gallery_site import build_site
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Flag
from kb_cli.console import Console
from kb_cli.gallery_selection import AUDIENCES, Selection


@dataclass(frozen=True, kw_only=True)
class Options(Selection):
    """Where to, and for whom."""

    folder: Annotated[Path, Argument("A new or empty folder, or that of an earlier gallery.", "DIR")]
    visibility: Annotated[str, Flag("--visibility", "For whom: nothing less visible is shown.", choices=AUDIENCES)] = "public"


def run(options: Options, console: Console) -> int:
    """Write the site."""
    folder = options.folder
    with open_casebook(workspace(), console.progress()) as casebook:
        built = build_site(casebook, folder, options.wanted("", options.visibility, casebook.catalogue), console.progress())
    if console.as_json:
        console.json({"folder": str(folder), "records": built.records, "pages": built.pages, "size_bytes": built.size_bytes})
    else:
        console.say(
            f"已写入 {folder}：{built.records} 条记录，{built.pages} 页", f"wrote {folder}: {built.records} records, {built.pages} pages"
        )
    return ExitCode.DONE


COMMAND = Command(
    "Build a static, offline-searchable site of public records in both languages.",
    Options,
    run,
    ("kb gallery build site", "kb gallery build team-site --visibility team --sort verification"),
)
