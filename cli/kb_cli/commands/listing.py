"""``kb list``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, get_args

from kb.domain.case import RecordKind
from kb.domain.provenance import TIERS
from kb.domain.text import LANGS
from kb.errors import ExitCode, UsageError
from kb.report.payload import summary_payload
from kb.report.plain import PlainRenderer
from kb.report.records import list_document
from kb.workflow.casebook import open_casebook
from kb.workflow.records import counts, listing, page
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console

_KINDS: tuple[RecordKind, ...] = get_args(RecordKind)


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Filters. ``--lang`` is the language of the output and keeps records that have a title in it."""

    kind: Annotated[str, Flag("--kind", "Only this kind.", choices=_KINDS)] = ""
    provenance: Annotated[str, Flag("--provenance", "At least this tier.", choices=TIERS)] = "claimed"
    limit: Annotated[int | None, Flag("--limit", "At most this many; default all.", "N")] = None


def run(options: Options, console: Console) -> int:
    """Print the newest visible version of every record."""
    if options.limit is not None and options.limit < 1:
        raise UsageError(f"--limit {options.limit}", allowed="1 or more")
    kinds = tuple(kind for kind in _KINDS if kind == options.kind)
    tier = next(tier for tier in TIERS if tier == options.provenance)
    lang = next((lang for lang in LANGS if lang == options.lang), None)
    with open_casebook(workspace(), console.progress()) as casebook:
        pairs = listing(casebook.store, kinds=kinds, min_provenance=tier, lang=lang, limit=options.limit)
    if console.as_json:
        console.json({"records": [summary_payload(summary, version) for summary, version in pairs], "counts": counts(pairs)})
    else:
        console.text(PlainRenderer().render(list_document(page(pairs).entries, console.lang)))
        said = "; ".join(", ".join(f"{name} {count}" for name, count in group.items()) for group in counts(pairs).values())
        console.remark(f"{len(pairs)} 条记录：{said}", f"{len(pairs)} records: {said}")
    return ExitCode.DONE


COMMAND = Command("List records.", Options, run, ("kb list", "kb list --kind recipe --provenance simulated --json"))
