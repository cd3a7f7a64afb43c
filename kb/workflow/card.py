"""Job: a knowledge card, one screen of a recipe."""

from __future__ import annotations

from msgspec.structs import replace

from kb.domain.case import Case
from kb.domain.catalogue import Catalogue
from kb.domain.record import Record
from kb.domain.text import Lang, Text
from kb.errors import UsageError
from kb.report.numbers import signed_percent

_PITFALLS = 3


def card_of(record: Record, catalogue: Catalogue) -> Record:
    """The card of a recipe: causes, strategies with their recorded gain and tier, first pitfalls, link back.

    Its cases name causes only: outcomes stay with the recipe, so that one source never counts twice. Raises UsageError
    for a record that is no recipe.
    """
    if record.kind not in ("recipe", "case"):
        raise UsageError(f"{record.slug} is a {record.kind}", allowed="a recipe or a case", do="kb list --kind recipe")
    body = Text(zh=_body(record, catalogue, "zh"), en=_body(record, catalogue, "en"))
    return replace(
        record,
        kind="card",
        slug=f"{record.slug[:91]}-card",
        body=body,
        cases=tuple(Case(cause=case.cause, context=case.context) for case in record.cases),
        links=(record.slug,),
        sources=(),
        pitfalls=record.pitfalls[:_PITFALLS],
    )


def _body(record: Record, catalogue: Catalogue, lang: Lang) -> str:
    return "\n".join(f"- {_line(case, catalogue, lang)}" for case in record.cases)


def _line(case: Case, catalogue: Catalogue, lang: Lang) -> str:
    cause = catalogue.cause(case.cause)
    parts = [f"**{cause.name.pick(lang)}**: {cause.evidence.pick(lang)}"]
    for outcome in case.outcomes:
        gain = outcome.gain_fraction
        figure = (
            f" {outcome.metric} {signed_percent(gain)}, {outcome.provenance}"
            if gain is not None
            else f" {outcome.result}, {outcome.provenance}"
        )
        parts.append(f"{catalogue.strategy(outcome.strategy).name.pick(lang)} ({outcome.strategy}):{figure}")
    return " → ".join(parts)
