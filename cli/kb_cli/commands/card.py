"""``kb card``"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

from msgspec.structs import replace

from kb.domain.version import parse_ref
from kb.errors import ExitCode
from kb.report.payload import version_payload
from kb.report.plain import PlainRenderer
from kb.report.records import version_document
from kb.workflow.card import card_of
from kb.workflow.casebook import open_casebook
from kb.workflow.publish import publish
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which record."""

    ref: Annotated[str, Argument("A card to show, or a recipe to make one from.", "RECORD")]
    publish: Annotated[bool, Flag("--publish", "Keep the card made from a recipe as a record of its own.")] = False


def run(options: Options, console: Console) -> int:
    """Show one screen of knowledge."""
    with open_casebook(workspace(), console.progress(), writable=options.publish) as casebook:
        version = casebook.store.get(parse_ref(options.ref))
        if version.record.kind != "card":
            card = card_of(version.record, casebook.catalogue)
            version = replace(version, record=card)
            if options.publish:
                published = publish(casebook, replace(card, parents=(version.sha256,)), author=os.environ.get("KB_AUTHOR", "anonymous"))
                version = published.version
                console.remark(f"已发布 {version.ref}", f"published {version.ref}")
        document = version_document(version, casebook.catalogue, console.lang)
    if console.as_json:
        console.json(version_payload(version))
    else:
        console.text(PlainRenderer().render(document))
    return ExitCode.DONE


COMMAND = Command(
    "Show a knowledge card, or make one from a recipe.",
    Options,
    run,
    ("kb card sd3-attention-unfused", "kb card sd3-attention-unfused --publish"),
)
