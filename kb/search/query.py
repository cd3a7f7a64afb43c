"""One search from question to answer: filters, words, vectors, structure, reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from kb.domain.case import Answer, CaseQuery, Hit, Why
from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Embedder, Store
from kb.domain.soc import SocFamily
from kb.domain.text import Text
from kb.domain.version import Version
from kb.errors import UsageError
from kb.index.words import DamagedWordsError
from kb.search.cards import raised_by_cards
from kb.search.contrast import contrasts
from kb.search.explanation import simulated_mark, text_reason, word_reasons
from kb.search.filters import Candidates, families_of, find_candidates
from kb.search.fusion import Scores, best, totals
from kb.search.lexical import Lexical, score_lexical
from kb.search.question import Question, read_question
from kb.search.snippet import snippet
from kb.search.spelling import respelled
from kb.search.structure import applicable, likeness
from kb.search.weights import Weights, load_weights
from kb.text.tokens import tokenize

if TYPE_CHECKING:
    from kb.domain.protocols import Vectors
    from kb.search.coarse import CoarseView
    from kb.search.corpus import Corpus
    from kb.search.dense import VectorView
    from kb.search.guess import Guess
    from kb.search.hints import Hints


class _Meaning(msgspec.Struct, frozen=True):
    """The dense half of a search: the query's vector, what the store holds, the scores of the vector turned towards the guessed
    causes, and what the names of those add."""

    vector: Vectors
    view: VectorView
    scores: Scores | None
    guessed: tuple[Guess, ...] = ()
    names: Scores | None = None

    def cosine(self, record: int) -> float | None:
        """The best cosine of the question itself with a record's vectors; None without any."""
        rows = self.view.rows_of(record)
        return float((rows @ self.vector).max()) if len(rows) else None


class _Search(msgspec.Struct, frozen=True):
    """Everything known about one question before records are read."""

    query: CaseQuery
    families: tuple[SocFamily, ...]
    question: Question
    candidates: Candidates
    lexical: Lexical
    meaning: _Meaning | None
    catalogue: Catalogue
    weights: Weights

    @property
    def scorers(self) -> tuple[Scores, ...]:
        """The scorers that have something to say."""
        meaning = self.meaning
        own = (meaning.scores, meaning.names) if meaning is not None else ()
        return (*(scores for scores in own if scores is not None), self.lexical.scores)


def search(query: CaseQuery, *, store: Store, embedder: Embedder | None, catalogue: Catalogue, weights: Weights | None = None,
           vectors: VectorView | CoarseView | None = None, corpus: Corpus | None = None, hints: Hints | None = None) -> Answer:  # fmt: skip
    """The records most like the query, best first.

    The score of a hit is the sum of its reasons: the cosine of its nearest vector, BM25 of the query with its
    glossary terms, and BM25 of the names of the causes it sounds like (``hints``; they turn the query's vector as well), all in
    deviations within the record's language, and for a query with a context what the most alike case shares with it.
    ``embedder`` None means words only (``similarity`` is then None, and numpy is not imported). ``abstained`` is set when
    no cosine reaches the embedder's cut, no record holds enough of the words and none shares enough structure.

    ``weights`` replaces the shipped numbers. ``vectors`` from an earlier ``load_vectors`` saves reading them again; a stale one is
    replaced; one from ``kb.search.coarse`` serves large collections. ``corpus`` from ``kb.search.corpus.believed`` does the same for
    words and filters: a stale or damaged one is not used. Raises UsageError for a query without content or a limit below 1.
    """
    if query.limit < 1:
        raise UsageError(f"a limit of {query.limit}", allowed="1 or more")
    trusted = corpus if corpus is not None and corpus.generation == store.generation() else None
    try:
        return _answer(query, trusted, store, embedder, catalogue, weights or load_weights(), vectors, hints)
    except DamagedWordsError:
        return _answer(query, None, store, embedder, catalogue, weights or load_weights(), vectors, hints)


def _answer(query: CaseQuery, corpus: Corpus | None, store: Store, embedder: Embedder | None, catalogue: Catalogue, weights: Weights,
            vectors: VectorView | CoarseView | None, hints: Hints | None) -> Answer:  # fmt: skip
    question = read_question(query, catalogue)
    candidates = find_candidates(query, store, catalogue, corpus)
    if not candidates.count:
        return Answer(hits=(), abstained=True, notes=(*question.notes, *candidates.notes))
    found = _gathered(query, question, candidates, store, embedder, catalogue, weights, vectors, hints)
    ranked = _ranked(found, store)
    notes = (*found.question.notes, *candidates.notes, *_unembedded(found.meaning, candidates), *_nothing(ranked))
    return Answer(hits=tuple(hit for hit, _ in ranked), abstained=_abstained(found, ranked, embedder), notes=notes)


def _gathered(query: CaseQuery, question: Question, candidates: Candidates, store: Store, embedder: Embedder | None, catalogue: Catalogue,
              weights: Weights, vectors: VectorView | CoarseView | None, hints: Hints | None) -> _Search:  # fmt: skip
    arrays = embedder is not None
    lexical = score_lexical(question, candidates, weights, arrays=arrays)
    meant = question if query.composed else respelled(question, candidates.corpus, lexical.postings, catalogue)
    if meant is not question:
        question, lexical = meant, score_lexical(meant, candidates, weights, arrays=arrays)
    guide = None if query.composed else hints
    meaning = _meaning(question, store, embedder, candidates, catalogue, weights, vectors, guide) if embedder is not None else None
    return _Search(query, families_of(query), question, candidates, lexical, meaning, catalogue, weights)


def _meaning(question: Question, store: Store, embedder: Embedder, candidates: Candidates, catalogue: Catalogue, weights: Weights,
             vectors: VectorView | CoarseView | None, hints: Hints | None) -> _Meaning:  # fmt: skip
    from kb.search.dense import VectorView, current  # numpy: not on the words-only path

    coarse = None if vectors is None or isinstance(vectors, VectorView) else vectors
    known = coarse.view if coarse is not None else vectors if isinstance(vectors, VectorView) else None
    view = current(known, store, embedder)
    vector = embedder.encode_query(question.text)
    with view.blas.single():
        return _compared(question, vector, view, coarse if coarse is not None and view is coarse.view else None, embedder, candidates,
                         catalogue, weights, hints)  # fmt: skip


def _compared(question: Question, vector: Vectors, view: VectorView, coarse: CoarseView | None, embedder: Embedder,
              candidates: Candidates, catalogue: Catalogue, weights: Weights, hints: Hints | None) -> _Meaning:  # fmt: skip
    asked = vector
    guessed: tuple[Guess, ...] = ()
    names = None
    if hints is not None and hints.model_id == embedder.model_id and vector.any():
        from kb.search.guess import guesses, named, turned

        guessed = guesses(question, vector, hints, weights)
        asked = turned(vector, guessed, hints, weights)
        names = score_lexical(named(guessed, catalogue, hints), candidates, replace(weights, lexical=weights.guess), arrays=True).scores
    scores = _cosines(asked, view, coarse, candidates, embedder, weights)
    return _Meaning(vector, view, scores, guessed, names)


def _cosines(vector: Vectors, view: VectorView, coarse: CoarseView | None, candidates: Candidates, embedder: Embedder,
             weights: Weights) -> Scores | None:  # fmt: skip
    if coarse is None:
        from kb.search.dense import score_dense

        return score_dense(vector, view, candidates, embedder.name, weights)
    from kb.search.coarse import score_coarse

    return score_coarse(vector, coarse, candidates, embedder.name, weights)


def _ranked(found: _Search, store: Store) -> list[tuple[Hit, float]]:
    """Hits with the share of the query's words they hold, best first."""
    limit, structured = found.query.limit, found.query.context is not None or bool(found.families)
    count = max(limit, found.weights.rerank) if structured else limit + _CARD_ROOM
    ids = found.candidates.corpus.ids
    places = _best(found, count)
    read = store.versions([ids[place] for place in places])
    versions = {place: read[ids[place]] for place in places if applicable(read[ids[place]].record, found.families)}
    alike = {place: likeness(found.query.context, found.families, version.record, found.weights) for place, version in versions.items()}
    text = totals(found.scorers, list(versions), found.candidates)
    score = {place: own + _sum(alike[place]) for place, own in zip(versions, text, strict=True)}
    raised = raised_by_cards(score, versions)
    score |= {place: score[place] + why.contribution for place, why in raised.items()}
    top = sorted(versions, key=lambda place: (-round(score[place], 9), versions[place].record.kind == "card", ids[place]))[:limit]
    parts = found.lexical.parts(top, found.weights)
    against = contrasts([versions[place] for place in top], store, found.catalogue, found.candidates)
    return [
        (
            _hit(
                found,
                place,
                versions[place],
                score[place],
                (*alike[place], *_reasons(found, place, versions[place], parts[place]), *((raised[place],) if place in raised else ())),
                _status(store, versions[place]),
                against.get(versions[place].sha256, ()),
            ),
            found.lexical.coverage(parts[place]),
        )
        for place in top
    ]


def _sum(reasons: Iterable[Why]) -> float:
    return sum(why.contribution for why in reasons)


def _best(found: _Search, count: int) -> list[int]:
    """Places of the best by text, and of those that must be looked at for their cause."""
    candidates, also = found.candidates, _same_cause(found)
    if all(scores.raw is not None for scores in found.scorers):
        from kb.search.fusion_arrays import best_arrays  # numpy: not on the words-only path

        return best_arrays(found.scorers, candidates, count, also)
    if all(scores.many is not None for scores in found.scorers):
        from kb.search.fusion_arrays import best_pooled

        return best_pooled(found.scorers, candidates, count, also)
    return best(found.scorers, candidates.language, candidates.corpus.ids, count, max(count, found.weights.pool), also)


_CARD_ROOM: Final = 20
"""Records looked at beyond the limit, so that the recipe of a card near the top is among them."""


def _status(store: Store, version: Version) -> str:
    revisions = store.revisions(version.record.slug, version.origin)
    return next(revision.status for revision in revisions if revision.ref.n == version.n)


def _same_cause(found: _Search) -> list[int]:
    """Places of the best by text among the records that name a cause of the context, however many others are nearer: structure must
    be able to find them."""
    context = found.query.context
    if context is None or not context.causes:
        return []
    postings = found.candidates.corpus.postings([tokenize(cause)[0] for cause in context.causes])
    langs, ids = found.candidates.langs, found.candidates.corpus.ids
    named = list(dict.fromkeys(place for places, _ in postings.values() for place in places if langs[place]))
    score = dict(zip(named, totals(found.scorers, named, found.candidates), strict=True))
    return sorted(named, key=lambda place: (-score[place], ids[place]))[: found.weights.rerank]


def _reasons(found: _Search, place: int, version: Version, parts: Mapping[str, float]) -> tuple[Why, ...]:
    """Those of the text; a mark for simulated figures."""
    lang, meaning = found.candidates.language(place), found.meaning
    reasons: list[Why] = []
    if meaning is not None and meaning.scores is not None:
        from kb.search.dense import nearest_field
        from kb.search.prepare import field_texts

        record = found.candidates.corpus.ids[place]
        fields = tuple(field_texts(version.record, found.catalogue))
        field = nearest_field(record, meaning.vector, meaning.view, fields)
        reasons += text_reason(meaning.cosine(record), meaning.scores.contribution(place, lang), field)
    if meaning is not None and meaning.names is not None:
        from kb.search.guess import guess_reason

        reasons.append(guess_reason(place, meaning.names, lang, meaning.guessed, found.catalogue))
    reasons += word_reasons(place, lang, found.lexical, parts, found.catalogue.glossary)
    if version.record.provenance == "simulated":
        reasons.append(simulated_mark())
    return tuple(reasons)


def _hit(found: _Search, place: int, version: Version, score: float, why: tuple[Why, ...], status: str, against: tuple[Text, ...]) -> Hit:
    content = version.record
    return Hit(
        slug=content.slug,
        version=version.n,
        origin=version.origin,
        kind=content.kind,
        title=content.title,
        score=score,
        similarity=found.meaning.cosine(found.candidates.corpus.ids[place]) if found.meaning is not None else None,
        why=why,
        provenance=content.provenance,
        snippet=snippet(content, set(found.question.tokens)),
        status=status,
        contrasts=against,
    )


def _abstained(found: _Search, ranked: Sequence[tuple[Hit, float]], embedder: Embedder | None) -> bool:
    """Whether nothing is similar enough: by raw cosine, by words, or by structure."""
    weights = found.weights
    vectors = int(found.meaning.view.counts.sum()) if found.meaning is not None else 0
    cut = weights.calibration(embedder.name).cut(vectors) if embedder is not None else None
    if any(coverage >= weights.abstain_coverage or _structure(hit) >= weights.structure_enough for hit, coverage in ranked):
        return False
    known = [hit.similarity for hit, _ in ranked if hit.similarity is not None]
    return not (known and (cut is None or max(known) >= cut))


def _structure(hit: Hit) -> float:
    return sum(why.contribution for why in hit.why if why.feature in ("causes", "model", "model_type", "phase"))


def _unembedded(meaning: _Meaning | None, candidates: Candidates) -> tuple[Text, ...]:
    if meaning is None:
        return ()
    known = meaning.scores.ranked if meaning.scores is not None else 0
    missing = candidates.count - known
    if not missing:
        return ()
    return (Text(zh=f"{missing} 条记录没有当前模型的向量，只按词语查找；运行 kb doctor 或同步后重试。",
                 en=f"{missing} records have no vectors of this model and are found by words only; run kb doctor or sync."),)  # fmt: skip


def _nothing(ranked: Sequence[tuple[Hit, float]]) -> tuple[Text, ...]:
    return () if ranked else (Text(zh="没有记录含有查询中的词语。", en="no record holds a word of the query."),)
