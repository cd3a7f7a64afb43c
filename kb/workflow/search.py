"""Job: find similar past cases by words, by session, or both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kb.domain.case import Answer, CaseContext, CaseQuery, Hit
from kb.domain.protocols import Embedder, Prepared, Progress
from kb.domain.version import Ref, Version
from kb.search.query import search
from kb.workflow.casebook import Casebook

if TYPE_CHECKING:
    from kb.recommend.support import PastCase
    from kb.workflow.diagnose import Diagnosed


def find(casebook: Casebook, query: CaseQuery, *, text_only: bool = False) -> Answer:
    """The answer to ``query``; ``text_only`` skips the embedder (faster start, no cosine)."""
    if text_only:
        return search(query, store=casebook.store, embedder=None, catalogue=casebook.catalogue)
    from kb.search.dense import load_vectors  # numpy: not on the words-only path

    embedder = casebook.embedder()
    vectors = load_vectors(casebook.store, embedder, casebook.workspace.vectors)
    return search(query, store=casebook.store, embedder=embedder, catalogue=casebook.catalogue, vectors=vectors)


def similar(casebook: Casebook, diagnosed: Diagnosed, *, limit: int = 10) -> tuple[PastCase, ...]:
    """Past cases like this diagnosis, by the context and the words of its most exposed findings."""
    return past_cases(casebook, case_answer(casebook, diagnosed, limit=limit))


def case_answer(casebook: Casebook, diagnosed: Diagnosed, *, limit: int = 10) -> Answer:
    """The search behind ``similar``; no hits for a diagnosis without findings."""
    if not diagnosed.diagnosis.all_findings():
        return Answer(hits=(), abstained=True)
    context = max(contexts_of(diagnosed), key=lambda item: len(item.causes))
    words = " ".join(f"{finding.cause} {finding.message.zh} {finding.message.en}" for finding in diagnosed.diagnosis.all_findings()[:3])
    return find(casebook, CaseQuery(text=words, context=context, limit=limit, include_simulated=True))


def context_of(path: Path) -> CaseContext:
    """The context to search by of the profile at ``path``: that of its rank with most causes. Raises UnusableCaptureError."""
    from kb.workflow.diagnose import diagnose_paths  # profile readers: not on the words-only path

    return max(contexts_of(diagnose_paths([path])), key=lambda item: len(item.causes))


def reembed(casebook: Casebook, embedder: Embedder, progress: Progress) -> tuple[tuple[int, Prepared], ...]:
    """Search data, by row id, of every visible record that has no vectors of the embedder's model, for the store to keep.

    ``progress`` is told the records done. Nothing is written. A text that stands in several records is embedded once.
    """
    from kb.search.dense import load_vectors
    from kb.workflow.preparation import OnceEmbedder, batches, prepare_all

    held = set(load_vectors(casebook.store, embedder, casebook.workspace.vectors).ids.tolist())
    missing = [row.id for row in casebook.store.summaries() if row.id not in held]
    versions = casebook.store.versions(missing)
    once, made = OnceEmbedder(embedder), list[Prepared]()
    for batch in batches([version.record for version in versions.values()]):
        progress("vectors", len(made), len(versions))
        made += prepare_all(batch, once, casebook.catalogue)
    progress("vectors", len(made), len(versions))
    return tuple(zip(versions, made, strict=True))


def past_cases(casebook: Casebook, answer: Answer) -> tuple[PastCase, ...]:
    """The records behind an answer's hits, in their order."""
    from kb.recommend.support import PastCase

    return tuple(PastCase(hit=hit, record=version_of(casebook, hit).record) for hit in answer.hits)


def contexts_of(diagnosed: Diagnosed) -> tuple[CaseContext, ...]:
    """One context a session."""
    from kb.search.context import case_context  # numpy comes with sessions: not on the words-only path

    pairs = zip(diagnosed.sessions, diagnosed.diagnosis.sessions, strict=True)
    return tuple(case_context(session, diagnosis, diagnosed.diagnosis.cluster) for session, diagnosis in pairs)


def version_of(casebook: Casebook, hit: Hit) -> Version:
    """The exact version a hit speaks about."""
    return casebook.store.get(Ref(slug=hit.slug, n=hit.version, origin=hit.origin))
