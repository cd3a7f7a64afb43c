"""Job: a session from the simulated backend."""

from __future__ import annotations

from kb.domain.catalogue import Catalogue
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import Setup, simulate
from kb.session.session import Session

DEFAULT_SOC = "910b2"


def simulated_session(catalogue: Catalogue, model: str, *, soc: str, seed: int, options: Options, name: str) -> Session:
    """One simulated run. The truth the simulator also knows is dropped: the diagnosis must not see it."""
    session, _truth = simulate(Setup(model=model, soc=catalogue.soc(soc), options=options, seed=seed, name=name))
    return session
