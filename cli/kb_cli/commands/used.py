"""``kb used``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, get_args

from kb.domain.case import Result
from kb.domain.quantity import parse_quantity
from kb.domain.version import parse_ref
from kb.errors import ExitCode
from kb.report.payload import plain
from kb.workflow.casebook import open_casebook
from kb.workflow.events import use
from kb.workflow.workspace import workspace
from kb_cli.authorship import author
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console

_RESULTS: tuple[Result, ...] = get_args(Result)


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which version was tried, and how it went."""

    ref: Annotated[str, Argument("SLUG (newest), SLUG@N, or ORIGIN:SLUG@N.", "RECORD")]
    result: Annotated[str, Flag("--result", "How it went.", choices=_RESULTS)]
    gain: Annotated[str | None, Flag("--gain", "Part of the step saved, for example 12%.", "PERCENT")] = None
    note: Annotated[str, Flag("--note", "In your own words.")] = ""
    author: Annotated[str | None, Flag("--author", "Who tried it; default KB_AUTHOR, else anonymous.", "NAME")] = None


def run(options: Options, console: Console) -> int:
    """Record an outcome of use."""
    result = next(known for known in _RESULTS if known == options.result)
    gain = parse_quantity(options.gain, default_unit="%").to("ratio") if options.gain else None
    with open_casebook(workspace(), console.progress(), writable=True) as casebook:
        version = casebook.store.get(parse_ref(options.ref))
        event = use(casebook.store, version.ref, author=author(options.author), result=result, gain_fraction=gain, note=options.note)
    if console.as_json:
        console.json({"ref": str(version.ref), "event": plain(event)})
    else:
        console.say(f"已记录 {version.ref} 的使用结果：{result}", f"recorded for {version.ref}: {result}")
    return ExitCode.DONE


COMMAND = Command(
    "Record that you tried a recipe, and how it went.", Options, run, ("kb used sd3-attention-unfused --result improved --gain 31%",)
)
