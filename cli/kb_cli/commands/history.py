"""``kb history``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kb.domain.version import parse_ref
from kb.errors import ExitCode
from kb.report.payload import plain
from kb.report.records import timestamp
from kb.workflow.casebook import open_casebook
from kb.workflow.records import Line, lineage
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which record."""

    ref: Annotated[str, Argument("SLUG, or ORIGIN:SLUG.", "RECORD")]
    limit: Annotated[int | None, Flag("--limit", "Only the newest so many versions; default all.", "N")] = None


def run(options: Options, console: Console) -> int:
    """Print the line of versions: what each rests on, its aliases and standing."""
    ref = parse_ref(options.ref)
    with open_casebook(workspace(), console.progress()) as casebook:
        lines = lineage(casebook.store, ref.slug, ref.origin)
    shown = lines if options.limit is None else lines[-options.limit :]
    if console.as_json:
        console.json({"slug": ref.slug, "versions": [{**plain(line), "ref": str(line.revision.ref)} for line in shown]})
        return ExitCode.DONE
    for line in shown:
        _print(line, console)
    return ExitCode.DONE


def _print(line: Line, console: Console) -> None:
    item = line.revision
    names = f" ({', '.join(line.aliases)})" if line.aliases else ""
    console.line(f"{item.ref}{names}  {timestamp(item.created_ns)}  {item.author}  {item.provenance}  {item.status}  {item.sha256[:12]}")
    for said in line.said:
        console.line(f"    {said.pick(console.lang)}")


COMMAND = Command(
    "The line of versions of a record: aliases, standing, verifications, and what the audit doubts.",
    Options,
    run,
    ("kb history sd3-attention-unfused", "kb history workspace:my-model-attention --limit 5"),
)
