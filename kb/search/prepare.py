"""A record as search wants it: tokens, and one vector per field and language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kb.domain.case import Case
from kb.domain.catalogue import Catalogue, Cause, Strategy
from kb.domain.protocols import Embedder, Prepared
from kb.domain.record import Record
from kb.domain.text import LANGS, Lang, Text
from kb.search.levers import AGAINST, against_token
from kb.text.language import chinese_share
from kb.text.tokens import counts

FIELDS: Final = ("title", "symptoms", "strategy")
"""``title``: title, summary and findings. ``symptoms``: what users see. ``strategy``: what was done, by name and note."""
NO_MODEL: Final = ""
"""``Prepared.model_id`` of a record without vectors."""


def prepare(record: Record, embedder: Embedder | None, catalogue: Catalogue | None = None) -> Prepared:
    """Tokens, vectors and language share of ``record``.

    Each field gives one vector per language that has text, named ``field.lang``, so that a Chinese query meets Chinese
    words and the two sides do not blur each other; a side equal to the other is embedded once. A record's
    similarity is the best of its vectors. ``catalogue`` adds the names and aliases of the record's causes and strategies.
    Without an embedder the record is found by words only.
    """
    texts = field_texts(record, catalogue)
    vectors = embedder.encode_documents(list(texts.values())) if embedder is not None else None
    tokens = counts("\n".join(all_texts(record, catalogue)))
    return Prepared(
        tokens={
            **tokens,
            **{against_token(outcome.strategy): 1 for case in record.cases for outcome in case.outcomes if outcome.result in AGAINST},
        },
        vectors=b"" if vectors is None else vectors.astype("<f4").tobytes(),
        fields=() if vectors is None else tuple(texts),
        dim=0 if embedder is None else embedder.dim,
        model_id=NO_MODEL if embedder is None else embedder.model_id,
        language_share=chinese_share("\n".join(_prose(record))),
    )


def field_texts(record: Record, catalogue: Catalogue | None = None) -> dict[str, str]:
    """The text behind each vector, by ``field.lang``; never empty: a record without any prose gives its slug."""
    parts: dict[str, Sequence[Text]] = {
        "title": (record.title, record.summary, *(case.finding for case in record.cases)),
        "symptoms": tuple(symptom for case in record.cases for symptom in case.symptoms),
        "strategy": tuple(text for case in record.cases for text in _strategy_texts(case, catalogue)),
    }
    found: dict[str, str] = {}
    for field in FIELDS:
        sides = {lang: _joined(parts[field], lang) for lang in LANGS}
        for lang, text in sides.items():
            if text and (lang == LANGS[0] or text != sides[LANGS[0]]):
                found[f"{field}.{lang}"] = text
    return found or {"title.en": record.slug}


def _joined(texts: Sequence[Text], lang: Lang) -> str:
    sides = (text.zh if lang == "zh" else text.en for text in texts)
    return "\n".join(dict.fromkeys(side.strip() for side in sides if side.strip()))


def _strategy_texts(case: Case, catalogue: Catalogue | None) -> Iterator[Text]:
    for outcome in case.outcomes:
        entry = catalogue.strategies.get(outcome.strategy) if catalogue is not None else None
        spoken = outcome.strategy.replace("_", " ")
        yield entry.name if entry is not None else Text(en=spoken)
        yield outcome.note


def all_texts(record: Record, catalogue: Catalogue | None = None) -> Iterator[str]:
    """Every text of a record that can be searched: prose of both languages, ids, names of models, chips and software."""
    yield from (record.slug, *record.tags, *_prose(record))
    for case in record.cases:
        yield from _case_names(case)
    for cause in _causes(record):
        yield cause
        yield from _entry_texts(catalogue.causes.get(cause) if catalogue is not None else None)
    for strategy in dict.fromkeys(outcome.strategy for case in record.cases for outcome in case.outcomes):
        yield strategy
        yield from _entry_texts(catalogue.strategies.get(strategy) if catalogue is not None else None)


def _prose(record: Record) -> Iterator[str]:
    texts: list[Text] = [record.title, record.summary, record.body, *record.pitfalls]
    for case in record.cases:
        texts += [case.finding, *case.symptoms, *case.constraints, *case.cautions, *(outcome.note for outcome in case.outcomes)]
    if record.template is not None:
        template = record.template
        texts += [template.name, template.description, *template.pitfalls, *(check.reason for check in template.checks)]
    for text in texts:
        yield from (side for side in (text.zh, text.en) if side)


def _case_names(case: Case) -> Iterator[str]:
    context = case.context
    yield from (name for name in (context.model, context.model_type, context.phase, context.soc) if name)
    if context.soc_family != "unknown":
        yield context.soc_family
    for name, version in context.software.items():
        yield f"{name} {version}"


def _causes(record: Record) -> tuple[str, ...]:
    named = [cause for case in record.cases for cause in (case.cause, *case.context.causes)]
    checked = [check.cause for check in record.template.checks] if record.template is not None else []
    return tuple(dict.fromkeys((*named, *checked)))


def _entry_texts(entry: Cause | Strategy | None) -> tuple[str, ...]:
    return () if entry is None else tuple(filter(None, (entry.name.zh, entry.name.en, *entry.aliases)))
