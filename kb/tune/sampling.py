"""Which settings of numeric knobs to try next: asked of Optuna's Parzen estimator, or walked one coordinate at a time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kb.tune.space import Choice, Knob

if TYPE_CHECKING:
    from optuna.study import Study

Tell = Callable[[float | None], None]
Asked = Iterator[tuple[Mapping[str, Choice], Tell]]
"""Settings to try, each with the function that takes its score, the smaller the better (None = it could not run)."""
DRAWS = 200
"""Blind draws for one untried setting before the space counts as exhausted."""


def sampled(space: Sequence[Knob], starts: Sequence[Mapping[str, Choice]], *, seed: int, most: int) -> Asked:
    """``starts``, then what the tree-structured Parzen estimator asks for, ``most`` in all. Needs Optuna."""
    from optuna.distributions import BaseDistribution, CategoricalDistribution
    from optuna.trial import TrialState

    study = _study(seed)
    for values in starts:
        study.enqueue_trial(dict(values), skip_if_exists=True)
    choices: dict[str, BaseDistribution] = {knob.name: CategoricalDistribution(knob.values) for knob in space}
    for _ in range(most):
        trial = study.ask(choices)

        def tell(score: float | None, number: int = trial.number) -> None:
            if score is None:
                study.tell(number, state=TrialState.FAIL)
            else:
                study.tell(number, score)

        yield trial.params, tell


def _study(seed: int) -> Study:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=6, multivariate=False)
    return optuna.create_study(direction="minimize", sampler=sampler)


class _Seen:
    """Scores told so far, by setting; settings that could not run are infinitely costly."""

    def __init__(self, space: Sequence[Knob]) -> None:
        self.space = space
        self.scores: dict[tuple[Choice, ...], float] = {}

    def ask(self, setting: tuple[Choice, ...]) -> Asked:
        """Yields the setting unless its score is known."""
        if setting not in self.scores:
            self.scores[setting] = float("inf")
            yield dict(zip((knob.name for knob in self.space), setting, strict=True)), lambda score: self._told(setting, score)

    def _told(self, setting: tuple[Choice, ...], score: float | None) -> None:
        self.scores[setting] = float("inf") if score is None else score

    def best(self) -> tuple[Choice, ...]:
        """The cheapest setting, the earliest of equal ones."""
        return min(self.scores, key=self.scores.__getitem__)


def walked(space: Sequence[Knob], starts: Sequence[Mapping[str, Choice]], *, seed: int, most: int) -> Asked:
    """``starts``, then from the best of them one knob after the other, a step taken as soon as it is better; where no single
    knob helps any more, untried settings drawn at random, and on from any that is better. ``most`` in all, none twice."""
    for number, item in enumerate(_walk(_Seen(space), starts, random.Random(seed))):  # noqa: S311  # a search, no secret
        if number == most:
            return
        yield item


def _walk(seen: _Seen, starts: Sequence[Mapping[str, Choice]], draw: random.Random) -> Asked:
    for values in starts:
        yield from seen.ask(tuple(values[knob.name] for knob in seen.space))
    settings = [tuple(knob.values[0] for knob in seen.space)] if not seen.scores else []
    while True:
        for setting in settings:
            yield from seen.ask(setting)
        yield from _descent(seen)
        fresh = _untried(seen, draw)
        if fresh is None:
            return
        settings = [fresh]


def _descent(seen: _Seen) -> Asked:
    """One knob at a time around the best setting until a whole round finds nothing better."""
    centre = None
    while centre != seen.best():
        centre = seen.best()
        for place, knob in enumerate(seen.space):
            here = seen.best()
            for value in knob.values:
                yield from seen.ask((*here[:place], value, *here[place + 1 :]))


def _untried(seen: _Seen, draw: random.Random) -> tuple[Choice, ...] | None:
    drawn = (tuple(draw.choice(knob.values) for knob in seen.space) for _ in range(DRAWS))
    return next((setting for setting in drawn if setting not in seen.scores), None)
