"""Job: steps of a plan, tried on the simulator or, on a machine, judged from the profile taken after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from kb.compare.comparison import compare
from kb.diagnose.diagnosis import diagnose
from kb.domain.catalogue import Catalogue, StrategyId
from kb.domain.comparison import Comparison
from kb.domain.plan import Plan, PlanStep
from kb.domain.protocols import Progress
from kb.domain.recommendation import Constraints
from kb.domain.text import Text
from kb.errors import NotComparableError, UnusableCaptureError
from kb.profile.sources import load
from kb.recommend.plan import plan
from kb.session.session import Session
from kb.tune.identity import other_model
from kb.tune.judging import Limit, limits_of
from kb.tune.stepping import State, Step, run_steps, state_of
from kb.workflow.casebook import Casebook
from kb.workflow.compare import pair
from kb.workflow.diagnose import Diagnosed, diagnose_sessions
from kb.workflow.recommend import recommend_for

_POLL_S = 2.0


class Stepped(msgspec.Struct, frozen=True, kw_only=True):
    """A plan run on the simulator: the state it ended in, and what became of each step."""

    begin: State
    end: State
    steps: tuple[Step, ...]
    limits: tuple[Limit, ...]


class OnMachine(msgspec.Struct, frozen=True, kw_only=True):
    """A real change judged from two profiles. ``keep`` False: undo it, ``roll_back`` says how. None: cannot be told."""

    strategy: StrategyId | None
    comparison: Comparison
    keep: bool | None
    reasons: tuple[Text, ...]
    roll_back: Text


def planned(casebook: Casebook, session: Session, strategies: Sequence[StrategyId], constraints: Constraints) -> Plan:
    """The steps for a session: those of ``strategies`` where named, else the recommended ones, with commands and roll-back."""
    diagnosed = diagnose_sessions((session,), casebook.catalogue)
    recommendation = recommend_for(casebook, diagnosed, constraints)
    own = plan(recommendation, diagnosed.diagnosis, casebook.catalogue, limit=max(3, len(strategies)))
    if not strategies:
        return own
    ready = {step.strategy: step for step in plan(recommendation, diagnosed.diagnosis, casebook.catalogue, limit=1000).steps}
    ids = [casebook.catalogue.strategy(name).id for name in strategies]
    return Plan(session=session.meta.name, steps=tuple(ready[name] if name in ready else _bare(name, diagnosed) for name in ids))


def _bare(name: StrategyId, diagnosed: Diagnosed) -> PlanStep:
    strategy = diagnosed.catalogue.strategy(name)
    return PlanStep(
        strategy=strategy.id,
        priority="P3",
        title=strategy.name,
        commands=strategy.commands,
        expected_gain_fraction=0.0,
        provenance="claimed",
        verify=strategy.verify,
        roll_back=strategy.roll_back,
    )


def stepped(
    session: Session, strategies: Sequence[StrategyId], catalogue: Catalogue, constraints: Constraints, progress: Progress
) -> Stepped:
    """Run the steps on the simulator, each verified before the next."""
    begin = state_of(session, catalogue)
    end, steps = run_steps(session, strategies, catalogue, constraints, progress)
    return Stepped(begin=begin, end=end, steps=steps, limits=limits_of(constraints, end.figures))


def judged_on_machine(
    before: Sequence[Session], after: Path, strategy: StrategyId | None, catalogue: Catalogue, constraints: Constraints
) -> OnMachine:
    """Judge a change made on a machine from the profile at ``after``.

    Raises NotComparableError when it shows another model, chip or world size, or is the same capture again.
    """
    first, second = pair(tuple(before), load(after))
    refuse_foreign(first, second)
    diagnoses = diagnose([first], catalogue).sessions[0], diagnose([second], catalogue).sessions[0]
    comparison = compare(first, second, diagnoses=diagnoses)
    if comparison.verdict == "not_comparable":
        raise _refused("; ".join(reason.en for reason in comparison.reasons))
    chosen = catalogue.strategy(strategy) if strategy is not None else None
    keep, reasons = _verdict(comparison, constraints)
    return OnMachine(
        strategy=chosen.id if chosen is not None else None,
        comparison=comparison,
        keep=keep,
        reasons=reasons,
        roll_back=chosen.roll_back if chosen is not None and keep is False else Text(),
    )


def refuse_foreign_paths(before: Path, after: Path) -> None:
    """The same for captures at two paths."""
    refuse_foreign(*pair(load(before), load(after)))


def refuse_foreign(before: Session, after: Session) -> None:
    """Raises NotComparableError when ``after`` is ``before`` itself or shows another model."""
    if _equal(before, after):
        raise _refused("it is the same capture as the one before the change")
    names = before.meta.model.name, after.meta.model.name
    if None not in names and names[0] != names[1]:
        raise _refused(f"it shows the model {names[1]}, the profile before shows {names[0]}")
    why = other_model(before, after)
    if why is not None:
        raise _refused(why.en)


def _equal(before: Session, after: Session) -> bool:
    kernels = before.table("kernels"), after.table("kernels")
    if kernels[0] is None or kernels[1] is None or len(kernels[0]) != len(kernels[1]):
        return False
    return all(bool((kernels[0][name] == kernels[1][name]).all()) for name in ("start_ns", "duration_ns"))


def _refused(why: str) -> NotComparableError:
    return NotComparableError(
        f"the new profile is refused: {why}",
        allowed="a profile of the same model on the same chip and job, taken after the change",
        do="capture the changed run again, and check which folder it went to",
    )


def _verdict(comparison: Comparison, constraints: Constraints) -> tuple[bool | None, tuple[Text, ...]]:
    limit = constraints.max_latency_ns
    if limit is not None and comparison.before_step_ns <= limit < comparison.after_step_ns:
        figures = f"{comparison.after_step_ns / 1e6:.4g} ms", f"{limit / 1e6:.4g} ms"
        return False, (Text(f"单步 {figures[0]} 超过限制 {figures[1]}", f"a step of {figures[0]} breaks the limit of {figures[1]}"),)
    if comparison.verdict == "improved":
        return True, (Text("超出噪声的改善，保留", "better beyond the noise: keep it"),)
    if comparison.verdict == "regressed":
        return False, (Text("超出噪声的退化，回退", "worse beyond the noise: roll it back"),)
    return None, comparison.reasons or (Text("差异在噪声内", "the difference is within the noise"),)


def awaited(
    path: Path, seconds: float, *, sleep: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic
) -> Path:
    """``path`` once it is there and has stopped growing for a poll. Raises UnusableCaptureError after ``seconds``."""
    end, size = clock() + seconds, -1
    while True:
        now = _size(path)
        if now >= 0 and now == size:
            return path
        if clock() >= end:
            raise UnusableCaptureError(
                f"{path} did not come within {seconds:g} s" if now < 0 else f"{path} is still growing after {seconds:g} s",
                allowed="the folder or file of the new profile",
                do="run the commands above, capture, then call again; --wait SECONDS waits longer",
            )
        size = now
        sleep(min(_POLL_S, max(0.0, end - clock())))


def _size(path: Path) -> int:
    """B of a file or of all files below a folder; -1 when there is nothing."""
    if path.is_file():
        return path.stat().st_size
    if not path.is_dir():
        return -1
    files = [item.stat().st_size for item in path.rglob("*") if item.is_file()]
    return sum(files) if files else -1
