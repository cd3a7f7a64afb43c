"""One search from question to answer: filters, words, vectors, structure, reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kb.domain.case import Answer, CaseQuery, Hit, Why
from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Embedder, Listed, Store
from kb.domain.soc import SocFamily
from kb.domain.text import Lang, Text
from kb.domain.version import Version
from kb.errors import UsageError
from kb.search.cards import with_cards
from kb.search.contrast import contrasts
from kb.search.explanation import simulated_mark, text_reason, word_reasons
from kb.search.filters import families_of, find_candidates
from kb.search.fusion import Scores, best, language_of
from kb.search.lexical import Lexical, score_lexical
from kb.search.prepare import field_texts
from kb.search.question import Question, read_question
from kb.search.snippet import snippet
from kb.search.spelling import respelled
from kb.search.structure import applicable, likeness
from kb.search.weights import Weights, load_weights
from kb.text.tokens import tokenize

if TYPE_CHECKING:
    from kb.domain.protocols import Vectors
    from kb.search.dense import VectorView


@dataclass(frozen=True, slots=True)
class _Meaning:
    """The dense half of a search: the query's vector, what the store holds, and the cosines."""

    vector: Vectors
    view: VectorView
    scores: Scores | None


@dataclass(frozen=True, slots=True)
class _Search:
    """Everything known about one question before records are read."""

    query: CaseQuery
    families: tuple[SocFamily, ...]
    question: Question
    languages: Mapping[int, Lang]
    lexical: Lexical
    meaning: _Meaning | None
    catalogue: Catalogue
    weights: Weights

    @property
    def scorers(self) -> tuple[Scores, ...]:
        """The scorers that have something to say."""
        dense = self.meaning.scores if self.meaning is not None else None
        return (self.lexical.scores,) if dense is None else (dense, self.lexical.scores)


def search(query: CaseQuery, *, store: Store, embedder: Embedder | None, catalogue: Catalogue, weights: Weights | None = None,
           vectors: VectorView | None = None) -> Answer:  # fmt: skip
    """The records most like the query, best first.

    The score of a hit is the sum of its reasons: the cosine of its nearest vector and BM25 of the query with its
    glossary terms, both in deviations within the record's language, and for a query with a context what the most
    alike case shares with it. ``embedder`` None means words only (``similarity`` is then None, and numpy is not
    imported). ``abstained`` is set when no cosine reaches the embedder's cut, no record holds enough of the words and
    none shares enough structure. ``weights`` replaces the shipped numbers. ``vectors`` from an earlier ``load_vectors`` saves
    reading them again; a stale one is replaced. Raises UsageError for a query without content or a limit below 1.
    """
    if query.limit < 1:
        raise UsageError(f"a limit of {query.limit}", allowed="1 or more")
    question = read_question(query, catalogue)
    candidates = find_candidates(query, store, catalogue)
    if not candidates.rows:
        return Answer(hits=(), abstained=True, notes=(*question.notes, *candidates.notes))
    found = _gathered(query, question, candidates.rows, store, embedder, catalogue, weights or load_weights(), vectors)
    ranked = _ranked(found, store)
    notes = (*found.question.notes, *candidates.notes, *_unembedded(found.meaning, found.languages), *_nothing(ranked))
    return Answer(hits=tuple(hit for hit, _ in ranked), abstained=_abstained(found, ranked, embedder), notes=notes)


def _gathered(query: CaseQuery, question: Question, rows: Sequence[Listed], store: Store, embedder: Embedder | None, catalogue: Catalogue,
              weights: Weights, vectors: VectorView | None) -> _Search:  # fmt: skip
    languages = {row[0]: language_of(row[1]) for row in rows}
    lexical = score_lexical(question, store, languages, weights)
    meant = respelled(question, lexical.postings, store, catalogue)
    if meant is not question:
        question, lexical = meant, score_lexical(meant, store, languages, weights)
    meaning = _meaning(question, store, embedder, languages, weights, vectors) if embedder is not None else None
    return _Search(query, families_of(query), question, languages, lexical, meaning, catalogue, weights)


def _meaning(question: Question, store: Store, embedder: Embedder, languages: Mapping[int, Lang], weights: Weights,
             vectors: VectorView | None) -> _Meaning:  # fmt: skip
    from kb.search.dense import current, score_dense  # numpy: not on the words-only path

    view = current(vectors, store, embedder)
    vector = embedder.encode_query(question.text)
    return _Meaning(vector, view, score_dense(vector, view, languages, embedder.name, weights))


def _ranked(found: _Search, store: Store) -> list[tuple[Hit, float]]:
    """Hits with the share of the query's words they hold, best first."""
    limit, structured = found.query.limit, found.query.context is not None or bool(found.families)
    count = max(limit, found.weights.rerank) if structured else limit + _CARD_ROOM
    ids = best(found.scorers, found.languages, count, max(count, found.weights.pool), _same_cause(found, store))
    versions = {record: version for record, version in store.versions(ids).items() if applicable(version.record, found.families)}
    parts = found.lexical.parts(versions, found.weights)
    reasons = {record: _reasons(found, record, version, parts[record]) for record, version in versions.items()}
    reasons = with_cards(reasons, versions)
    score = {record: sum(why.contribution for why in reasons[record]) for record in versions}
    top = sorted(versions, key=lambda record: (-round(score[record], 9), versions[record].record.kind == "card", record))[:limit]
    against = contrasts([versions[record] for record in top], store, found.catalogue, found.languages)
    return [
        (
            _hit(
                found,
                record,
                versions[record],
                score[record],
                reasons[record],
                _status(store, versions[record]),
                against.get(versions[record].sha256, ()),
            ),
            found.lexical.coverage(parts[record]),
        )
        for record in top
    ]


_CARD_ROOM: Final = 20
"""Records looked at beyond the limit, so that the recipe of a card near the top is among them."""


def _status(store: Store, version: Version) -> str:
    revisions = store.revisions(version.record.slug, version.origin)
    return next(revision.status for revision in revisions if revision.ref.n == version.n)


def _same_cause(found: _Search, store: Store) -> list[int]:
    """Records that name a cause of the context, whatever their text: structure must be able to find them."""
    context = found.query.context
    if context is None or not context.causes:
        return []
    postings = store.postings([tokenize(cause)[0] for cause in context.causes])
    named = dict.fromkeys(row.id for rows in postings.values() for row in rows if row.id in found.languages)
    return list(named)[: found.weights.rerank]


def _reasons(found: _Search, record: int, version: Version, parts: Mapping[str, float]) -> tuple[Why, ...]:
    lang = found.languages[record]
    reasons = [*likeness(found.query.context, found.families, version.record, found.weights)]
    if found.meaning is not None and found.meaning.scores is not None:
        from kb.search.dense import nearest_field

        fields = tuple(field_texts(version.record, found.catalogue))
        reasons += text_reason(record, lang, found.meaning.scores, nearest_field(record, found.meaning.vector, found.meaning.view, fields))
    reasons += word_reasons(record, lang, found.lexical, parts, found.catalogue.glossary)
    if version.record.provenance == "simulated":
        reasons.append(simulated_mark())
    return tuple(reasons)


def _hit(found: _Search, record: int, version: Version, score: float, why: tuple[Why, ...], status: str, against: tuple[Text, ...]) -> Hit:
    dense = found.meaning.scores if found.meaning is not None else None
    content = version.record
    return Hit(
        slug=content.slug,
        version=version.n,
        origin=version.origin,
        kind=content.kind,
        title=content.title,
        score=score,
        similarity=dense.raw.get(record) if dense is not None else None,
        why=why,
        provenance=content.provenance,
        snippet=snippet(content, set(found.question.tokens)),
        status=status,
        contrasts=against,
    )


def _abstained(found: _Search, ranked: Sequence[tuple[Hit, float]], embedder: Embedder | None) -> bool:
    """Whether nothing is similar enough: by raw cosine, by words, or by structure."""
    weights = found.weights
    cut = weights.calibration(embedder.name).abstain_below if embedder is not None else None
    if any(coverage >= weights.abstain_coverage or _structure(hit) >= weights.structure_enough for hit, coverage in ranked):
        return False
    known = [hit.similarity for hit, _ in ranked if hit.similarity is not None]
    return not (known and (cut is None or max(known) >= cut))


def _structure(hit: Hit) -> float:
    return sum(why.contribution for why in hit.why if why.feature in ("causes", "model", "model_type", "phase"))


def _unembedded(meaning: _Meaning | None, rows: Mapping[int, Lang]) -> tuple[Text, ...]:
    if meaning is None:
        return ()
    known = set(meaning.scores.raw) if meaning.scores is not None else set()
    missing = len(rows.keys() - known)
    if not missing:
        return ()
    return (Text(zh=f"{missing} 条记录没有当前模型的向量，只按词语查找；运行 kb doctor 或同步后重试。",
                 en=f"{missing} records have no vectors of this model and are found by words only; run kb doctor or sync."),)  # fmt: skip


def _nothing(ranked: Sequence[tuple[Hit, float]]) -> tuple[Text, ...]:
    return () if ranked else (Text(zh="没有记录含有查询中的词语。", en="no record holds a word of the query."),)
