"""Trials of one tuning run: each set of options is simulated once, journaled, and served from the journal ever after."""

from __future__ import annotations

import hashlib
import time
from typing import Literal

import msgspec

from kb.compare.comparison import compare
from kb.domain.recommendation import Constraints
from kb.errors import KbError, UsageError
from kb.profile.simulated.memory import OutOfDeviceMemoryError
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import simulate_ranks
from kb.profile.simulated.setup import SIMULATOR, Setup
from kb.session.session import Session
from kb.tune.figures import Figures, figures_of
from kb.tune.journal import Entry, Header, Journal, key_of
from kb.tune.judging import LEAST_NOISE, MEAN_NOISE
from kb.tune.precision import precision_loss
from kb.tune.space import impossible

Kind = Literal["baseline", "strategy", "knobs"]


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run ends at the latest: ``trials`` in all (those of a resumed journal included), ``seconds`` of this process;
    ``knob_trials`` of them for one numeric search. ``devices`` limits the ranks of a job."""

    trials: int = 80
    seconds: float = 300.0
    knob_trials: int = 24
    devices: int = 1


class BudgetSpentError(KbError):
    """The run has reached its bound of trials or time; ``bound`` says which. Never leaves ``kb.tune``."""

    def __init__(self, bound: Literal["trials", "time"]) -> None:
        super().__init__(f"the bound of {bound} is reached")
        self.bound: Literal["trials", "time"] = bound


def header_of(setup: Setup, constraints: Constraints) -> Header:
    """What the journal of a run states about it."""
    return Header(
        simulator=SIMULATOR,
        model=setup.model,
        graph=hashlib.sha256(setup.graph.encode()).hexdigest() if setup.graph else "",
        soc=setup.soc.id,
        seed=setup.seed,
        options=msgspec.structs.asdict(setup.options),
        constraints=msgspec.to_builtins(constraints),
    )


class Trials:
    """Runs options on the simulator under bounds. ``replayed`` counts the trials the journal answered."""

    def __init__(self, setup: Setup, rank: int, journal: Journal, bounds: Bounds) -> None:
        """``setup`` is the baseline; trials differ from it in their options only. ``rank`` is the one that is profiled."""
        self.setup = setup
        self.bounds = bounds
        self.journal = journal
        self.replayed = 0
        self.ran = 0
        self._rank = rank
        self._begun = time.monotonic()
        self._sessions: dict[str, Session] = {}
        self._served: set[int] = set()

    @property
    def seconds(self) -> float:
        """Since the run began in this process."""
        return time.monotonic() - self._begun

    @property
    def count(self) -> int:
        """Trials made or replayed."""
        return self.replayed + self.ran

    def session(self, options: Options) -> Session:
        """The profile of options, simulated again when it is not the last one or the state before it."""
        key = _key(options)
        if key not in self._sessions:
            self._remember(key, self._simulated(options))
        return self._sessions[key]

    def run(self, options: Options, kind: Kind, name: str, against: Options | None) -> Entry:
        """One trial: figures of ``options``, or why they cannot run, and the noise of its comparison with ``against``.

        Raises BudgetSpentError instead of beginning one trial too many.
        """
        key, base = _key(options), "" if against is None else _key(against)
        known = self.journal.known(key, base)
        counted = known is None or (known.n < self.journal.begun and known.n not in self._served)
        # The baseline is what every bound is about: it always runs. A trial counts whether it runs or is served: a resumed run
        # ends where the whole one would.
        if counted and kind != "baseline" and self.count >= self.bounds.trials:
            raise BudgetSpentError("trials")
        if known is not None:
            self.replayed += counted
            self._served.add(known.n)
            return known
        if kind != "baseline" and self.seconds >= self.bounds.seconds:
            raise BudgetSpentError("time")
        begun = time.monotonic()
        figures, noise, why = self._measured(options, against)
        entry = Entry(
            n=self.journal.count,
            kind=kind,
            name=name,
            key=key,
            against=base,
            options=_moved(self.setup.options, options),
            figures=figures,
            noise=noise,
            why=why,
            wall_s=round(time.monotonic() - begun, 4),
        )
        self.journal.add(entry)
        self.ran += 1
        return entry

    def _measured(self, options: Options, against: Options | None) -> tuple[Figures | None, float, str]:
        reason = impossible(self._setup(options), max(self.bounds.devices, self.setup.options.world_size))
        if reason is not None:
            return None, 0.0, reason.en
        before = None if against is None else self.session(against)
        try:
            after = self._simulated(options)
        except (OutOfDeviceMemoryError, UsageError) as error:
            return None, 0.0, error.what
        self._remember(_key(options), after)
        noise = LEAST_NOISE if before is None else min(max(LEAST_NOISE, compare(before, after).noise_fraction), MEAN_NOISE)
        loss = precision_loss(self.setup, self._setup(options))
        return figures_of(after, options, precision_loss=loss), noise, ""

    def _simulated(self, options: Options) -> Session:
        rank = min(self._rank, options.world_size - 1)
        return simulate_ranks(self._setup(options), (rank,))[0][0]

    def _setup(self, options: Options) -> Setup:
        return msgspec.structs.replace(self.setup, options=options)

    def _remember(self, key: str, session: Session) -> None:
        """Keeps the last few profiles: the state and what was just tried. A profile can take tens of MB."""
        while len(self._sessions) >= _KEPT:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[key] = session


_KEPT = 3


def _key(options: Options) -> str:
    return key_of(msgspec.structs.asdict(options))


def _moved(before: Options, after: Options) -> dict[str, int | float | bool | str | None]:
    names = [name for name in Options.__struct_fields__ if getattr(before, name) != getattr(after, name)]
    return {name: getattr(after, name) for name in names}
