"""Job: records of a store as files of a git-friendly form; ``merge`` reads them back.

``ORIGIN/SLUG/N.json`` is a version, ``ORIGIN/SLUG/events.json`` what was said about them, ``sessions/HH/HASH.prof`` the attached
sessions. Keys are sorted and one value stands on a line, so that a merge in git is a merge of fields. Exporting what was
imported gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kb.domain.event import EventKind
from kb.domain.protocols import Artefacts, Store
from kb.domain.provenance import StoreOrigin
from kb.domain.record import Record
from kb.domain.version import Version, Visibility
from kb.errors import NotFoundError
from kb.files import write_whole
from kb.workflow.casebook import Casebook

FORMAT: Final = "diagnosis-recipes export"
SCHEMA: Final = 1
MANIFEST: Final = "casebook.json"
EVENTS: Final = "events.json"
SESSIONS: Final = "sessions"
MOVABLE: Final[tuple[StoreOrigin, ...]] = ("workspace", "team")
"""Origins that travel; the library comes with the program."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What kind of folder this is."""

    format: str = FORMAT
    schema: int = SCHEMA


class VersionFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One version with everything but the store's own counters."""

    origin: StoreOrigin
    n: int
    sha256: str
    parent: str | None
    author: str
    created_ns: int
    visibility: Visibility
    record: Record


class EventLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One event; publication itself is told by the version's file."""

    kind: EventKind
    subject: str
    author: str
    at_ns: int
    detail: Mapping[str, str | int | float | None]


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """What was written."""

    records: int
    versions: int
    sessions: int


def export(casebook: Casebook, folder: Path, *, slugs: Sequence[str] = (), visibilities: Sequence[Visibility] = ()) -> Exported:
    """Write every movable record (or ``slugs``, or those whose newest version is of ``visibilities``) below ``folder``.

    Files already there are replaced when they differ, others are left. Raises NotFoundError for an unknown slug and OSError
    for an unusable folder.
    """
    wanted = list(movable(casebook.store, slugs))
    artefacts = casebook.artefacts
    _put(folder / MANIFEST, _encoded(Manifest()))
    records = versions = 0
    sessions: set[str] = set()
    for origin, slug in wanted:
        history = casebook.store.history(slug, origin)
        if visibilities and history[-1].visibility not in visibilities:
            continue
        place = folder / origin / slug
        for version in history:
            _put(place / f"{version.n}.json", _encoded(_version_file(version)))
            sessions.update(version.record.sessions)
        lines = tuple(_event_lines(casebook.store, origin, {item.sha256 for item in history}))
        if lines:
            _put(place / EVENTS, _encoded(lines))
        records, versions = records + 1, versions + len(history)
    held = [name for name in sorted(sessions) if _export_session(artefacts, name, folder)]
    return Exported(records=records, versions=versions, sessions=len(held))


def movable(store: Store, slugs: Sequence[str]) -> Iterator[tuple[StoreOrigin, str]]:
    """Origin and slug of everything that is not the library's, or of ``slugs``. Raises NotFoundError for an unknown slug."""
    published = [event.detail for event in store.events() if event.kind == "published"]
    held = {(origin, str(detail["slug"])) for detail in published for origin in MOVABLE if detail["origin"] == origin}
    unknown = [slug for slug in slugs if all((origin, slug) not in held for origin in MOVABLE)]
    if unknown:
        raise NotFoundError(f"nothing of your own under {', '.join(unknown)}", do="see `kb list`; the library is not exported")
    yield from sorted(pair for pair in held if not slugs or pair[1] in slugs)


def _version_file(version: Version) -> VersionFile:
    return VersionFile(
        origin=version.origin,
        n=version.n,
        sha256=version.sha256,
        parent=version.parent,
        author=version.author,
        created_ns=version.created_ns,
        visibility=version.visibility,
        record=version.record,
    )


def _event_lines(store: Store, origin: StoreOrigin, subjects: set[str]) -> Iterator[EventLine]:
    events = sorted((event for subject in subjects for event in store.events(subject)), key=lambda event: event.id)
    for event in events:
        if event.kind != "published" and event.detail.get("origin") in (None, origin):
            yield EventLine(kind=event.kind, subject=event.subject, author=event.author, at_ns=event.at_ns, detail=event.detail)


def _export_session(artefacts: Artefacts, name: str, folder: Path) -> bool:
    try:
        data = artefacts.get(name)
    except NotFoundError:
        return False
    _put(folder / SESSIONS / name[:2] / f"{name}.prof", data)
    return True


def _put(path: Path, data: bytes) -> None:
    if not path.is_file() or path.read_bytes() != data:
        write_whole(path, [data])


def _encoded(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2) + b"\n"
