"""Job: merge exported records into a store, by hash and slug."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Final, Literal, TypeVar

import msgspec

from kb.domain.canonical import content_hash
from kb.domain.event import Event
from kb.domain.protocols import Artefacts, Prepared, Progress, Publication, Store
from kb.domain.provenance import StoreOrigin, rank_of
from kb.domain.record import checked_slug
from kb.domain.text import Text
from kb.domain.version import Revision
from kb.errors import ContentError, KbError
from kb.session.codec import from_bytes
from kb.workflow.archive import Source
from kb.workflow.casebook import Casebook
from kb.workflow.content import LARGEST_BYTES, checked_content
from kb.workflow.evidence import evidence_of
from kb.workflow.preparation import BATCH, OnceEmbedder, prepare_all
from kb.workflow.transfer import EVENTS, FORMAT, MANIFEST, SCHEMA, SESSIONS, EventLine, Manifest, VersionFile
from kb.workflow.vectors import keep_vectors

OnConflict = Literal["skip", "append"]
LARGEST_EVENTS: Final = 64 * LARGEST_BYTES
"""Bytes of the events about one slug: it may have been used many thousands of times."""
_Document = TypeVar("_Document")
_VERSION: Final = re.compile(r"(workspace|team)/([^/]+)/([1-9]\d{0,8})\.json\Z")
_SESSION: Final = re.compile(rf"{SESSIONS}/[0-9a-f]{{2}}/([0-9a-f]{{64}})\.prof\Z")


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import did. ``conflicts`` and ``refused`` name what was left out and why; everything else is in."""

    records: int
    versions: int
    unchanged: int
    events: int
    sessions: int
    conflicts: tuple[Text, ...] = ()
    refused: tuple[Text, ...] = ()


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """Everything read about one slug: its versions in order, and the events about them."""

    slug: str
    versions: tuple[VersionFile, ...]
    events: tuple[EventLine, ...]


class _Planned(msgspec.Struct, frozen=True):
    """A version to publish, and the events that go into the same transaction."""

    file: VersionFile
    origin: StoreOrigin
    remarks: tuple[Event, ...]


def import_from(
    casebook: Casebook, source: Source, progress: Progress, *, origin: StoreOrigin | None = None, on_conflict: OnConflict = "skip"
) -> Imported:
    """Merge an export into the store; the casebook must be open for writing.

    A history that continues the stored one is appended with its own times and authors; one that is already there changes
    nothing; one that went another way is a conflict: named and left out, or with ``append`` published on top. A version whose
    content does not fit its hash, may not be published, or states a tier its sessions do not carry is refused by name.
    ``origin`` files everything under another origin. Several records share a transaction and are acknowledged after it.
    """
    names = tuple(source.names())
    _check_manifest(source, names)
    artefacts = casebook.artefacts
    sessions = _keep_sessions(source, names, artefacts)
    merge = _Merge(casebook, artefacts, origin, on_conflict)
    waiting: list[_Planned] = []
    folders, present = _folders(names), set(names)
    with ThreadPoolExecutor(max_workers=1) as embedding:
        for done, (folder, files) in enumerate(folders):
            said = f"{folder}/{EVENTS}"
            waiting += merge.planned(_story(source, folder, files, said if said in present else None))
            if len(waiting) >= BATCH:
                merge.publish(waiting, embedding)
                waiting = []
                progress("import", done, len(folders))
        merge.publish(waiting, embedding)
        merge.publish_pending()
    merge.say_events()
    keep_vectors(casebook.store, casebook.workspace.vectors, merge.embedder.model_id)
    progress("import", len(folders), len(folders))
    return merge.result(len(folders), sessions)


class _Merge:
    """The state of one import."""

    def __init__(self, casebook: Casebook, artefacts: Artefacts, origin: StoreOrigin | None, on_conflict: OnConflict) -> None:
        self._casebook, self._artefacts, self._origin, self._on_conflict = casebook, artefacts, origin, on_conflict
        self._held = _held(casebook.store)
        self.embedder = OnceEmbedder(casebook.embedder())
        self._late: list[tuple[StoreOrigin, EventLine]] = []
        self._pending: tuple[Sequence[_Planned], Future[list[Prepared]]] | None = None
        self._published = self._unchanged = self._events = 0
        self._conflicts: list[Text] = []
        self._refused: list[Text] = []

    def planned(self, story: Story) -> list[_Planned]:
        """What to publish of a story; its conflicts and refusals are noted."""
        origin = self._origin or story.versions[0].origin
        held = self._casebook.store.revisions(story.slug, origin) if (origin, story.slug) in self._held else ()
        stored, incoming = [item.sha256 for item in held], [item.sha256 for item in story.versions]
        common = min(len(stored), len(incoming))
        fresh = list(story.versions[common:])
        if stored[:common] != incoming[:common]:
            self._conflicts.append(_conflict(story, held, common))
            if self._on_conflict == "skip":
                return []
            fresh = [item for item in story.versions if item.sha256 not in stored]
        self._unchanged += len(story.versions) - len(fresh)
        allowed = self._allowed(story, fresh)
        if len(story.versions) == 1 and len(allowed) == 1 and not held:
            # The usual case of a large import: its events need no transaction of their own.
            remarks = tuple(_event(line, origin) for line in story.events)
            self._events += len(remarks)
            return [_Planned(allowed[0], origin, remarks)]
        present = {*stored, *(item.sha256 for item in allowed)}
        self._late += [(origin, line) for line in story.events if line.subject in present]
        return [_Planned(item, origin, ()) for item in allowed]

    def _allowed(self, story: Story, fresh: Sequence[VersionFile]) -> list[VersionFile]:
        """The versions up to the first that may not come in: later ones rest on it."""
        for at, item in enumerate(fresh):
            try:
                self._check(item)
            except KbError as error:
                name = f"{story.slug}@{item.n}"
                self._refused.append(Text(zh=f"拒绝 {name} 及其后的版本：{error.what}", en=f"{name} and later ones refused: {error.what}"))
                return list(fresh[:at])
        return list(fresh)

    def _check(self, item: VersionFile) -> None:
        if content_hash(item.record) != item.sha256:
            raise ContentError(f"the content does not fit its hash {item.sha256[:12]}")
        checked_content(item.record)
        if rank_of(item.record.provenance) == 0:
            return
        carried = evidence_of(item.record, self._artefacts)
        if rank_of(item.record.provenance) > rank_of(carried.tier):
            reasons = "; ".join(reason.en for reason in carried.reasons)
            raise ContentError(f"it states {item.record.provenance}, its sessions carry {carried.tier} ({reasons})")

    def publish(self, plans: Sequence[_Planned], embedding: Executor) -> None:
        """Have the plans embedded and meanwhile publish those embedded before: both halves take as long as each other.
        Raises StoreError when nothing of a group was written."""
        records = [plan.file.record for plan in plans]
        prepared = embedding.submit(prepare_all, records, self.embedder, self._casebook.catalogue) if plans else None
        self.publish_pending()
        self._pending = (plans, prepared) if prepared is not None else None

    def publish_pending(self) -> None:
        """Publish the group that is being embedded, in one transaction."""
        if self._pending is None:
            return
        plans, future = self._pending
        self._pending = None
        prepared = future.result()
        items = [
            Publication(
                record=plan.file.record,
                prepared=data,
                origin=plan.origin,
                author=plan.file.author,
                visibility=plan.file.visibility,
                created_ns=plan.file.created_ns,
                remarks=plan.remarks,
            )
            for plan, data in zip(plans, prepared, strict=True)
        ]
        self._published += sum(made.created for made in self._casebook.store.publish_all(items))

    def say_events(self) -> None:
        """Append the events about histories that are not there yet, in their order."""
        for origin, line in self._late:
            event = _event(line, origin)
            if all(_identity(item) != _identity(event) for item in self._casebook.store.events(line.subject)):
                self._casebook.store.append(event)
                self._events += 1

    def result(self, records: int, sessions: int) -> Imported:
        """The sums."""
        return Imported(
            records=records,
            versions=self._published,
            unchanged=self._unchanged,
            events=self._events,
            sessions=sessions,
            conflicts=tuple(self._conflicts),
            refused=tuple(self._refused),
        )


def _held(store: Store) -> frozenset[tuple[str, str]]:
    """(origin, slug) of every record of the store, read once: asking record by record would search near names for each one absent."""
    published = (event.detail for event in store.events() if event.kind == "published")
    return frozenset((str(detail["origin"]), str(detail["slug"])) for detail in published)


def _conflict(story: Story, held: Sequence[Revision], common: int) -> Text:
    at = next(place for place in range(common) if held[place].sha256 != story.versions[place].sha256)
    mine, theirs = held[at], story.versions[at]
    return Text(
        zh=f"{mine.ref} 与导入的不同：本地 {mine.sha256[:12]}（{mine.author}），导入 {theirs.sha256[:12]}（{theirs.author}）",
        en=f"{mine.ref} differs: here {mine.sha256[:12]} ({mine.author}), imported {theirs.sha256[:12]} ({theirs.author})",
    )


def _event(line: EventLine, origin: StoreOrigin) -> Event:
    detail = {**line.detail, "origin": origin} if "origin" in line.detail else line.detail
    return Event(kind=line.kind, subject=line.subject, author=line.author, at_ns=line.at_ns, detail=detail)


def _identity(event: Event) -> tuple[object, ...]:
    return (event.kind, event.subject, event.author, event.at_ns, tuple(sorted(event.detail.items(), key=lambda item: item[0])))


def _check_manifest(source: Source, names: Sequence[str]) -> None:
    if MANIFEST not in names:
        raise ContentError(f"there is no {MANIFEST} here", allowed="a folder or file made by `kb export`", do="check the path")
    manifest = _decoded(source.read(MANIFEST), Manifest, MANIFEST)
    if manifest.format != FORMAT or manifest.schema > SCHEMA:
        raise ContentError(f"{MANIFEST}: {manifest.format!r}, schema {manifest.schema}", allowed=f"{FORMAT}, schema up to {SCHEMA}",
                           do="upgrade diagnosis-recipes")  # fmt: skip


def _folders(names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """(folder, version files in order of their numbers) of every slug. Raises ContentError for gaps and misplaced slugs."""
    found: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        match = _VERSION.match(name)
        if match is not None:
            checked_slug(match[2])
            found.setdefault(f"{match[1]}/{match[2]}", []).append((int(match[3]), name))
    for folder, files in found.items():
        numbers = sorted(number for number, _ in files)
        if numbers != list(range(1, len(numbers) + 1)):
            raise ContentError(f"{folder}: versions {numbers[:10]}", allowed="1, 2, 3 without gaps", do="export the whole history")
    return [(folder, [name for _, name in sorted(files)]) for folder, files in sorted(found.items())]


def _story(source: Source, folder: str, files: Sequence[str], said: str | None) -> Story:
    origin, slug = folder.split("/")
    versions = tuple(_decoded(source.read(name), VersionFile, name) for name in files)
    for number, item in enumerate(versions, start=1):
        if (item.origin, item.record.slug, item.n) != (origin, slug, number):
            raise ContentError(f"{folder}/{number}.json holds {item.origin}:{item.record.slug}@{item.n}", do="export it again")
    events = _decoded(source.read(said), tuple[EventLine, ...], said, most=LARGEST_EVENTS) if said is not None else ()
    return Story(slug=slug, versions=versions, events=events)


def _decoded(data: bytes, kind: type[_Document], name: str, *, most: int = LARGEST_BYTES) -> _Document:
    if len(data) > most:
        raise ContentError(f"{name}: {len(data)} bytes are too many", allowed=f"up to {most} bytes", do="leave it out")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ContentError(f"{name}: {error}", allowed="a file as `kb export` writes it", do="export it again") from error


def _keep_sessions(source: Source, names: Sequence[str], artefacts: Artefacts) -> int:
    """Attached sessions whose bytes fit their name and are sessions. Raises ContentError for any other."""
    count = 0
    for name in names:
        match = _SESSION.match(name)
        if match is None:
            continue
        data = source.read(name)
        if hashlib.sha256(data).hexdigest() != match[1]:
            raise ContentError(f"{name} does not fit its name", allowed="bytes that fit their sha256", do="export it again")
        from_bytes(data, source=name)
        artefacts.put(data)
        count += 1
    return count
