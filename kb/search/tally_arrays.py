"""Adding up BM25 with numpy: the scores of ``kb.search.tally``, bit for bit, for a process that has numpy anyway."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kb.search.corpus import CODES
from kb.search.tally import Tally, inverse_frequency

if TYPE_CHECKING:
    import numpy.typing as npt

    from kb.search.corpus import Corpus, Postings
    from kb.search.filters import Candidates
    from kb.search.question import Concept, Question
    from kb.search.weights import Weights

    Places = npt.NDArray[np.uint32]
    Floats = npt.NDArray[np.float64]


def tally_arrays(question: Question, candidates: Candidates, postings: Mapping[str, Postings], weights: Weights) -> Tally:
    """Scores of all candidates."""
    corpus = candidates.corpus
    langs, lengths = np.frombuffer(candidates.langs, np.uint8), column(corpus, "lengths", np.float64)
    whole, count = candidates.whole, candidates.count
    kept = {token: _kept(found, None if whole else langs) for token, found in postings.items()}
    length = float(lengths.sum() if whole else lengths[langs > 0].sum()) / count if count else 1.0
    length = length or 1.0
    idf = {token: inverse_frequency(count, len(places)) for token, (places, _) in kept.items()}
    flat, slope = weights.k1 * (1 - weights.b), weights.k1 * weights.b / length

    def said(token: str) -> Floats:
        places, often = kept[token]
        return idf[token] * (weights.k1 + 1) * often / (often + (flat + slope * lengths[places]))

    raw, scratch = np.zeros(len(langs)), np.zeros(len(langs))
    for concept in question.concepts:
        places, values = _best_way(concept, said, kept, scratch)
        # A place may stand there several times, each time with the same value: the last assignment is as good as the first.
        raw[places] = raw[places] + values * concept.share
    held = {lang: np.flatnonzero((langs == code) & (raw > 0)) for lang, code in CODES.items()}
    ids = column(corpus, "ids", np.int64)
    return Tally(
        value=raw.item,
        top=lambda lang, depth: top_places(held[lang], raw[held[lang]], ids, depth),
        sums={lang: _sums(raw[own]) for lang, own in held.items()},
        idf=idf,
        length=length,
        raw=raw,
    )


def column(corpus: Corpus, name: str, kind: type[Any]) -> npt.NDArray[Any]:
    """A column of the corpus as an array, made once."""
    if name not in corpus.memo:
        corpus.memo[name] = np.asarray(getattr(corpus, name)).astype(kind, copy=False)
    made: npt.NDArray[Any] = corpus.memo[name]
    return made


def top_places(places: npt.NDArray[np.intp], values: npt.NDArray[np.floating], ids: npt.NDArray[np.int64], depth: int) -> list[int]:
    """The ``depth`` places with the largest ``values``, best first, smaller id first among equals."""
    if len(places) > depth:
        cut = np.partition(values, len(values) - depth)[len(values) - depth]
        chosen = values >= cut
        places, values = places[chosen], values[chosen]
    order = np.lexsort((ids[places], -values))[:depth]
    found: list[int] = places[order].tolist()
    return found


def _kept(found: Postings, langs: npt.NDArray[np.uint8] | None) -> tuple[Places, Floats]:
    places, counts = np.asarray(found[0], np.uint32), np.asarray(found[1], np.uint32)
    if langs is not None:
        chosen = langs[places] > 0
        places, counts = places[chosen], counts[chosen]
    return places, counts.astype(np.float64)


def _best_way(
    concept: Concept, said: Callable[[str], Floats], kept: Mapping[str, tuple[Places, Floats]], scratch: Floats
) -> tuple[Places, Floats]:
    """See ``kb.search.tally``; ``scratch`` is a row of zeros over all places, and is left so."""
    places, best = _way(concept.ways[0], said, kept, scratch)
    if len(concept.ways) == 1:
        return places, best
    settled = _settled(concept.ways[0], kept) if concept.asked else np.zeros(0, np.uint32)
    others = [_way(way, said, kept, scratch) for way in concept.ways[1:]]
    members = np.concatenate([places, *(own for own, _ in others)])
    for own, values in others:
        scratch[own] = np.maximum(scratch[own], values)
    scratch[settled] = 0.0
    scratch[places] = np.maximum(scratch[places], best)
    worth = scratch[members]
    scratch[members] = 0.0
    return members, worth


def _way(
    way: tuple[str, ...], said: Callable[[str], Floats], kept: Mapping[str, tuple[Places, Floats]], scratch: Floats
) -> tuple[Places, Floats]:
    if len(way) == 1:
        return kept[way[0]][0], said(way[0])
    for token in way:
        scratch[kept[token][0]] += said(token)
    members = np.concatenate([kept[token][0] for token in way])
    worth = scratch[members]
    scratch[members] = 0.0
    return members, worth


def _settled(way: tuple[str, ...], kept: Mapping[str, tuple[Places, Floats]]) -> Places:
    first, *rest = (kept[token][0] for token in way)
    for places in rest:
        first = np.intersect1d(first, places, assume_unique=True)
    return first


def _sums(values: Floats) -> tuple[float, float, float]:
    return float(values.sum()), float((values * values).sum()), float(values.max(initial=0.0))
