"""Bring the shipped library into the workspace store."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from kb.domain.canonical import content_hash
from kb.domain.catalogue import Catalogue
from kb.domain.event import Event
from kb.domain.protocols import Embedder, Progress, Store
from kb.domain.record import Record
from kb.domain.version import Ref
from kb.errors import NotFoundError
from kb.library.records import fingerprint, read_records
from kb.search.prepare import prepare

STATE_KEY = "library"


class Synced(msgspec.Struct, frozen=True, kw_only=True):
    """What a sync did: records published, unchanged, and withdrawn because the library no longer has them."""

    published: int
    unchanged: int
    withdrawn: int


def is_current(store: Store, root: Path) -> bool:
    """Whether the store already holds the library at ``root``."""
    return store.state(STATE_KEY) == fingerprint(root)


def sync(store: Store, embedder: Embedder, root: Path, progress: Progress, catalogue: Catalogue) -> Synced:
    """Publish new and changed library records, yank those that left, remember the fingerprint.

    Safe to run twice and in two processes: equal content publishes nothing.
    """
    print_of_files = fingerprint(root)
    records = read_records(root)
    changed = [record for record in records if _newest_hash(store, record.slug) != content_hash(record)]
    for done, record in enumerate(changed):
        progress("library", done, len(changed))
        store.publish(record, prepare(record, embedder, catalogue), origin="library", author="library", visibility="public")
    progress("library", len(changed), len(changed))
    withdrawn = _withdraw(store, records)
    store.set_state(STATE_KEY, print_of_files)
    return Synced(published=len(changed), unchanged=len(records) - len(changed), withdrawn=withdrawn)


def _newest_hash(store: Store, slug: str) -> str | None:
    try:
        return store.get(Ref(slug=slug, origin="library")).sha256
    except NotFoundError:
        return None


def _withdraw(store: Store, records: Iterable[Record]) -> int:
    kept = {record.slug for record in records}
    gone = [item for item in store.summaries() if item.ref.origin == "library" and item.ref.slug not in kept]
    for item in gone:
        subject = store.get(item.ref).sha256
        detail = {"reason": "removed from the library"}
        store.append(Event(kind="yanked", subject=subject, author="library", at_ns=time.time_ns(), detail=detail))
    return len(gone)
