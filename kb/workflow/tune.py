"""Job: tune a simulated run in a closed loop, with a journal in the workspace."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kb.domain.protocols import Progress
from kb.domain.recommendation import Constraints, Recommendation
from kb.errors import UsageError
from kb.profile.simulated.setup import Setup
from kb.session.session import Session
from kb.tune.application import setup_for
from kb.tune.journal import Journal
from kb.tune.loop import Tuning, tune
from kb.tune.space import Knob
from kb.tune.trials import Bounds, header_of
from kb.workflow.casebook import Casebook
from kb.workflow.diagnose import diagnose_sessions
from kb.workflow.recommend import recommend_for
from kb.workflow.workspace import Workspace


def tune_setup(
    casebook: Casebook,
    setup: Setup,
    constraints: Constraints,
    *,
    bounds: Bounds,
    progress: Progress,
    journal: Path | None,
    rank: int = 0,
    space: Sequence[Knob] | None = None,
    knobs: bool = True,
    strategies: bool = True,
) -> tuple[Tuning, Session]:
    """Tune a setup with advice from the casebook. ``journal`` None keeps no journal."""

    def advise(session: Session) -> Recommendation:
        return recommend_for(casebook, diagnose_sessions((session,), casebook.catalogue), constraints)

    with Journal(journal, header_of(setup, constraints)) as kept:
        return tune(
            setup,
            casebook.catalogue,
            constraints,
            advise,
            kept,
            bounds=bounds,
            progress=progress,
            rank=rank,
            space=space,
            knobs=knobs,
            strategies=strategies,
        )


def setup_in(session: Session, casebook: Casebook) -> Setup:
    """The setup of a simulated session. Raises UsageError for a measured one, which cannot be run here."""
    if session.meta.origin != "simulated":
        raise UsageError(
            f"{session.meta.name} was measured on hardware: it cannot be run again here",
            allowed="a simulated session or a built-in model",
            do="get its plan with kb apply SESSION, make one change, capture again, and hand both to kb apply --after",
        )
    return setup_for(session, casebook.catalogue)


def default_journal(place: Workspace, setup: Setup, constraints: Constraints) -> Path:
    """The journal of a run: equal runs share it, so that an interrupted one goes on."""
    header = msgspec.json.encode(header_of(setup, constraints))
    return place.home / "tuning" / f"{setup.model}-{setup.soc.id}-{hashlib.sha256(header).hexdigest()[:12]}.jsonl"
