"""What the field recommender learns from: one document a past case, and the catalogue's own texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kb.domain.case import Case
from kb.domain.catalogue import Catalogue, Cause, CauseId, Strategy, StrategyId
from kb.domain.record import Record
from kb.domain.text import LANGS, Text
from kb.text.tokens import tokenize

if TYPE_CHECKING:
    from kb.domain.protocols import Vectors

SEEN_FIELDS: Final = ("title", "symptoms")
"""Vectors of a record that say what was seen; what was done says nothing about how a problem looks."""


@dataclass(frozen=True, slots=True)
class CaseDocument:
    """One past case. ``key`` names it, ``source`` where it was reported (cases of one source are not independent);
    ``tried`` are its strategies with whether each helped (None: only suggested); ``vectors`` has shape (n, dim), n may be 0."""

    key: str
    source: str
    cause: CauseId
    tried: tuple[tuple[StrategyId, bool | None], ...]
    tokens: frozenset[str]
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class CauseDocument:
    """The catalogue's text of one cause, as tokens and vectors, and the tokens of the mean answer to it (token to share)."""

    cause: CauseId
    tokens: frozenset[str]
    answers: Mapping[str, float]
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class Lessons:
    """What there is to learn from: the definitions of all causes in the catalogue's order, and past cases."""

    definitions: tuple[CauseDocument, ...]
    cases: tuple[CaseDocument, ...]


def is_field_case(record: Record) -> bool:
    """Whether people reported it: simulated cases tell no symptom in words, and a card repeats its recipe."""
    return record.kind in ("recipe", "case") and record.provenance != "simulated" and bool(record.cases)


def case_documents(record: Record, fields: Sequence[str], vectors: Vectors, catalogue: Catalogue) -> Iterator[CaseDocument]:
    """The record's cases whose cause the catalogue knows. ``fields`` names the rows of ``vectors``.

    The record's own prose and vectors speak for its cause only where it has a single case.
    """
    single = len(record.cases) == 1
    seen = [row for row, field in enumerate(fields) if single and field.partition(".")[0] in SEEN_FIELDS]
    for number, case in enumerate(record.cases):
        if case.cause in catalogue.causes:
            texts = (record.title, record.summary, record.body) if single else ()
            yield CaseDocument(
                key=record.slug if single else f"{record.slug}#{number}",
                source=record.sources[0].url if record.sources and record.sources[0].url else record.slug,
                cause=case.cause,
                tried=_tried(case, catalogue),
                tokens=_tokens((*texts, case.finding, *case.symptoms)),
                vectors=vectors[seen],
            )


def _tried(case: Case, catalogue: Catalogue) -> tuple[tuple[StrategyId, bool | None], ...]:
    known = (outcome for outcome in case.outcomes if outcome.strategy in catalogue.strategies)
    return tuple(
        (outcome.strategy, None if not outcome.reported_to_work or outcome.result == "unknown" else outcome.result == "improved")
        for outcome in known
    )


def cause_texts(cause: Cause) -> tuple[str, ...]:
    """The sentences about a cause that are embedded, both languages."""
    return _sides((cause.name, cause.definition, cause.evidence, cause.healthy))


def cause_document(cause: Cause, catalogue: Catalogue, vectors: Vectors) -> CauseDocument:
    """The document of ``cause``; ``vectors`` are those of ``cause_texts``."""
    spoken = " ".join((cause.id, *cause.aliases)).replace("_", " ")
    answers = [_tokens(_strategy_texts(catalogue.strategies[name])) for name in answers_to(cause, catalogue)]
    share: dict[str, float] = {}
    for tokens in answers:
        for token in tokens:
            share[token] = share.get(token, 0.0) + 1.0 / len(answers)
    own = _tokens((cause.name, cause.definition, cause.evidence, cause.healthy, Text(en=spoken)))
    return CauseDocument(cause.id, own, share, vectors)


def answers_to(cause: Cause, catalogue: Catalogue) -> tuple[StrategyId, ...]:
    """Strategies against a cause: those it names, most direct first, then those that say they address it."""
    named = [name for name in cause.strategies if name in catalogue.strategies]
    also = [name for name, entry in catalogue.strategies.items() if cause.id in entry.addresses]
    return tuple(dict.fromkeys((*named, *also)))


def _strategy_texts(strategy: Strategy) -> tuple[Text, ...]:
    return (strategy.name, strategy.definition, strategy.evidence, strategy.healthy)


def _tokens(texts: Sequence[Text]) -> frozenset[str]:
    return frozenset(token for side in _sides(texts) for token in tokenize(side))


def _sides(texts: Sequence[Text]) -> tuple[str, ...]:
    found = (text.zh if lang == "zh" else text.en for lang in LANGS for text in texts)
    return tuple(dict.fromkeys(side for side in found if side.strip()))
