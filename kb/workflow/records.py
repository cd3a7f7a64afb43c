"""Jobs over stored records: one, all of a listing, the history of one."""

from __future__ import annotations

from collections import Counter

import msgspec

from kb.domain.case import RecordKind
from kb.domain.event import Event
from kb.domain.gallery import GalleryEntry, GalleryPage
from kb.domain.protocols import Store, Summary
from kb.domain.provenance import Provenance, StoreOrigin
from kb.domain.text import Lang, Text
from kb.domain.version import Revision, Version


def listing(store: Store, *, kinds: tuple[RecordKind, ...] = (), min_provenance: Provenance = "claimed", lang: Lang | None = None,
            limit: int | None = None) -> tuple[tuple[Summary, Version], ...]:  # fmt: skip
    """Newest visible records, by kind and slug. ``lang`` keeps those with a title in that language; ``limit`` None = all."""
    summaries = sorted(store.summaries(kinds=kinds, min_provenance=min_provenance), key=lambda item: (item.kind, item.ref.slug))
    versions = store.versions([item.id for item in summaries])
    pairs = ((item, versions[item.id]) for item in summaries)
    kept = [(item, version) for item, version in pairs if lang is None or getattr(version.record.title, lang)]
    return tuple(kept if limit is None else kept[:limit])


def counts(pairs: tuple[tuple[Summary, Version], ...]) -> dict[str, dict[str, int]]:
    """How many records there are of each kind, with a title in each language, and of each tier."""
    titles = [version.record.title for _, version in pairs]
    return {
        "kind": dict(Counter(item.kind for item, _ in pairs)),
        "language": {"zh": sum(bool(title.zh) for title in titles), "en": sum(bool(title.en) for title in titles)},
        "provenance": dict(Counter(item.provenance for item, _ in pairs)),
    }


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


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A version in its line: the names that mean it, and what was said about it, in words."""

    revision: Revision
    aliases: tuple[str, ...] = ()
    said: tuple[Text, ...] = ()


def lineage(store: Store, slug: str, origin: StoreOrigin | None = None) -> tuple[Line, ...]:
    """Versions of ``slug``, oldest first, without their contents. Raises NotFoundError."""
    revisions = store.revisions(slug, origin)
    subjects = dict.fromkeys(item.sha256 for item in revisions)
    events = sorted((event for subject in subjects for event in store.events(subject)), key=lambda event: event.id)
    aliases = {str(event.detail["alias"]): (event.detail["origin"], event.detail["n"]) for event in events if event.kind == "aliased"}
    return tuple(
        Line(
            revision=item,
            aliases=tuple(sorted(name for name, place in aliases.items() if place == (item.ref.origin, item.ref.n))),
            said=tuple(_told(event) for event in events if event.subject == item.sha256 and _concerns(event, item)),
        )
        for item in revisions
    )


def _concerns(event: Event, item: Revision) -> bool:
    return event.kind not in ("published", "aliased") and event.detail.get("origin") in (None, item.ref.origin)


def _told(event: Event) -> Text:
    if event.kind == "audited":
        rules = str(event.detail.get("rules", "")) or "-"
        count = event.detail.get("notes", 0)
        return Text(zh=f"核查：{count} 处疑问（{rules}）", en=f"audit: {count} doubts ({rules})")
    told = ", ".join(
        f"{key} {value}" for key, value in event.detail.items() if key not in ("origin", "n", "evidence") and value is not None
    )
    words = f"{event.kind}: {told} ({event.author})" if told else f"{event.kind} ({event.author})"
    return Text(zh=words, en=words)
