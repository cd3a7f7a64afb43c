"""Job: sessions from paths, and their diagnosis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kb.diagnose.diagnosis import diagnose
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


def diagnose_paths(paths: Sequence[Path], *, template: Template | None = None) -> Diagnosed:
    """Load every path and diagnose all sessions together. Raises UnusableCaptureError where nothing can be read."""
    return diagnose_sessions(load_paths(paths), shipped_catalogue(), template=template)


def load_paths(paths: Sequence[Path]) -> tuple[Session, ...]:
    """The sessions of every path, in order. Raises UnusableCaptureError where nothing can be read."""
    return tuple(session for path in paths for session in load(path))


def diagnose_sessions(sessions: tuple[Session, ...], catalogue: Catalogue, *, template: Template | None = None) -> Diagnosed:
    """The same for sessions already in memory."""
    return Diagnosed(sessions, diagnose(sessions, catalogue, template=template), catalogue)
