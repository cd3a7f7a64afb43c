"""``kb search``"""

from __future__ import annotations

import calendar
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar, get_args

from kb.domain.case import CaseQuery, RecordKind
from kb.domain.provenance import TIERS, Provenance
from kb.domain.soc import SocFamily
from kb.domain.text import LANGS
from kb.errors import ExitCode, UsageError
from kb.report.answers import answer_document
from kb.report.plain import PlainRenderer
from kb.workflow.casebook import open_casebook
from kb.workflow.search import context_of, find
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console

_Value = TypeVar("_Value", bound=str)
_KINDS: tuple[RecordKind, ...] = get_args(RecordKind)
_FAMILIES: tuple[SocFamily, ...] = get_args(SocFamily)


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Words and exact filters."""

    words: Annotated[tuple[str, ...], Argument("What you see or suspect, in Chinese or English.", "TEXT...")] = ()
    kind: Annotated[tuple[str, ...], Flag("--kind", "Only records of this kind; may be repeated.", choices=_KINDS)] = ()
    soc: Annotated[tuple[str, ...], Flag("--soc", "Only this SoC family; may be repeated.", choices=_FAMILIES)] = ()
    model_type: Annotated[tuple[str, ...], Flag("--model-type", "Only this model type; may be repeated.")] = ()
    cause: Annotated[tuple[str, ...], Flag("--cause", "Only this cause id; may be repeated.", "CAUSE")] = ()
    provenance: Annotated[str, Flag("--provenance", "At least this tier.", choices=TIERS)] = "claimed"
    since: Annotated[str, Flag("--since", "Only versions published on this day (UTC) or later.", "YYYY-MM-DD")] = ""
    verified: Annotated[bool, Flag("--verified", "Only versions whose evidence was recomputed and holds.")] = False
    written_in: Annotated[
        str, Flag("--written-in", "Only records with text in this language (--lang is that of the output).", choices=LANGS)
    ] = ""
    profile: Annotated[str, Flag("--profile", "Also by what is wrong in this profile: its causes, model, chip and metrics.", "PATH")] = ""
    limit: Annotated[int, Flag("--limit", "How many hits.", "N")] = 10
    simulated: Annotated[bool, Flag("--simulated", "Show simulated cases too.")] = False
    text_only: Annotated[bool, Flag("--text-only", "Words only, without the embedder: faster, finds no paraphrases.")] = False


def run(options: Options, console: Console) -> int:
    """Search and print."""
    if options.limit < 1:
        raise UsageError(f"--limit {options.limit}", allowed="1 or more")
    with open_casebook(workspace(), console.progress()) as casebook:
        query = CaseQuery(
            text=" ".join(options.words),
            kinds=_chosen(options.kind, _KINDS) or CaseQuery().kinds,
            soc_families=_chosen(options.soc, _FAMILIES),
            model_types=options.model_type,
            causes=tuple(casebook.catalogue.cause(name).id for name in options.cause),
            min_provenance=_tier(options.provenance),
            context=context_of(Path(options.profile)) if options.profile else None,
            lang=next((lang for lang in LANGS if lang == options.written_in), None),
            since_ns=_since(options.since) if options.since else None,
            verified=options.verified,
            limit=options.limit,
            include_simulated=options.simulated,
        )
        answer = find(casebook, query, text_only=options.text_only)
        for note in casebook.notes:
            console.remark(note.zh, note.en)
    if console.as_json:
        from kb.report.payload import answer_payload  # what every command can print: not for one that prints text

        console.json(answer_payload(answer))
    else:
        console.text(PlainRenderer().render(answer_document(answer, console.lang)))
    return ExitCode.DONE


def _chosen(names: tuple[str, ...], known: tuple[_Value, ...]) -> tuple[_Value, ...]:
    return tuple(value for value in known if value in names)


def _since(day: str) -> int:
    """Start of the day in ns since 1970. Raises UsageError for what is not a date."""
    try:
        return calendar.timegm(time.strptime(day, "%Y-%m-%d")) * 1_000_000_000
    except ValueError as error:
        raise UsageError(f"--since {day!r} is not a day", allowed="YYYY-MM-DD", do="for example --since 2026-01-31") from error


def _tier(name: str) -> Provenance:
    return next(tier for tier in TIERS if tier == name)


COMMAND = Command(
    "Find similar past cases and say why they are similar.",
    Options,
    run,
    (
        'kb search "attention 没融合 L2 命中率低"',
        'kb search "device idle between kernels" --soc A2 --json',
        "kb search --profile ./profile --since 2026-01-01",
    ),
)
