"""The closed loop: profile, recommend, apply, compare, on to the next bottleneck, until the limits hold or nothing credible is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from kb.domain.catalogue import Catalogue, CauseId, StrategyId
from kb.domain.protocols import Progress
from kb.domain.recommendation import Constraints, RankedStrategy, Recommendation
from kb.domain.text import Text
from kb.profile.simulated.options import Options
from kb.profile.simulated.setup import Setup
from kb.profile.simulated.twins import TWINS
from kb.session.session import Session
from kb.tune.figures import Figures
from kb.tune.journal import Entry, Journal
from kb.tune.judging import Limit, judge, limits_of
from kb.tune.knobs import Method, Suggestion, method_here, search, suggestions
from kb.tune.space import Choice, Cut, Knob, cut_space, default_space, turned
from kb.tune.stepping import changed_options, conflicts
from kb.tune.trials import Bounds, BudgetSpentError, Trials

Stop = Literal["limits_hold", "nothing_left", "trials", "time"]
Advise = Callable[[Session], Recommendation]
"""The recommendation for a profile under the run's limits."""
LEAST_EXPECTED = 0.002
"""A strategy whose interval ends below this fraction of the step is not worth a trial."""
ATTEMPTS = 2
"""Trials of one strategy: once more when another one has changed the run since."""


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One trial of the loop. ``strategy`` is empty for a search over knobs, which ``values`` then holds.

    ``expected`` is the recommended gain of the step (None for knobs), ``gain`` what the target got.
    """

    cause: CauseId
    strategy: StrategyId
    kept: bool
    expected: float | None
    interval: tuple[float, float] | None
    gain: float | None
    reasons: tuple[Text, ...]
    before: Figures
    after: Figures | None
    values: Mapping[str, Choice] = {}


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run. ``changed`` options with both values; ``by_hand`` strategies were recommended but are not simulated;
    ``seeds`` are the starting points of the numeric search, ``method`` how it went ("" without one).
    ``trials`` counts all, ``replayed`` those the journal answered."""

    baseline: Figures
    best: Figures
    options: Options
    changed: Mapping[str, tuple[object, object]]
    limits: tuple[Limit, ...]
    rounds: tuple[Round, ...]
    kept: tuple[StrategyId, ...]
    by_hand: tuple[StrategyId, ...]
    cuts: tuple[Cut, ...]
    seeds: tuple[Suggestion, ...]
    method: Method | Literal[""] = ""
    stop: Stop
    trials: int
    replayed: int
    seconds: float

    @property
    def met(self) -> bool:
        """Whether every limit that was set holds at the end."""
        return all(limit.holds for limit in self.limits)


def tune(
    setup: Setup,
    catalogue: Catalogue,
    constraints: Constraints,
    advise: Advise,
    journal: Journal,
    *,
    bounds: Bounds,
    progress: Progress,
    rank: int = 0,
    space: Sequence[Knob] | None = None,
    knobs: bool = True,
    strategies: bool = True,
    method: Method | None = None,
) -> tuple[Tuning, Session]:
    """Tune ``setup`` and return what happened and the last profile.

    The run ends as soon as limits that were missed at first all hold; limits that hold from the start only bound it. ``space``
    None is the usual one for the run; ``knobs`` False leaves numbers alone, ``strategies`` False everything else. Numbers are
    searched by ``method``, None: with Optuna where it is installed. Deterministic for equal inputs, method and casebook; with a
    journal of an earlier run the same trials are not run again. KeyboardInterrupt passes through with every finished trial kept.
    Raises what simulating the baseline raises.
    """
    trials = Trials(setup, rank, journal, bounds)
    run = _Loop(trials, catalogue, constraints, advise, progress, space, method or method_here())
    stop = run.until_done(knobs=knobs, strategies=strategies)
    return run.result(stop), trials.session(run.options)


class _Loop:
    """The state of one run: options and figures now, what was tried, and what is in place."""

    def __init__(
        self,
        trials: Trials,
        catalogue: Catalogue,
        constraints: Constraints,
        advise: Advise,
        progress: Progress,
        space: Sequence[Knob] | None,
        method: Method,
    ) -> None:
        self.trials, self.catalogue, self.constraints, self.advise, self.progress = trials, catalogue, constraints, advise, progress
        self.space, self.method = space, method
        self.options = trials.setup.options
        first = trials.session(self.options)
        entry = trials.run(self.options, "baseline", first.meta.name, None)
        # A baseline that cannot run has raised while it was simulated.
        self.baseline = self.figures = entry.figures or Figures(latency_ns=0, memory_b=0, samples=1)
        self.rounds: list[Round] = []
        self.kept: list[StrategyId] = []
        self.by_hand: list[StrategyId] = []
        self.cuts: list[Cut] = []
        self.seeds: tuple[Suggestion, ...] = ()
        self.attempts: dict[StrategyId, list[int]] = {}
        # Limits that hold from the start are budgets: the target is then improved inside them.
        self.has_goal = any(not limit.holds for limit in limits_of(constraints, self.figures))

    def until_done(self, *, knobs: bool, strategies: bool) -> Stop:
        """Strategies until none helps, then knobs, then strategies again while knobs helped."""
        try:
            while True:
                while strategies and not self._done() and self._next_strategy():
                    pass
                if self._done():
                    return "limits_hold"
                if not knobs or not self._search_knobs():
                    return "nothing_left" if not self._done() else "limits_hold"
        except BudgetSpentError as spent:
            return spent.bound

    def result(self, stop: Stop) -> Tuning:
        """What happened."""
        return Tuning(
            baseline=self.baseline,
            best=self.figures,
            options=self.options,
            changed=changed_options(self.trials.setup.options, self.options),
            limits=limits_of(self.constraints, self.figures),
            rounds=tuple(self.rounds),
            kept=tuple(self.kept),
            by_hand=tuple(dict.fromkeys(self.by_hand)),
            cuts=tuple(dict.fromkeys(self.cuts)),
            seeds=self.seeds,
            method=self.method if self.seeds else "",
            stop=stop,
            trials=self.trials.count,
            replayed=self.trials.replayed,
            seconds=self.trials.seconds,
        )

    def _done(self) -> bool:
        return self.has_goal and all(limit.holds for limit in limits_of(self.constraints, self.figures))

    def _next_strategy(self) -> bool:
        """Try the recommended strategies of this profile in their order until one stays; whether one did."""
        recommendation = self.advise(self.trials.session(self.options))
        self.by_hand += [item.id for item in recommendation.strategies if item.id not in TWINS]
        return any(self._try(item) for item in recommendation.strategies if self._credible(item))

    def _credible(self, item: RankedStrategy) -> bool:
        change = TWINS.get(item.id)
        tries = self.attempts.get(item.id, [])
        stale = len(tries) >= ATTEMPTS or (bool(tries) and tries[-1] == len(self.kept))
        if change is None or stale or item.interval[1] < LEAST_EXPECTED:
            return False
        return change.apply(self.options) != self.options

    def _try(self, item: RankedStrategy) -> bool:
        strategy = self.catalogue.strategy(item.id)
        against = conflicts(strategy, [self.catalogue.strategy(name) for name in self.kept])
        self.attempts.setdefault(item.id, []).append(len(self.kept))
        if against:
            self._note(item, None, kept=False, reasons=against)
            return False
        options = TWINS[item.id].apply(self.options)
        entry = self._run(options, "strategy", item.id)
        if entry.figures is None:
            # What chip, model or devices rule out stays ruled out.
            self.attempts[item.id] += [len(self.kept)] * ATTEMPTS
            self._note(item, None, kept=False, reasons=(Text(entry.why, entry.why),))
            return False
        judged = judge(self.figures, entry.figures, self.constraints, entry.noise)
        self._note(item, entry.figures, kept=judged.keep, reasons=judged.reasons, gain=judged.gain)
        if judged.keep:
            self.options, self.figures = options, entry.figures
            self.kept.append(item.id)
        return judged.keep

    def _note(
        self, item: RankedStrategy, after: Figures | None, *, kept: bool, reasons: tuple[Text, ...], gain: float | None = None
    ) -> None:
        self.rounds.append(
            Round(
                cause=item.cause,
                strategy=item.id,
                kept=kept,
                expected=item.gain_fraction,
                interval=item.interval,
                gain=gain,
                reasons=reasons,
                before=self.figures,
                after=after,
            )
        )

    def _run(self, options: Options, kind: Literal["strategy", "knobs"], name: str) -> Entry:
        entry = self.trials.run(options, kind, name, self.options)
        self.progress("trials", self.trials.count, self.trials.bounds.trials)
        return entry

    def _search_knobs(self) -> bool:
        """One numeric search around the present options; whether something better was found."""
        setup = msgspec.structs.replace(self.trials.setup, options=self.options)
        devices = max(self.trials.bounds.devices, self.options.world_size)
        whole = default_space(setup, self.constraints) if self.space is None else self.space
        space, cuts = cut_space(whole, setup, devices)
        self.cuts += cuts
        if not space:
            return False
        advice = self.advise(self.trials.session(self.options))
        seeds = suggestions(space, self.options, [item.id for item in advice.strategies])
        self.seeds = self.seeds or seeds

        def attempt(options: Options, name: str) -> tuple[Figures | None, float]:
            if options == self.options:
                return self.figures, 0.0
            entry = self._run(options, "knobs", name)
            return entry.figures, entry.noise

        found = search(
            space,
            self.options,
            self.figures,
            self.constraints,
            attempt,
            seeds=seeds,
            trials=self.trials.bounds.knob_trials,
            seed=self.trials.setup.seed,
            method=self.method,
        )
        if found.values is None or found.figures is None or turned(self.options, found.values) == self.options:
            return False
        return self._take(found.values, found.figures, found.noise)

    def _take(self, values: Mapping[str, Choice], figures: Figures, noise: float) -> bool:
        judged = judge(self.figures, figures, self.constraints, noise)
        options = turned(self.options, values)
        moved = {name: value for name, value in values.items() if turned(self.options, {name: value}) != self.options}
        self.rounds.append(
            Round(
                cause="",
                strategy="",
                kept=judged.keep,
                expected=None,
                interval=None,
                gain=judged.gain,
                reasons=judged.reasons,
                before=self.figures,
                after=figures,
                values=moved,
            )
        )
        if judged.keep:
            self.options, self.figures = options, figures
        return judged.keep
