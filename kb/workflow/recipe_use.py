"""Job: apply what a recipe advises, and tell the recipe how it went."""

from __future__ import annotations

from typing import Final

from kb.domain.case import Result
from kb.domain.catalogue import StrategyId
from kb.domain.comparison import Verdict
from kb.domain.event import Event
from kb.domain.protocols import Store
from kb.domain.version import Ref, Version
from kb.errors import UsageError
from kb.workflow.apply import OnMachine, Stepped
from kb.workflow.events import use
from kb.workflow.evidence import RESULTS

_LARGEST: Final = 0.999
"""A gain is a fraction below 1; what is nearer to it is no run that can be believed to the last digit."""


def advised(version: Version) -> tuple[StrategyId, ...]:
    """Strategies the record reports to have worked, in its order. Raises UsageError for a record that reports none."""
    outcomes = [outcome for case in version.record.cases for outcome in case.outcomes]
    worked = tuple(dict.fromkeys(item.strategy for item in outcomes if item.result == "improved" and item.reported_to_work))
    if not worked:
        raise UsageError(
            f"{version.ref} reports no strategy that worked", allowed="a recipe with an outcome", do="kb show it, or name strategies"
        )
    return worked


def record_trial(store: Store, ref: Ref, done: Stepped, *, author: str) -> Event | None:
    """A ``used`` event of a simulated trial: the whole way from the first run to the last kept one. None when nothing ran."""
    ran = [step for step in done.steps if step.comparison is not None]
    if not ran:
        return None
    kept = any(step.status == "kept" for step in ran)
    regressed = any(step.comparison is not None and step.comparison.verdict == "regressed" for step in ran)
    result: Result = "improved" if kept else "worse" if regressed else "no_gain"
    begin, end = done.begin.figures, done.end.figures
    gain = 1.0 - (end.latency_ns / end.samples) / (begin.latency_ns / begin.samples) if kept else 0.0
    names = ", ".join(step.strategy for step in ran)
    note = f"simulated: {done.begin.session.meta.name}, {names}; time of a sample"
    return use(store, ref, author=author, result=result, gain_fraction=min(max(gain, -1.0), _LARGEST), note=note)


def record_change(store: Store, ref: Ref, done: OnMachine, *, author: str) -> Event | None:
    """A ``used`` event of a change judged from two captures of a machine. None where they cannot be compared."""
    verdict: Verdict = done.comparison.verdict
    if verdict not in RESULTS:
        return None
    before, after = done.comparison.before_step_ns, done.comparison.after_step_ns
    gain = 1.0 - after / before if before else 0.0
    note = f"{done.strategy or 'a change'}: {done.comparison.before} to {done.comparison.after}"
    return use(store, ref, author=author, result=RESULTS[verdict], gain_fraction=min(max(gain, -1.0), _LARGEST), note=note)
