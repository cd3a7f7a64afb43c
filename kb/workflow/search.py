"""Job: find similar past cases by words, by session, or both."""

from __future__ import annotations

from kb.domain.case import Answer, CaseContext, CaseQuery, Hit
from kb.domain.version import Ref, Version
from kb.recommend.support import PastCase
from kb.search.context import case_context
from kb.search.query import search
from kb.workflow.casebook import Casebook
from kb.workflow.diagnose import Diagnosed


def find(casebook: Casebook, query: CaseQuery, *, text_only: bool = False) -> Answer:
    """The answer to ``query``; ``text_only`` skips the embedder (faster start, no cosine)."""
    embedder = None if text_only else casebook.embedder()
    return search(query, store=casebook.store, embedder=embedder, catalogue=casebook.catalogue)


def similar(casebook: Casebook, diagnosed: Diagnosed, *, limit: int = 10) -> tuple[PastCase, ...]:
    """Past cases like this diagnosis, by the context and the words of its most exposed findings."""
    contexts = contexts_of(diagnosed)
    if not diagnosed.diagnosis.all_findings():
        return ()
    context = max(contexts, key=lambda item: len(item.causes))
    words = " ".join(f"{finding.cause} {finding.message.zh} {finding.message.en}" for finding in diagnosed.diagnosis.all_findings()[:3])
    answer = find(casebook, CaseQuery(text=words, context=context, limit=limit, include_simulated=True))
    return tuple(PastCase(hit=hit, record=version_of(casebook, hit).record) for hit in answer.hits)


def contexts_of(diagnosed: Diagnosed) -> tuple[CaseContext, ...]:
    """One context a session."""
    pairs = zip(diagnosed.sessions, diagnosed.diagnosis.sessions, strict=True)
    return tuple(case_context(session, diagnosis, diagnosed.diagnosis.cluster) for session, diagnosis in pairs)


def version_of(casebook: Casebook, hit: Hit) -> Version:
    """The exact version a hit speaks about."""
    return casebook.store.get(Ref(slug=hit.slug, n=hit.version, origin=hit.origin))
