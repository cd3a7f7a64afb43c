"""Scores of several scorers made comparable between languages, then added.

A Chinese query is nearer to every Chinese document than to the right English one, and words match within one
language only. So each scorer's values are measured in deviations from the mean of the document's own language
before they are added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kb.domain.text import LANGS, Lang

if TYPE_CHECKING:
    from kb.search.filters import Candidates

_EPSILON: Final = 1e-9


class Moments(msgspec.Struct, frozen=True):
    """Mean and deviation of ``count`` raw scores, and the largest of them."""

    mean: float
    deviation: float
    count: int
    largest: float

    def balanced(self, value: float, widest: float) -> float:
        """``value`` in deviations from the mean. The deviation is widened until the largest score is at most ``widest`` of them."""
        return (value - self.mean) / self.spread(widest)

    def spread(self, widest: float) -> float:
        """The deviation used."""
        return max(self.deviation, (self.largest - self.mean) / widest, _EPSILON)


def moments(count: int, total: float, squares: float, largest: float) -> Moments:
    """From the sums over ``count`` scores; rounding below zero is zero."""
    if not count:
        return Moments(0.0, 0.0, 0, 0.0)
    mean = total / count
    return Moments(mean, math.sqrt(max(0.0, squares / count - mean * mean)), count, largest)


def pooled(groups: Iterable[Moments]) -> Moments:
    """The moments of all groups together."""
    full = [group for group in groups if group.count]
    return moments(
        sum(group.count for group in full),
        sum(group.mean * group.count for group in full),
        sum((group.deviation**2 + group.mean**2) * group.count for group in full),
        max((group.largest for group in full), default=0.0),
    )


def settled(groups: Mapping[Lang, Moments], fixed: Moments, minimum: int) -> dict[Lang, Moments]:
    """The moments to use for each language: its own from ``minimum`` documents on, else those of all
    documents together, else ``fixed`` (the raw score on a fixed scale): a mean of three documents says nothing."""
    together = pooled(groups.values())
    fallback = together if together.count >= minimum else fixed
    return {lang: group if group.count >= minimum else fallback for lang, group in groups.items()}


class Scores(msgspec.Struct, frozen=True):
    """One scorer's answer over all candidates.

    ``value``: the raw score of a place, None where the scorer did not rank it. ``top``: at most so many places of a language, best
    first, smaller id first among equals; fewer only when no more are ranked. ``absent``: the raw score of a place that is
    not ranked; None = the scorer has no opinion of it, and adds nothing.
    """

    value: Callable[[int], float | None]
    top: Callable[[Lang, int], Sequence[int]]
    moments: Mapping[Lang, Moments]
    absent: float | None
    weight: float
    widest: float
    ranked: int
    """How many places have a raw score."""
    raw: Any = None
    """All raw scores by place as a numpy array, NaN or 0 for what is not ranked; None where there is none."""
    many: Any = None
    """The raw scores of an array of places, NaN or 0 for what is not ranked; None where they are not worked out together."""

    def contribution(self, place: int, lang: Lang) -> float:
        """What this scorer adds to the record's score."""
        value = self.value(place)
        return self.weighed(self.absent if value is None else value, lang)

    def weighed(self, value: float | None, lang: Lang) -> float:
        """What a raw score adds."""
        return 0.0 if value is None else self.weight * self.moments[lang].balanced(value, self.widest)


def best(scorers: Sequence[Scores], language: Callable[[int], Lang], ids: Sequence[int], count: int, pool: int,
         also: Iterable[int] = ()) -> list[int]:  # fmt: skip
    """Places of the ``count`` best by the sum of contributions, best first, ties by smaller id, then those of ``also``.

    Only the first ``pool`` of each scorer and language are added up at first; the pool grows until no record outside
    can enter, so that the answer equals adding up everything. ``also`` are places that must be looked at.
    """
    wanted = list(also)
    while True:
        tops = [{lang: scores.top(lang, pool + 1) for lang in LANGS} for scores in scorers]
        members = set(chain(wanted, *(places[:pool] for own in tops for places in own.values())))
        scored = sorted((-total(scorers, place, language(place)), ids[place], place) for place in members)
        deeper = any(len(places) > pool for own in tops for places in own.values())
        if not deeper or (len(scored) >= count and -scored[count - 1][0] > _beyond(scorers, tops, pool)):
            return list(dict.fromkeys((*(place for _, _, place in scored[:count]), *wanted)))
        pool *= 4


def total(scorers: Sequence[Scores], place: int, lang: Lang) -> float:
    """Sum of the scorers' contributions."""
    return sum(scores.contribution(place, lang) for scores in scorers)


def totals(scorers: Sequence[Scores], places: Sequence[int], candidates: Candidates) -> list[float]:
    """``total`` of each of several places."""
    if all(scores.many is not None for scores in scorers):
        from kb.search.fusion_arrays import totals_arrays  # numpy: not on the words-only path

        return totals_arrays(scorers, places, candidates)
    return [total(scorers, place, candidates.language(place)) for place in places]


def _beyond(scorers: Sequence[Scores], tops: Sequence[Mapping[Lang, Sequence[int]]], pool: int) -> float:
    """The most that a record outside the first ``pool`` of every scorer can get."""
    return max(sum(_bound(scores, own[lang], lang, pool) for scores, own in zip(scorers, tops, strict=True)) for lang in LANGS)


def _bound(scores: Scores, top: Sequence[int], lang: Lang, pool: int) -> float:
    unranked = scores.weighed(scores.absent, lang)
    return max(unranked, scores.contribution(top[pool], lang)) if len(top) > pool else unranked
