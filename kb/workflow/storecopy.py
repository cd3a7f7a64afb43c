"""Job: take everything of one's own from one store to another, of either engine, and check it by its hashes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec

from kb.domain.event import Event
from kb.domain.protocols import Artefacts, Carried, CarryingStore, Progress, Publication, Store
from kb.domain.provenance import StoreOrigin
from kb.domain.text import Text
from kb.domain.version import Version
from kb.errors import NotFoundError, StoreError, UsageError
from kb.workflow.casebook import artefacts_of, open_place
from kb.workflow.transfer import movable
from kb.workflow.workspace import SQLITE, Workspace, team_address

BATCH: Final = 500
"""Slugs read at once: a file's postings are not indexed by version, so fewer and larger batches are quicker."""
TOGETHER: Final = 64
"""Publications a transaction."""
Line = tuple[StoreOrigin, str]
"""The origin in the target, and the slug: one numbered line of versions."""


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """What a copy did. ``checked`` versions and ``sessions`` were read back from the target and fit their hashes, those that were
    there before included. ``conflicts`` name the lines that went another way in the target; they were left as they are."""

    versions: int
    unchanged: int
    events: int
    sessions: int
    checked: int
    conflicts: tuple[Text, ...] = ()


def copy_store(source: str, target: str, home: Path, progress: Progress) -> Copied:
    """Copy the records, events and attached sessions that ``source`` shows this user into ``target``. Safe to repeat and to resume:
    what is there already is recognised by its hashes. The library stays: it comes with each program.

    Both are files, ``sqlite:///PATH`` or ``postgresql://…``; ``home`` is the workspace whose caches a team store uses. Raises
    StoreError when either cannot be used or when something read back differs.
    """
    places = place_of(source, home), place_of(target, home)
    if places[0].store == places[1].store:
        raise UsageError("the source is the target", allowed="two stores", do="name another target")
    reading = open_place(places[0], writable=False)
    try:
        writing = open_place(places[1], writable=True)
        try:
            job = _Copy(reading, artefacts_of(reading, places[0]), writing, artefacts_of(writing, places[1]), bool(places[1].team_url))
            return job.done(progress)
        finally:
            writing.close()
    finally:
        reading.close()


def place_of(store: str, home: Path) -> Workspace:
    """The workspace around a store given by file, folder or address; sessions lie beside a file."""
    if team_address(store):
        return Workspace(home, store=store)
    path = Path(store.removeprefix(SQLITE)).expanduser().absolute()
    return Workspace(path) if path.is_dir() else Workspace(path.parent, store=str(path))


class _Copy:
    """The state of one copy."""

    def __init__(self, source: CarryingStore, captures: Artefacts, target: Store, kept: Artefacts, team: bool) -> None:
        self._source, self._captures, self._target, self._kept, self._team = source, captures, target, kept, team
        self._said: dict[str, list[Event]] = {}
        for event in source.events():
            if event.kind != "published":
                self._said.setdefault(event.subject, []).append(event)
        self._versions = self._unchanged = self._events = self._checked = 0
        self._sessions: set[str] = set()
        self._conflicts: list[Text] = []

    def done(self, progress: Progress) -> Copied:
        """Copy all lines, batch by batch; each batch is checked before the next."""
        slugs = sorted({slug for _, slug in movable(self._source, ())})
        for first in range(0, len(slugs), BATCH):
            progress("copy", first, len(slugs))
            lines = self._lines(slugs[first : first + BATCH])
            fresh = [item for line, carried in lines for item in self._fresh(line, carried)]
            for start in range(0, len(fresh), TOGETHER):
                made = self._target.publish_all(fresh[start : start + TOGETHER])
                self._versions += sum(item.created for item in made)
            for line, carried in lines:
                self._say(line, carried)
                self._check(line, carried)
        progress("copy", len(slugs), len(slugs))
        return Copied(
            versions=self._versions,
            unchanged=self._unchanged,
            events=self._events,
            sessions=len(self._sessions),
            checked=self._checked,
            conflicts=tuple(self._conflicts),
        )

    def _lines(self, slugs: Sequence[str]) -> list[tuple[Line, list[Carried]]]:
        """The versions of each line of the target, oldest first, without repetitions."""
        found: dict[Line, list[Carried]] = {}
        for item in self._source.carry(slugs):
            if item.version.origin != "library":
                found.setdefault(self._line(item.version), []).append(item)
        return [(line, [next(same) for _, same in groupby(items, key=_hash)]) for line, items in sorted(found.items())]

    def _line(self, version: Version) -> Line:
        """In a team store what others may see is the team's."""
        shown = self._team and version.origin == "workspace" and version.visibility != "private"
        return ("team" if shown else version.origin), version.record.slug

    def _held(self, line: Line) -> list[str]:
        try:
            return [item.sha256 for item in self._target.revisions(line[1], line[0])]
        except NotFoundError:
            return []

    def _fresh(self, line: Line, items: Sequence[Carried]) -> Iterator[Publication]:
        held, incoming = self._held(line), [_hash(item) for item in items]
        common = min(len(held), len(incoming))
        if held[:common] != incoming[:common]:
            self._conflicts.append(_conflict(line))
            return
        self._unchanged += common
        alone = len(items) == 1
        for item in items[common:]:
            version = item.version
            for name in version.record.sessions:
                self._carry_session(name)
            remarks = tuple(self._moved(event, line, len(held) + 1) for event in self._said_of(version)) if alone else ()
            self._events += len(remarks)
            for prepared in item.prepared:
                yield Publication(
                    record=version.record,
                    prepared=prepared,
                    origin=line[0],
                    author=version.author,
                    visibility=version.visibility,
                    created_ns=version.created_ns,
                    remarks=remarks,
                )

    def _carry_session(self, name: str) -> None:
        """Sessions go before the versions that name them. One the source has lost stays lost; its doctor says so."""
        if name not in self._sessions:
            try:
                data = self._captures.get(name)
            except NotFoundError:
                return
            self._kept.put(data)
            self._sessions.add(name)

    def _say(self, line: Line, items: Sequence[Carried]) -> None:
        """Events the target does not have yet, in their order."""
        held = self._held(line)
        for version in (item.version for item in items):
            if version.sha256 not in held:
                continue
            known = [_told(event) for event in self._target.events(version.sha256)]
            for event in self._said_of(version):
                moved = self._moved(event, line, held.index(version.sha256) + 1)
                if _told(moved) in known:
                    known.remove(_told(moved))
                    continue
                self._target.append(moved)
                self._events += 1

    def _said_of(self, version: Version) -> Iterator[Event]:
        for event in self._said.get(version.sha256, ()):
            if event.detail.get("origin") in (None, version.origin):
                yield event

    def _moved(self, event: Event, line: Line, n: int) -> Event:
        """The event as it speaks of the version in the target."""
        if event.detail.get("origin") in (None, line[0]):
            return event
        detail = {**event.detail, "origin": line[0], **({"n": n} if "n" in event.detail else {})}
        return msgspec.structs.replace(event, detail=detail)

    def _check(self, line: Line, items: Sequence[Carried]) -> None:
        """Read back: contents fit their hashes (reading checks that), and the hashes are the source's, in order."""
        if any(_conflict(line) == said for said in self._conflicts):
            return
        incoming = [_hash(item) for item in items]
        found = [version.sha256 for version in self._target.history(line[1], line[0])]
        if found[: len(incoming)] != incoming:
            raise StoreError(
                f"{line[0]}:{line[1]} differs in the target after copying",
                allowed="equal hashes",
                do="report this as a defect; repeat the copy",
            )
        for name in {name for item in items for name in item.version.record.sessions if name in self._sessions}:
            self._kept.get(name)
        self._checked += len(incoming)


def _hash(item: Carried) -> str:
    return item.version.sha256


def _told(event: Event) -> tuple[object, ...]:
    return (event.kind, event.author, event.at_ns, sorted(event.detail.items(), key=str))


def _conflict(line: Line) -> Text:
    name = f"{line[0]}:{line[1]}"
    return Text(
        zh=f"{name}：目标库中的历史与来源不同，未复制", en=f"{name}: its history in the target went another way, nothing was copied"
    )
