"""``kb alias``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kb.domain.version import parse_ref
from kb.errors import ExitCode
from kb.report.payload import plain
from kb.workflow.casebook import open_casebook
from kb.workflow.events import alias
from kb.workflow.workspace import workspace
from kb_cli.authorship import author
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which version gets which name."""

    ref: Annotated[str, Argument("SLUG (newest), SLUG@N, or ORIGIN:SLUG@N.", "RECORD")]
    name: Annotated[str, Argument("The alias, for example stable; SLUG@NAME then means this version.", "NAME")]
    author: Annotated[str | None, Flag("--author", "Who says so; default KB_AUTHOR, else anonymous.", "NAME")] = None


def run(options: Options, console: Console) -> int:
    """Give a version a name that can move to another version later."""
    with open_casebook(workspace(), console.progress(), writable=True) as casebook:
        version = casebook.store.get(parse_ref(options.ref))
        event = alias(casebook.store, version.ref, options.name, author=author(options.author))
    if console.as_json:
        console.json({"ref": str(version.ref), "alias": f"{version.record.slug}@{options.name}", "event": plain(event)})
    else:
        name = f"{version.record.slug}@{options.name}"
        console.say(f"{name} 现在指 {version.ref}", f"{name} now means {version.ref}")
    return ExitCode.DONE


COMMAND = Command(
    "Name a version; SLUG@latest always means the newest.",
    Options,
    run,
    ("kb alias my-model-attention@2 stable", "kb show my-model-attention@stable"),
)
