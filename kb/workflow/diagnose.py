"""Job: sessions from paths, and their diagnosis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kb.diagnose.diagnosis import diagnose_views, views_of
from kb.diagnose.view import RankView
from kb.domain.catalogue import Catalogue
from kb.domain.diagnosis import Diagnosis
from kb.domain.template import Template
from kb.profile.sources import load
from kb.session.session import Session
from kb.workflow.location import shipped_catalogue


@dataclass(frozen=True)
class Diagnosed:
    """Sessions in the order of their diagnoses."""

    sessions: tuple[Session, ...]
    diagnosis: Diagnosis
    catalogue: Catalogue
    views: tuple[RankView, ...] = ()
    """What the diagnosis was made from, one view a session; empty where it was not made here."""


def diagnose_paths(paths: Sequence[Path], *, template: Template | None = None, soc: str = "", export: bool = False) -> Diagnosed:
    """Load every path and diagnose all sessions together.

    ``soc`` names the chip where the captures do not; ``export`` runs the profiler's own tool on raw captures first. Raises
    UnusableCaptureError where nothing can be read, NotFoundError for an unknown chip, KbError when the tool fails.
    """
    if export:
        from kb.profile.exporting import export_raw  # subprocess costs 10 ms that readable captures need not pay

        for path in paths:
            export_raw(path)
    sessions, catalogue = load_paths(paths), shipped_catalogue()
    if soc:
        from kb.workflow.health import with_soc  # the words of the health report cost 5 ms

        sessions = with_soc(sessions, soc, catalogue)
    return diagnose_sessions(sessions, catalogue, template=template)


def load_paths(paths: Sequence[Path]) -> tuple[Session, ...]:
    """The sessions of every path, in order. Raises UnusableCaptureError where nothing can be read.

    Files are cited relative to their path; with several paths the path as given comes first, so that equal names in
    two captures stay apart.
    """
    if len(paths) == 1:
        return load(paths[0])
    return tuple(_rooted(session, str(path)) for path in paths for session in load(path))


def _rooted(session: Session, root: str) -> Session:
    cited = {int(code) for table in session.tables.values() if "file" in table for code in np.unique(table["file"]) if code >= 0}
    strings = tuple(f"{root}/{text}" if code in cited else text for code, text in enumerate(session.strings))
    return Session(session.meta, session.tables, strings)


def diagnose_sessions(sessions: tuple[Session, ...], catalogue: Catalogue, *, template: Template | None = None) -> Diagnosed:
    """The same for sessions already in memory."""
    views = views_of(sessions, catalogue)
    return Diagnosed(sessions, diagnose_views(views, catalogue, template=template), catalogue, views)
