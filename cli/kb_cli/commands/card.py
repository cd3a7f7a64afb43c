"""``kb card``"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

from msgspec.structs import replace

from kb.domain.version import Version, parse_ref
from kb.errors import ExitCode
from kb.report.payload import plain, version_payload
from kb.report.plain import PlainRenderer
from kb.report.records import draft_document, version_document
from kb.workflow.card import card_of
from kb.workflow.casebook import Casebook, open_casebook
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
        if version.record.kind == "card":
            _show(version, casebook, console)
        elif options.publish:
            card = replace(card_of(version.record, casebook.catalogue), parents=(version.sha256,))
            kept = publish(casebook, card, author=os.environ.get("KB_AUTHOR", "anonymous")).version
            console.remark(f"已发布 {kept.ref}", f"published {kept.ref}")
            _show(kept, casebook, console)
        else:
            _sketch(version, casebook, console)
    return ExitCode.DONE


def _show(version: Version, casebook: Casebook, console: Console) -> None:
    if console.as_json:
        console.json(version_payload(version))
    else:
        console.text(PlainRenderer().render(version_document(version, casebook.catalogue, console.lang)))


def _sketch(version: Version, casebook: Casebook, console: Console) -> None:
    card = card_of(version.record, casebook.catalogue)
    if console.as_json:
        console.json({"record": plain(card), "made_from": str(version.ref), "published": False})
    else:
        console.text(PlainRenderer().render(draft_document(card, str(version.ref), console.lang)))


COMMAND = Command(
    "Show a knowledge card, or make one from a recipe.",
    Options,
    run,
    ("kb card sd3-attention-unfused-card", "kb card sd3-attention-unfused", "kb card sd3-attention-unfused --publish"),
)
