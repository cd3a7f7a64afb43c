"""Scores of several scorers made comparable between languages, then added.

A Chinese query is nearer to every Chinese document than to the right English one, and words match within one
language only. So each scorer's values are measured in deviations from the mean of the document's own language
before they are added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from kb.domain.text import Lang

CHINESE_ABOVE: Final = 0.5
"""A document counts as Chinese above this share of Chinese text."""
_EPSILON: Final = 1e-9


def language_of(share: float) -> Lang:
    """The group a document is balanced in."""
    return "zh" if share > CHINESE_ABOVE else "en"


@dataclass(frozen=True, slots=True)
class Moments:
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


@dataclass(frozen=True, slots=True)
class Scores:
    """One scorer's answer over all candidates.

    ``raw``: score by record id. ``order``: ids of each language, best first. ``absent``: the raw score of a
    record that is not in ``raw``; None = the scorer has no opinion of it, and adds nothing.
    """

    raw: Mapping[int, float]
    order: Mapping[Lang, Sequence[int]]
    moments: Mapping[Lang, Moments]
    absent: float | None
    weight: float
    widest: float

    def contribution(self, record: int, lang: Lang) -> float:
        """What this scorer adds to the record's score."""
        return self._weighed(self.raw.get(record, self.absent), lang)

    def bound(self, lang: Lang, depth: int) -> float:
        """The most that a record of ``lang`` outside the first ``depth`` of this scorer can get."""
        order = self.order.get(lang, ())
        unranked = self._weighed(self.absent, lang)
        return max(unranked, self.contribution(order[depth], lang)) if len(order) > depth else unranked

    def _weighed(self, value: float | None, lang: Lang) -> float:
        return 0.0 if value is None else self.weight * self.moments[lang].balanced(value, self.widest)


def best(scorers: Sequence[Scores], languages: Mapping[int, Lang], count: int, pool: int, also: Iterable[int] = ()) -> list[int]:
    """Ids of the ``count`` best by the sum of contributions, best first, ties by smaller id, then those of ``also``.

    Only the first ``pool`` of each scorer and language are added up at first; the pool grows until no record outside
    can enter, so that the answer equals adding up everything. ``also`` are ids that must be looked at.
    """
    wanted = list(also)
    deepest = max((len(order) for scores in scorers for order in scores.order.values()), default=0)
    while True:
        members = set(chain(wanted, *(order[:pool] for scores in scorers for order in scores.order.values())))
        scored = sorted((-total(scorers, record, languages[record]), record) for record in members)
        if pool >= deepest or (len(scored) >= count and -scored[count - 1][0] > _beyond(scorers, pool)):
            return list(dict.fromkeys((*(record for _, record in scored[:count]), *wanted)))
        pool *= 4


def total(scorers: Sequence[Scores], record: int, lang: Lang) -> float:
    """Sum of the scorers' contributions."""
    return sum(scores.contribution(record, lang) for scores in scorers)


def _beyond(scorers: Sequence[Scores], pool: int) -> float:
    langs = {lang for scores in scorers for lang in scores.order}
    return max((sum(scores.bound(lang, pool) for scores in scorers) for lang in langs), default=-math.inf)
