"""``kb show``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kb.domain.version import parse_ref
from kb.errors import ExitCode
from kb.report.payload import version_payload
from kb.report.plain import PlainRenderer
from kb.report.records import version_document
from kb.workflow.casebook import open_casebook
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which record."""

    ref: Annotated[str, Argument("SLUG (newest), SLUG@N, or ORIGIN:SLUG@N.", "RECORD")]


def run(options: Options, console: Console) -> int:
    """Print one version."""
    with open_casebook(workspace(), console.progress()) as casebook:
        version = casebook.store.get(parse_ref(options.ref))
        document = version_document(version, casebook.catalogue, console.lang)
    if console.as_json:
        console.json(version_payload(version))
    else:
        console.text(PlainRenderer().render(document))
    return ExitCode.DONE


COMMAND = Command(
    "Show one record, a pinned version stays the same for ever.",
    Options,
    run,
    ("kb show sd3-attention-unfused", "kb show sd3-attention-unfused@1"),
)
