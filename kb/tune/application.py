"""Applies a strategy to a simulated session: run again with the twin's option changed, and compare."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from kb.compare.comparison import compare
from kb.domain.catalogue import Catalogue, Strategy, StrategyId
from kb.domain.comparison import Comparison, Verdict
from kb.domain.text import Text
from kb.errors import NotFoundError
from kb.profile.simulated.options import OptionChange, Options
from kb.profile.simulated.run import Setup, setup_of, simulate_ranks
from kb.profile.simulated.twins import TWINS
from kb.session.session import Session
from kb.tune.figures import samples_of
from kb.tune.refusal import AlreadyAppliedError, not_simulatable


@dataclass(frozen=True, slots=True)
class Application:
    """What one strategy did. ``after`` is simulated with the same seed; ``changed`` says which option moved.

    ``per_sample_gain`` = 1 - (after step / after samples) / (before step / before samples): equal to the comparison's
    gain unless the strategy changes how many samples a step has, when the steps are not the same work.
    """

    strategy: StrategyId
    before: Session
    after: Session
    changed: Text
    comparison: Comparison
    per_sample_gain: float

    @property
    def verdict(self) -> Verdict:
        """The comparison's verdict on the step."""
        return self.comparison.verdict


def apply(session: Session, strategy: StrategyId, catalogue: Catalogue) -> Application:
    """Apply ``strategy`` (id or alias) to ``session`` on the simulator.

    Raises NotSimulatableError with the commands for the user's machine when the session was measured or the
    strategy has no twin, AlreadyAppliedError when the option is already set, NotFoundError for an unknown
    strategy, chip or simulator version, and OutOfDeviceMemoryError when the changed run does not fit.
    """
    entry = catalogue.strategy(strategy)
    change = _twin(session, entry)
    setup = setup_for(session, catalogue)
    options = change.apply(setup.options)
    if options == setup.options:
        raise AlreadyAppliedError(
            f"{session.meta.name} already has {change.option} = {getattr(options, change.option)}",
            do=f"{entry.id} is in place: try another strategy",
        )
    changed = msgspec.structs.replace(setup, options=options, name=f"{setup.name}+{entry.id}")
    rank = min(session.meta.rank or 0, options.world_size - 1)
    after, _ = simulate_ranks(changed, (rank,))[0]
    comparison = compare(session, after)
    return Application(
        strategy=entry.id,
        before=session,
        after=after,
        changed=_description(change, setup.options, options),
        comparison=comparison,
        per_sample_gain=_per_sample_gain(comparison, samples_of(session, setup.options), samples_of(session, options)),
    )


def setup_for(session: Session, catalogue: Catalogue) -> Setup:
    """The setup that made a simulated session. Raises NotFoundError for an unknown chip or simulator version."""
    if session.meta.soc.id is None:
        raise NotFoundError(f"{session.meta.name} names no chip", do="simulate the case again with a chip of the catalogue")
    return setup_of(session, catalogue.soc(session.meta.soc.id))


def _twin(session: Session, strategy: Strategy) -> OptionChange:
    if session.meta.origin != "simulated":
        raise not_simulatable(strategy, f"{session.meta.name} was measured on hardware")
    change = TWINS.get(strategy.id)
    if change is None:
        raise not_simulatable(strategy, "the simulator does not model it")
    return change


def _description(change: OptionChange, before: Options, after: Options) -> Text:
    first, second = getattr(before, change.option), getattr(after, change.option)
    return Text(f"模拟器选项 {change.option}：{first} 改为 {second}", f"simulator option {change.option}: {first} to {second}")


def _per_sample_gain(comparison: Comparison, before: int, after: int) -> float:
    if not comparison.before_step_ns:
        return 0.0
    return 1.0 - (comparison.after_step_ns / after) / (comparison.before_step_ns / before)
