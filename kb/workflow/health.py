"""Job: the health of what lies at a path, with the chip the user names and, when asked, the export of raw captures first."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from kb.domain.catalogue import Catalogue
from kb.domain.soc import SocRef
from kb.errors import UsageError
from kb.profile.exporting import export_raw
from kb.profile.sources import load
from kb.session.health import Health, assess
from kb.session.session import Session
from kb.workflow.location import shipped_catalogue


def health_of(path: Path, *, soc: str = "", export: bool = False) -> Health:
    """The health of every session at ``path``.

    ``soc`` names the chip where the capture does not. ``export`` runs the profiler's own tool on raw captures first. Raises
    NotFoundError for an unknown chip, KbError when the tool fails, UnusableCaptureError when nothing can be read.
    """
    if export:
        export_raw(path)
    sessions = load(path)
    return assess(with_soc(sessions, soc, shipped_catalogue()) if soc else sessions)


def with_soc(sessions: tuple[Session, ...], name: str, catalogue: Catalogue) -> tuple[Session, ...]:
    """The sessions on the chip the user names. Raises NotFoundError, UsageError where a capture names a chip of another family."""
    chip = catalogue.soc(name)
    for session in sessions:
        stated = session.meta.soc
        if stated.reported_name and stated.family not in ("unknown", chip.family):
            raise UsageError(
                f"{session.meta.name} ran on {stated.reported_name}, {name} is {chip.family}", allowed=f"a chip of {stated.family}"
            )
    named = SocRef(
        id=chip.id, reported_name=chip.name, family=chip.family, cores=round(chip.cube_cores.value),
        clock_mhz=chip.clock.value * (1000 if chip.clock.unit == "GHz" else 1), confidence="high", how="--soc",
    )  # fmt: skip
    return tuple(Session(replace(session.meta, soc=named), session.tables, session.strings) for session in sessions)
