"""What the findings of a session allow: no answer to them, and no set of answers, saves more than their bounds together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kb.domain.catalogue import Catalogue, CauseId, Strategy
from kb.domain.diagnosis import Diagnosis
from kb.domain.recommendation import RankedStrategy
from kb.recommend.support import bound_fraction

Bounds = Mapping[CauseId, float]
"""The gain bound of each cause found, as a fraction of the step (0..1)."""
_NONE_LOST: Final = 1.0


def bounds_of(diagnosis: Diagnosis) -> Bounds:
    """Of every cause found; where several ranks show it, the largest: ranks wait for each other, so their bounds do not add up."""
    found: dict[CauseId, float] = {}
    for finding in diagnosis.all_findings():
        found[finding.cause] = min(_NONE_LOST, max(found.get(finding.cause, 0.0), bound_fraction(finding)))
    return found


def addressed(strategy: Strategy, diagnosis: Diagnosis) -> tuple[CauseId, ...]:
    """The causes found that the strategy is an answer to, by the catalogue or by the finding's own list."""
    return tuple(
        dict.fromkeys(
            finding.cause
            for finding in diagnosis.all_findings()
            if finding.cause in strategy.addresses or strategy.id in finding.strategies
        )
    )


def together(causes: Iterable[CauseId], bounds: Bounds) -> float:
    """What removing all of ``causes`` saves at most. Bounds add up: causes claim time of their own, and a sum is never too low."""
    return min(_NONE_LOST, sum(bounds.get(cause, 0.0) for cause in dict.fromkeys(causes)))


def unexplained(bounds: Bounds) -> float:
    """The part of the step that no finding could save."""
    return _NONE_LOST - together(bounds, bounds)


def most_saved(gains: Sequence[tuple[RankedStrategy, float]], bounds: Bounds, catalogue: Catalogue) -> float:
    """What strategies that each save a fraction of the step save together at most (0..1).

    A cause is removed once, by the best of its answers, and never saves more than its bound; a strategy that answers several causes saves
    its own gain once. What conflicts with a strategy already chosen is left out, and so is what no finding asks for: no finding shows the
    time it would save.
    """
    chosen: dict[str, float] = {}
    for cause in sorted(bounds, key=lambda name: -bounds[name]):
        offers = [
            (min(gain - chosen.get(item.id, 0.0), bounds[cause]), item.id)
            for item, gain in gains
            if cause in (item.answers or (item.cause,)) and not any(_conflict(item.id, other, catalogue) for other in chosen)
        ]
        most, name = max(offers, default=(0.0, ""))
        if most > 0:
            chosen[name] = chosen.get(name, 0.0) + most
    return min(_NONE_LOST, sum(chosen.values()))


def _conflict(one: str, other: str, catalogue: Catalogue) -> bool:
    known = catalogue.strategies
    return (one in known and other in known[one].conflicts) or (other in known and one in known[other].conflicts)
