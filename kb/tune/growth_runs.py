"""One random run with everything tried on it: what the journal of a growing casebook holds, a line each."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from kb.diagnose.diagnosis import diagnose
from kb.domain.catalogue import Catalogue, CauseId, StrategyId
from kb.domain.diagnosis import Diagnosis
from kb.domain.soc import SocFamily
from kb.profile.simulated.lengths import Memo
from kb.profile.simulated.options import Setting
from kb.profile.simulated.run import simulate_ranks
from kb.profile.simulated.setup import SIMULATOR, Setup, as_options
from kb.recommend.traits import traits
from kb.session.session import Session
from kb.tune.growth import drawn, family_of
from kb.tune.growth_trials import Trial, applicable, idle, phase_of, trials


class GrownRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Run ``number`` of ``seed``. ``group`` is the model family; ``causes`` those found, with the share each can save at most;
    ``idle`` the strategies that are in place or mean nothing here."""

    seed: int
    number: int
    name: str
    model: str
    model_type: str | None
    group: str
    phase: str
    soc: str
    soc_family: SocFamily
    devices: int
    simulator: str
    options: Mapping[str, str | Setting]
    causes: Mapping[CauseId, float]
    traits: Mapping[str, float]
    trials: tuple[Trial, ...]
    idle: tuple[StrategyId, ...]

    @property
    def key(self) -> str:
        """Equal for runs of equal settings, whatever their noise: they tell the same story twice."""
        told = {name: value for name, value in self.options.items() if name not in ("seed", "noise")}
        return hashlib.sha256(msgspec.json.encode(sorted(told.items()))).hexdigest()[:16]


def grown_run(seed: int, number: int, catalogue: Catalogue) -> GrownRun:
    """Draw a run, diagnose what its profile shows, and try every strategy with a twin on it."""
    setup = drawn(seed, number, catalogue.socs)
    sessions, diagnosis = diagnosed(setup, catalogue)
    memo: Memo = {}
    tried = tuple(trials(setup, [(name,) for name in applicable(setup, catalogue)], memo))
    return GrownRun(
        seed=seed, number=number, name=setup.name, model=setup.model, model_type=sessions[0].meta.model.type, group=family_of(setup.model),
        phase=phase_of(setup), soc=setup.soc.id, soc_family=setup.soc.family, devices=setup.options.world_size, simulator=SIMULATOR,
        options=as_options(setup), causes=bounds(diagnosis), traits=rounded(traits(sessions, diagnosis, catalogue.socs)), trials=tried,
        idle=idle(setup, catalogue),
    )  # fmt: skip


def diagnosed(setup: Setup, catalogue: Catalogue) -> tuple[tuple[Session, ...], Diagnosis]:
    """The sessions of all ranks, without the settings that made them, and their diagnosis: all that a recommendation may see of a run."""
    sessions = tuple(_bare(session) for session, _ in simulate_ranks(setup))
    return sessions, diagnose(sessions, catalogue)


def _bare(session: Session) -> Session:
    return Session(msgspec.structs.replace(session.meta, options={}, simulator=None), session.tables, session.strings)


def bounds(diagnosis: Diagnosis) -> dict[CauseId, float]:
    """Found causes with the share of the step each can save at most, the largest first."""
    found: dict[CauseId, float] = {}
    for finding in diagnosis.all_findings():
        share = finding.share * finding.gain_bound_ns / finding.exposed_ns if finding.exposed_ns else 0.0
        found[finding.cause] = max(found.get(finding.cause, 0.0), round(share, 5))
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def rounded(values: Mapping[str, float]) -> dict[str, float]:
    """Five digits: more would only be noise."""
    return {name: float(f"{value:.5g}") for name, value in values.items()}
