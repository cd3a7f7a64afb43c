"""``kb search``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeVar, get_args

from kb.domain.case import CaseQuery, RecordKind
from kb.domain.provenance import TIERS, Provenance
from kb.domain.soc import SocFamily
from kb.errors import ExitCode, UsageError
from kb.report.answers import answer_document
from kb.report.payload import answer_payload
from kb.report.plain import PlainRenderer
from kb.workflow.casebook import open_casebook
from kb.workflow.search import find
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
            limit=options.limit,
            include_simulated=options.simulated,
        )
        answer = find(casebook, query, text_only=options.text_only)
        for note in casebook.notes:
            console.remark(note.zh, note.en)
    if console.as_json:
        console.json(answer_payload(answer))
    else:
        console.text(PlainRenderer().render(answer_document(answer, console.lang)))
    return ExitCode.DONE


def _chosen(names: tuple[str, ...], known: tuple[_Value, ...]) -> tuple[_Value, ...]:
    return tuple(value for value in known if value in names)


def _tier(name: str) -> Provenance:
    return next(tier for tier in TIERS if tier == name)


COMMAND = Command(
    "Find similar past cases and say why they are similar.",
    Options,
    run,
    ('kb search "attention 没融合 L2 命中率低"', 'kb search "device idle between kernels" --soc A2 --json'),
)
