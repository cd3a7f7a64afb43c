"""Job: find similar past cases by words, by session, or both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from kb.domain.case import Answer, CaseContext, CaseQuery, Hit
from kb.domain.version import Ref, Version
from kb.search.query import search
from kb.workflow.casebook import Casebook
from kb.workflow.search_data import current_corpus, current_hints, current_vectors

if TYPE_CHECKING:
    from kb.domain.catalogue import Catalogue
    from kb.domain.diagnosis import Diagnosis
    from kb.recommend.support import PastCase
    from kb.workflow.diagnose import Diagnosed


TOLD: Final = 3
"""Causes of a diagnosis that are put into words; all of them are in its context."""


def find(casebook: Casebook, query: CaseQuery, *, text_only: bool = False) -> Answer:
    """The answer to ``query``; ``text_only`` skips the embedder (faster start, no cosine)."""
    corpus = current_corpus(casebook)
    if text_only:
        return search(query, store=casebook.store, embedder=None, catalogue=casebook.catalogue, corpus=corpus)
    embedder = casebook.embedder()
    vectors = current_vectors(casebook, embedder)
    hints = current_hints(casebook, embedder) if not query.composed else None
    return search(query, store=casebook.store, embedder=embedder, catalogue=casebook.catalogue, vectors=vectors, corpus=corpus, hints=hints)


def similar(casebook: Casebook, diagnosed: Diagnosed, *, limit: int = 10) -> tuple[PastCase, ...]:
    """Past cases like this diagnosis, by the context and the names of its first causes."""
    return past_cases(casebook, case_answer(casebook, diagnosed, limit=limit))


def case_answer(casebook: Casebook, diagnosed: Diagnosed, *, limit: int = 10) -> Answer:
    """The search behind ``similar``; no hits for a diagnosis without findings."""
    if not diagnosed.diagnosis.all_findings():
        return Answer(hits=(), abstained=True)
    context = max(contexts_of(diagnosed), key=lambda item: len(item.causes))
    return find(
        casebook,
        CaseQuery(text=told(diagnosed.diagnosis, casebook.catalogue), context=context, limit=limit, include_simulated=True, composed=True),
    )


def told(diagnosis: Diagnosis, catalogue: Catalogue) -> str:
    """The first causes of a diagnosis in words, for a composed query: their names in both languages and their ids.

    Not the messages: their figures are those of one session, and led to fewer records of the right cause (docs/benchmarks.md).
    """
    causes = list(dict.fromkeys(finding.cause for finding in diagnosis.all_findings()))[:TOLD]
    named = {cause: catalogue.causes[cause].name for cause in causes if cause in catalogue.causes}
    return " ".join(f"{named[cause].zh} {named[cause].en} {cause}" if cause in named else cause for cause in causes)


def context_of(path: Path) -> CaseContext:
    """The context to search by of the profile at ``path``: that of its rank with most causes. Raises UnusableCaptureError."""
    from kb.workflow.diagnose import diagnose_paths  # profile readers: not on the words-only path

    return max(contexts_of(diagnose_paths([path])), key=lambda item: len(item.causes))


def past_cases(casebook: Casebook, answer: Answer) -> tuple[PastCase, ...]:
    """The records behind an answer's hits, in their order."""
    from kb.recommend.support import PastCase
    from kb.workflow.uses import uses_of

    found = [(hit, version_of(casebook, hit)) for hit in answer.hits]
    return tuple(PastCase(hit=hit, record=version.record, uses=uses_of(casebook.store, version)) for hit, version in found)


def contexts_of(diagnosed: Diagnosed) -> tuple[CaseContext, ...]:
    """One context a session."""
    from kb.search.context import case_context  # numpy comes with sessions: not on the words-only path

    pairs = zip(diagnosed.sessions, diagnosed.diagnosis.sessions, strict=True)
    return tuple(case_context(session, diagnosis, diagnosed.diagnosis.cluster) for session, diagnosis in pairs)


def version_of(casebook: Casebook, hit: Hit) -> Version:
    """The exact version a hit speaks about."""
    return casebook.store.get(Ref(slug=hit.slug, n=hit.version, origin=hit.origin))
