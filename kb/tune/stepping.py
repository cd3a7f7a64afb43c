"""Steps of a plan, one after the other on the simulator: each is run, profiled again and compared before the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from kb.domain.catalogue import Catalogue, Command, Strategy, StrategyId
from kb.domain.comparison import Comparison
from kb.domain.protocols import Progress
from kb.domain.recommendation import Constraints
from kb.domain.text import Text
from kb.errors import UsageError
from kb.profile.simulated.memory import OutOfDeviceMemoryError
from kb.profile.simulated.options import Options
from kb.profile.simulated.setup import Setup
from kb.session.session import Session
from kb.tune.application import Application, apply, setup_for
from kb.tune.figures import Figures, figures_of
from kb.tune.judging import LEAST_NOISE, MEAN_NOISE, judge
from kb.tune.precision import precision_loss
from kb.tune.refusal import AlreadyAppliedError, NotSimulatableError

Status = Literal["kept", "rolled_back", "conflict", "refused", "in_place", "by_hand"]
"""``refused``: the chip or the job cannot do it; ``in_place``: it is set already; ``by_hand``: the simulator does not model it."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step and what became of it. ``gain`` is of the target (see ``judging.Judgement``), None when nothing ran.

    ``commands`` are those of the real tools; ``roll_back`` says how to undo them on a machine.
    """

    strategy: StrategyId
    status: Status
    reasons: tuple[Text, ...]
    changed: Text = Text()
    gain: float | None = None
    comparison: Comparison | None = None
    before: Figures
    after: Figures | None = None
    commands: tuple[Command, ...] = ()
    roll_back: Text = Text()


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A run and its figures. ``first`` is the setup that precision losses count from."""

    session: Session
    setup: Setup
    figures: Figures
    first: Setup


def state_of(session: Session, catalogue: Catalogue, first: Setup | None = None) -> State:
    """The state of a simulated session."""
    setup = setup_for(session, catalogue)
    begin = setup if first is None else first
    figures = figures_of(session, setup.options, precision_loss=precision_loss(begin, setup))
    return State(session=session, setup=setup, figures=figures, first=begin)


def run_steps(
    session: Session, strategies: Sequence[StrategyId], catalogue: Catalogue, constraints: Constraints, progress: Progress
) -> tuple[State, tuple[Step, ...]]:
    """Every strategy in order, each on what the kept ones before it left. Returns the last state and what became of each.

    Raises NotSimulatableError for a measured session, NotFoundError for an unknown strategy, chip or simulator version.
    """
    state = state_of(session, catalogue)
    chosen = [catalogue.strategy(name) for name in strategies]
    kept: list[Strategy] = []
    steps: list[Step] = []
    for number, strategy in enumerate(chosen):
        progress("steps", number, len(chosen))
        against = conflicts(strategy, kept)
        if against:
            steps.append(_not_run(state, strategy, "conflict", against))
            continue
        state, step = try_step(state, strategy, catalogue, constraints)
        steps.append(step)
        if step.status == "kept":
            kept.append(strategy)
    progress("steps", len(chosen), len(chosen))
    return state, tuple(steps)


def try_step(state: State, strategy: Strategy, catalogue: Catalogue, constraints: Constraints) -> tuple[State, Step]:
    """One strategy: the new state when it is kept, else the old one, and what happened."""
    try:
        done = apply(state.session, strategy.id, catalogue)
    except AlreadyAppliedError as error:
        return state, _not_run(state, strategy, "in_place", (_plain(error.what),))
    except NotSimulatableError as error:
        if state.session.meta.origin != "simulated":
            raise
        return state, _not_run(state, strategy, "by_hand", (_plain(error.what),))
    except (OutOfDeviceMemoryError, UsageError) as error:
        return state, _not_run(state, strategy, "refused", (_plain(error.what),))
    after = state_of(done.after, catalogue, state.first)
    judged = judge(state.figures, after.figures, constraints, noise_of(done))
    step = Step(
        strategy=strategy.id,
        status="kept" if judged.keep else "rolled_back",
        reasons=judged.reasons,
        changed=done.changed,
        gain=judged.gain,
        comparison=done.comparison,
        before=state.figures,
        after=after.figures,
        commands=strategy.commands,
        roll_back=strategy.roll_back,
    )
    return (after if judged.keep else state), step


def noise_of(done: Application) -> float:
    """The comparison's noise band between what two runs of one seed can differ by at least and at most."""
    return min(max(done.comparison.noise_fraction, LEAST_NOISE), MEAN_NOISE)


def conflicts(strategy: Strategy, kept: Sequence[Strategy]) -> tuple[Text, ...]:
    """Why ``strategy`` cannot stand beside those in place: the catalogue names the conflict on either side."""
    against = [other.id for other in kept if other.id in strategy.conflicts or strategy.id in other.conflicts]
    return tuple(Text(f"与已采用的 {name} 冲突，未执行", f"conflicts with {name}, which is in place: not run") for name in against)


def changed_options(before: Options, after: Options) -> dict[str, tuple[object, object]]:
    """Options that differ, with both values."""
    pairs = {name: (getattr(before, name), getattr(after, name)) for name in Options.__struct_fields__}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _not_run(state: State, strategy: Strategy, status: Status, reasons: tuple[Text, ...]) -> Step:
    return Step(
        strategy=strategy.id,
        status=status,
        reasons=reasons,
        before=state.figures,
        commands=strategy.commands,
        roll_back=strategy.roll_back,
    )


def _plain(what: str) -> Text:
    return Text(what, what)
