"""Job: a casebook that grows itself: random runs, every strategy tried on each, and what can be learnt from that."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

import msgspec

from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Progress
from kb.domain.record import Record
from kb.errors import UsageError
from kb.profile.simulated.setup import SIMULATOR
from kb.recommend.experience import GainModel
from kb.recommend.fitting import fit_gains
from kb.recommend.gain_weights import load_gain_weights
from kb.recommend.outcomes import table_of
from kb.tune.growth_journal import append, current, distinct, opened, read_journal
from kb.tune.growth_records import record_of
from kb.tune.growth_runs import GrownRun, grown_run
from kb.workflow.location import shipped_catalogue

LEAST_RUNS = 20
"""Fewer runs say nothing about model families left out."""
_AHEAD = 4
"""Runs handed to each process in advance."""


class Grown(msgspec.Struct, frozen=True, kw_only=True):
    """``runs`` in the journal, of them ``made`` now and ``repeated`` with the settings of an earlier one; ``cases`` outcomes."""

    runs: int
    made: int
    repeated: int
    cases: int


def grow(journal: Path, *, sessions: int, seed: int, jobs: int, progress: Progress) -> Grown:
    """Runs 0 to ``sessions`` - 1 of ``seed``, those the journal holds already left out.

    Each finished run is in the journal before the next is waited for: an interruption loses none, and the same call goes on.
    """
    if sessions < 1 or jobs < 1 or seed < 0:
        raise UsageError(f"{sessions} sessions, seed {seed}, {jobs} processes", allowed="sessions and processes from 1, seed from 0")
    opened(journal)
    held = {run.number for run in current(read_journal(journal), seed)}
    missing = [number for number in range(sessions) if number not in held]
    for done, run in enumerate(_runs(missing, seed, jobs, progress), 1):
        append(journal, run)
        progress("runs", done, len(missing))
    found = [run for run in current(read_journal(journal), seed) if run.number < sessions]
    kept = distinct(found)
    cases = sum(len(run.trials) for run in kept)
    return Grown(runs=len(found), made=len(missing), repeated=len(found) - len(kept), cases=cases)


def _runs(numbers: Sequence[int], seed: int, jobs: int, progress: Progress) -> Iterator[GrownRun]:
    """Finished runs as they come, from ``jobs`` processes."""
    progress("runs", 0, len(numbers))
    if not numbers:
        return
    pool = ProcessPoolExecutor(min(jobs, len(numbers)), initializer=_in_worker)
    try:
        waiting = iter(numbers)
        going: set[Future[GrownRun]] = set()
        for number in waiting:
            going.add(pool.submit(_one, seed, number))
            if len(going) >= jobs * _AHEAD:
                done, going = wait(going, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        while going:
            done, going = wait(going, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _in_worker() -> None:
    """The parent hears Ctrl-C and stops the work; a worker finishes its run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _one(seed: int, number: int) -> GrownRun:
    return grown_run(seed, number, shipped_catalogue())


def records_of(journal: Path, *, seed: int, sessions: int, catalogue: Catalogue) -> tuple[Record, ...]:
    """The ``case`` records of the distinct runs of ``seed`` in the journal, the first ``sessions``."""
    runs = [run for run in current(read_journal(journal), seed) if run.number < sessions]
    return tuple(record_of(run, catalogue) for run in distinct(runs))


def fitted(journal: Path, *, seed: int, sessions: int, progress: Progress) -> GainModel:
    """What the journal's runs of ``seed`` teach. Raises UsageError for too few."""
    records = records_of(journal, seed=seed, sessions=sessions, catalogue=shipped_catalogue())
    if len(records) < LEAST_RUNS:
        raise UsageError(f"{len(records)} runs of seed {seed}", allowed=f"at least {LEAST_RUNS}", do="grow more with --sessions")
    made = {"command": f"kb grow --sessions {sessions} --seed {seed}", "seed": str(seed), "simulator": SIMULATOR}
    return fit_gains(table_of(records, made), load_gain_weights(), progress)
