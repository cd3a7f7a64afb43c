"""Adding up BM25 in plain Python: a words-only search of ten thousand records ends before numpy would be loaded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import compress
from operator import mul
from typing import TYPE_CHECKING, Any

import msgspec

from kb.domain.text import Lang
from kb.search.corpus import CODES

if TYPE_CHECKING:
    from kb.search.corpus import Postings
    from kb.search.filters import Candidates
    from kb.search.question import Concept, Question
    from kb.search.weights import Weights


class Tally(msgspec.Struct, frozen=True):
    """Raw scores: ``value`` of a place (0 without a token), ``top`` places of a language with a score above 0, best first;
    ``sums``: sum, sum of squares and largest of the scores of each language; ``idf`` and mean ``length`` used; ``raw``: all scores
    as an array, where they are one."""

    value: Callable[[int], float]
    top: Callable[[Lang, int], Sequence[int]]
    sums: Mapping[Lang, tuple[float, float, float]]
    idf: Mapping[str, float]
    length: float
    raw: Any = None


def inverse_frequency(records: int, holding: int) -> float:
    """BM25's idf of a token that ``holding`` of ``records`` hold; never negative."""
    return math.log1p((records - holding + 0.5) / (holding + 0.5))


def tally(question: Question, candidates: Candidates, postings: Mapping[str, Postings], weights: Weights) -> Tally:
    """Scores of all candidates."""
    langs, lengths = candidates.langs, candidates.corpus.lengths
    kept = {token: _among(None if candidates.whole else langs, found) for token, found in postings.items()}
    own = lengths if candidates.whole else compress(lengths, langs)
    length = (sum(own) / candidates.count if candidates.count else 1.0) or 1.0
    idf = {token: inverse_frequency(candidates.count, len(places)) for token, (places, _) in kept.items()}
    flat, slope = weights.k1 * (1 - weights.b), weights.k1 * weights.b / length
    norms = [flat + slope * own for own in lengths]

    def said(token: str) -> list[float]:
        worth, (places, counts) = idf[token] * (weights.k1 + 1), kept[token]
        return [worth * count / (count + norms[place]) for place, count in zip(places, counts, strict=True)]

    raw, scratch = [0.0] * len(langs), [0.0] * len(langs)
    for concept in question.concepts:
        share = concept.share
        for place, value in _best_way(concept, said, kept, scratch):
            raw[place] += value * share
    held = {lang: [place for place in compress(range(len(langs)), raw) if langs[place] == code] for lang, code in CODES.items()}
    values = {lang: [raw[place] for place in places] for lang, places in held.items()}
    return Tally(
        value=raw.__getitem__,
        top=lambda lang, depth: _top(held[lang], values[lang], raw, candidates.corpus.ids, depth),
        sums={lang: (math.fsum(own), math.fsum(map(mul, own, own)), max(own, default=0.0)) for lang, own in values.items()},
        idf=idf,
        length=length,
    )


def _among(langs: bytes | None, found: Postings) -> Postings:
    places, counts = list(found[0]), list(found[1])
    if langs is None:
        return places, counts
    chosen = [langs[place] for place in places]
    return list(compress(places, chosen)), list(compress(counts, chosen))


def _best_way(concept: Concept, said: Callable[[str], list[float]], kept: Mapping[str, Postings],
              scratch: list[float]) -> Iterable[tuple[int, float]]:  # fmt: skip
    """What the concept is worth at each place that says it: its best way, but the query's own words where a record holds them
    all. ``scratch`` is a list of zeros over all places, and is left so."""
    places, values = _way(concept.ways[0], said, kept)
    if len(concept.ways) == 1:
        return zip(places, values, strict=True)
    touched = set(places)
    for way in concept.ways[1:]:
        others, worths = _way(way, said, kept)
        touched.update(others)
        for place, value in zip(others, worths, strict=True):
            if value > scratch[place]:
                scratch[place] = value
    for place in _settled(concept, kept):
        scratch[place] = 0.0
    for place, value in zip(places, values, strict=True):
        if value > scratch[place]:
            scratch[place] = value
    best = [scratch[place] for place in touched]
    for place in touched:
        scratch[place] = 0.0
    return zip(touched, best, strict=True)


def _way(way: tuple[str, ...], said: Callable[[str], list[float]], kept: Mapping[str, Postings]) -> tuple[Iterable[int], Iterable[float]]:
    if len(way) == 1:
        return kept[way[0]][0], said(way[0])
    total: dict[int, float] = {}
    for token in way:
        for place, value in zip(kept[token][0], said(token), strict=True):
            total[place] = total.get(place, 0.0) + value
    return total.keys(), total.values()


def _settled(concept: Concept, kept: Mapping[str, Postings]) -> Set[int]:
    """Places that hold all of the query's own words of the concept."""
    return set.intersection(*(set(kept[token][0]) for token in concept.ways[0])) if concept.asked else set()


def _top(places: Sequence[int], values: Sequence[float], raw: Sequence[float], ids: Sequence[int], depth: int) -> list[int]:
    if len(places) > depth:
        cut = sorted(values)[-depth]
        places = [place for place, value in zip(places, values, strict=True) if value >= cut]
    return sorted(places, key=lambda place: (-raw[place], ids[place]))[:depth]
