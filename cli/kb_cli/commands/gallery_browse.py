"""``kb gallery browse``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec.structs import replace

from kb.errors import ExitCode
from kb.report.payload import plain
from kb.report.plain import PlainRenderer
from kb.report.records import gallery_document
from kb.workflow.casebook import open_casebook
from kb.workflow.gallery import gallery, ladder, scored
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Flag
from kb_cli.console import Console
from kb_cli.gallery_selection import AUDIENCES, Selection


@dataclass(frozen=True, kw_only=True)
class Options(Selection):
    """Also how many."""

    words: Annotated[tuple[str, ...], Argument("Words that must all occur; none = everything.", "WORD...")] = ()
    visibility: Annotated[str, Flag("--visibility", "For whom: nothing less visible is shown.", choices=AUDIENCES)] = "private"
    limit: Annotated[int, Flag("--limit", "At most this many.", "N", least=1)] = 30


def run(options: Options, console: Console) -> int:
    """Print the records that fit."""
    with open_casebook(workspace(), console.progress()) as casebook:
        wanted = options.wanted(" ".join(options.words), options.visibility, casebook.catalogue)
        found = gallery(casebook.store, wanted, scored(casebook))
    page = replace(found, entries=found.entries[: options.limit])
    if console.as_json:
        console.json({**plain(page), "contributors": [plain(person) for person in ladder(found.entries)]})
        return ExitCode.DONE
    console.text(PlainRenderer().render(gallery_document(page, console.lang)))
    console.remark(f"显示 {len(page.entries)} / {page.total} 条", f"{len(page.entries)} of {page.total} records shown")
    return ExitCode.DONE


COMMAND = Command(
    "Browse records by use, verification or impact.",
    Options,
    run,
    ("kb gallery browse", "kb gallery browse attention --sort verification", "kb gallery browse --cause unfused_attention --soc A2"),
)
