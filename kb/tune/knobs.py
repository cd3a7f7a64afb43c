"""Search over numeric knobs, beginning where the casebook points: with Optuna where it is installed, else by coordinates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Literal

import msgspec

from kb.domain.catalogue import StrategyId
from kb.domain.recommendation import Constraints
from kb.domain.text import Text
from kb.profile.simulated.options import Options
from kb.profile.simulated.twins import TWINS
from kb.tune.figures import Figures
from kb.tune.judging import cost, excess
from kb.tune.sampling import sampled, walked
from kb.tune.space import Choice, Knob, turned, value_of

Method = Literal["optuna", "coordinates"]
Try = Callable[[Options, str], tuple[Figures | None, float]]
"""Figures of options (None when they cannot run) and the noise against the state the search began from."""
MISSED_WEIGHT = 10.0
"""A limit missed by 10 % weighs as much as a target twice as costly: first the limits, then the target."""


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """A starting point, and where it comes from ("present" or a strategy of the casebook)."""

    source: str
    values: Mapping[str, Choice]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The best values of a search, None when nothing could run; ``tried`` counts distinct settings."""

    values: Mapping[str, Choice] | None
    figures: Figures | None
    noise: float
    tried: int
    seeds: tuple[Suggestion, ...]


def suggestions(space: Sequence[Knob], options: Options, strategies: Sequence[StrategyId]) -> tuple[Suggestion, ...]:
    """Starting points: the present values, then each recommended strategy that turns a knob of the space, then all at once."""
    present = {knob.name: _nearest(knob, value_of(options, knob.name)) for knob in space}
    found = [Suggestion(source="present", values=present)]
    together = dict(present)
    for strategy in strategies:
        moved = _moved(space, options, strategy)
        if moved:
            together |= moved
            found.append(Suggestion(source=strategy, values=present | moved))
    if len(found) > 2:
        found.append(Suggestion(source="all of them", values=together))
    return tuple(found)


def _moved(space: Sequence[Knob], options: Options, strategy: StrategyId) -> dict[str, Choice]:
    change = TWINS.get(strategy)
    if change is None:
        return {}
    after = change.apply(options)
    pairs = ((knob, value_of(after, knob.name)) for knob in space)
    return {knob.name: _nearest(knob, value) for knob, value in pairs if value != value_of(options, knob.name)}


def _nearest(knob: Knob, value: Choice) -> Choice:
    """``value`` itself where it is offered, else the nearest number, else the first."""
    numbers = [item for item in knob.values if isinstance(item, int | float)]
    if value in knob.values or not numbers or isinstance(value, str):
        return value if value in knob.values else knob.values[0]
    return min(numbers, key=lambda item: abs(item - value))


def search(
    space: Sequence[Knob],
    options: Options,
    present: Figures,
    constraints: Constraints,
    attempt: Try,
    *,
    seeds: Sequence[Suggestion],
    trials: int,
    seed: int,
    method: Method,
) -> Found:
    """At most ``trials`` distinct settings, the seeds first. Deterministic for equal answers of ``attempt``."""
    ask = sampled if method == "optuna" else walked
    starts = [suggestion.values for suggestion in seeds]
    seen: dict[Options, tuple[Figures | None, float]] = {}
    best: tuple[float, Mapping[str, Choice]] | None = None
    for values, tell in ask(space, starts, seed=seed, most=4 * trials):
        changed = turned(options, values)
        if changed not in seen:
            if len(seen) >= trials:
                break
            seen[changed] = attempt(changed, _described(values))
        figures, _ = seen[changed]
        if figures is None:
            tell(None)
            continue
        score = score_of(figures, present, constraints)
        tell(score)
        if best is None or score < best[0]:
            best = score, values
    if best is None:
        return Found(values=None, figures=None, noise=0.0, tried=len(seen), seeds=tuple(seeds))
    figures, noise = seen[turned(options, best[1])]
    return Found(values=best[1], figures=figures, noise=noise, tried=len(seen), seeds=tuple(seeds))


def score_of(figures: Figures, present: Figures, constraints: Constraints) -> float:
    """What the search makes small: missed limits, then the target's cost over the present one."""
    target = constraints.target
    return MISSED_WEIGHT * excess(constraints, figures) + cost(target, figures) / max(cost(target, present), 1e-9)


def method_here() -> Method:
    """How this installation searches: Optuna is an extra."""
    return "optuna" if find_spec("optuna") is not None else "coordinates"


def _described(values: Mapping[str, Choice]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def said(values: Mapping[str, Choice]) -> Text:
    """The values as a line."""
    return Text(_described(values), _described(values))
