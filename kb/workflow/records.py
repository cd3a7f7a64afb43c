"""Jobs over stored records: one, all of a listing, the history of one."""

from __future__ import annotations

from kb.domain.case import RecordKind
from kb.domain.event import Event
from kb.domain.gallery import GalleryEntry, GalleryPage
from kb.domain.protocols import Store, Summary
from kb.domain.provenance import Provenance
from kb.domain.text import Lang
from kb.domain.version import Version


def listing(store: Store, *, kinds: tuple[RecordKind, ...] = (), min_provenance: Provenance = "claimed", lang: Lang | None = None,
            limit: int | None = None) -> tuple[tuple[Summary, Version], ...]:  # fmt: skip
    """Newest visible records, by kind and slug. ``lang`` keeps those with a title in that language; ``limit`` None = all."""
    summaries = sorted(store.summaries(kinds=kinds, min_provenance=min_provenance), key=lambda item: (item.kind, item.ref.slug))
    versions = store.versions([item.id for item in summaries])
    pairs = ((item, versions[item.id]) for item in summaries)
    kept = [(item, version) for item, version in pairs if lang is None or getattr(version.record.title, lang)]
    return tuple(kept if limit is None else kept[:limit])


def page(pairs: tuple[tuple[Summary, Version], ...]) -> GalleryPage:
    """The same as a gallery page."""
    entries = tuple(
        GalleryEntry(
            slug=item.ref.slug,
            n=version.n,
            origin=version.origin,
            kind=item.kind,
            title=version.record.title,
            provenance=item.provenance,
            tags=version.record.tags,
            status=item.status,
        )
        for item, version in pairs
    )
    return GalleryPage(entries=entries, total=len(entries))


def history(store: Store, slug: str) -> tuple[tuple[Version, ...], tuple[Event, ...]]:
    """Versions of ``slug`` in every origin, oldest first, and the events about them."""
    versions = store.history(slug)
    said = tuple(event for version in versions for event in store.events(version.sha256))
    return versions, tuple(sorted({event.id: event for event in said}.values(), key=lambda event: event.id))
