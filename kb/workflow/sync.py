"""Bring the shipped library into the workspace store."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from kb.domain.canonical import content_hash
from kb.domain.catalogue import Catalogue
from kb.domain.event import Event
from kb.domain.protocols import Embedder, Progress, Publication, Store
from kb.domain.record import Record
from kb.domain.version import Ref
from kb.errors import NotFoundError
from kb.library.records import fingerprint, read_records

STATE_KEY = "library"
AUTHOR = "library"
REMOVED = "removed_from_library"


class Synced(msgspec.Struct, frozen=True, kw_only=True):
    """What a sync did: records published, unchanged, withdrawn because the library no longer has them, and brought back."""

    published: int
    unchanged: int
    withdrawn: int
    restored: int = 0


def is_current(store: Store, root: Path) -> bool:
    """Whether the store already holds the library at ``root``."""
    return store.state(STATE_KEY) == fingerprint(root)


def sync(store: Store, embedder: Embedder, root: Path, progress: Progress, catalogue: Catalogue) -> Synced:
    """Publish new and changed library records, withdraw those that left, bring back those that returned, and remember the
    fingerprint.

    Only changed records are embedded and audited. Safe to run twice and in two processes: equal content publishes nothing.
    """
    # Not at the top: numpy and the audit are only for a library that changed, and every command asks ``is_current``.
    from kb.workflow.audit import audited
    from kb.workflow.preparation import OnceEmbedder, batches, prepare_all

    print_of_files = fingerprint(root)
    records = read_records(root)
    changed = [record for record in records if _newest_hash(store, record.slug) != content_hash(record)]
    published, once = 0, OnceEmbedder(embedder)
    for batch in batches(changed):
        progress("library", published, len(changed))
        prepared = prepare_all(batch, once, catalogue)
        made = store.publish_all(
            [
                Publication(
                    record=record,
                    prepared=data,
                    origin="library",
                    author=AUTHOR,
                    visibility="public",
                    remarks=(audited(record, "library", catalogue)[1],),
                )
                for record, data in zip(batch, prepared, strict=True)
            ]
        )
        published += len(made)
    progress("library", len(changed), len(changed))
    restored = _bring_back(store, changed)
    withdrawn = _withdraw(store, records)
    store.set_state(STATE_KEY, print_of_files)
    return Synced(published=published - restored, unchanged=len(records) - len(changed), withdrawn=withdrawn, restored=restored)


def _newest_hash(store: Store, slug: str) -> str | None:
    """Content hash of the library's newest visible version."""
    try:
        return store.get(Ref(slug=slug, origin="library")).sha256
    except NotFoundError:
        return None


def _bring_back(store: Store, records: Iterable[Record]) -> int:
    """Lift the withdrawal of records the library has again; one that a user withdrew stays withdrawn."""
    count = 0
    for record in records:
        newest = store.revisions(record.slug, "library")[-1]
        if newest.status == "yanked" and _withdrawn_by_sync(store, newest.sha256):
            store.append(_event("restored", newest.sha256, "back in the library"))
            count += 1
    return count


def _withdrawn_by_sync(store: Store, subject: str) -> bool:
    said = [event for event in store.events(subject) if event.kind == "yanked" and event.detail.get("origin", "library") == "library"]
    return bool(said) and said[-1].author == AUTHOR


def _withdraw(store: Store, records: Iterable[Record]) -> int:
    """Withdraw every version of each library record that the library no longer has."""
    kept = {record.slug for record in records}
    gone = [slug for slug in _library_slugs(store) if slug not in kept]
    count = 0
    for slug in gone:
        standing = {item.sha256 for item in store.revisions(slug, "library") if item.status != "yanked"}
        for subject in sorted(standing):
            store.append(_event("yanked", subject, REMOVED))
        count += bool(standing)
    return count


def _library_slugs(store: Store) -> list[str]:
    """Slugs of the library, also those a workspace record covers."""
    return sorted({str(event.detail["slug"]) for event in store.events() if _is_library(event)})


def _is_library(event: Event) -> bool:
    return event.kind == "published" and event.detail.get("origin") == "library"


def _event(kind: str, subject: str, reason: str) -> Event:
    detail = {"origin": "library", "reason": reason}
    return Event(kind=kind, subject=subject, author=AUTHOR, at_ns=time.time_ns(), detail=detail)  # type: ignore[arg-type]  # an EventKind
