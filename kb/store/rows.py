"""Rows as values: versions checked against their hash, summaries, events, not-found messages."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kb.domain.canonical import parse_record
from kb.domain.event import Event
from kb.domain.protocols import Summary
from kb.domain.provenance import StoreOrigin
from kb.domain.version import Ref, Revision, Version
from kb.errors import NotFoundError, StoreError
from kb.store.status import status_of

Row = tuple[Any, ...]
Deciding = tuple[str, str, StoreOrigin | None]
"""Content hash, event kind, and the origin the event speaks about (None: every one)."""


def version_of(row: Row) -> Version:
    """A version from a row of ``statements.VERSIONS``. Raises StoreError when its bytes no longer fit its hash."""
    _, origin, n, sha256, author, created_ns, visibility, parent, generation, body = row
    if hashlib.sha256(body).hexdigest() != sha256:
        raise StoreError(
            f"the content of version {sha256[:12]} changed after publication",
            allowed="bytes that fit their sha256",
            do="restore the newest backup with `kb restore`",
        )
    return Version(
        record=parse_record(body, source=f"version {sha256[:12]}"),
        origin=origin,
        n=n,
        sha256=sha256,
        author=author,
        created_ns=created_ns,
        visibility=visibility,
        parent=parent,
        generation=generation,
    )


def summaries_of(rows: Iterable[Row], deciding: Iterable[Deciding]) -> tuple[Summary, ...]:
    """Summaries from rows of ``statements.SUMMARIES``; ``deciding`` are the events that can change a status, oldest first."""
    said = by_subject(deciding)
    return tuple(_summary(row, said) for row in rows)


def revisions_of(slug: str, rows: Iterable[Row], deciding: Iterable[Deciding]) -> tuple[Revision, ...]:
    """Revisions from rows of ``statements.REVISIONS``, which belong to ``slug``."""
    said = by_subject(deciding)
    return tuple(
        Revision(
            ref=Ref(slug, n, origin),
            sha256=sha256,
            author=author,
            created_ns=created_ns,
            visibility=visibility,
            provenance=provenance,
            parent=parent,
            generation=generation,
            status=status_in(said, sha256, origin),
        )
        for origin, n, sha256, author, created_ns, visibility, provenance, parent, generation in rows
    )


def by_subject(deciding: Iterable[Deciding]) -> dict[str, list[tuple[str, StoreOrigin | None]]]:
    """The events of each content hash as (kind, origin spoken about), oldest first."""
    said: dict[str, list[tuple[str, StoreOrigin | None]]] = {}
    for subject, kind, origin in deciding:
        said.setdefault(subject, []).append((kind, origin))
    return said


def status_in(said: Mapping[str, Sequence[tuple[str, StoreOrigin | None]]], sha256: str, origin: StoreOrigin) -> str:
    """The status of the version with this hash in ``origin``."""
    return status_of(kind for kind, about in said.get(sha256, ()) if about in (None, origin))


def _summary(row: Row, said: Mapping[str, Sequence[tuple[str, StoreOrigin | None]]]) -> Summary:
    row_id, origin, slug, n, kind, provenance, language_share, created_ns, sha256 = row
    return Summary(
        id=row_id,
        ref=Ref(slug, n, origin),
        kind=kind,
        provenance=provenance,
        language_share=language_share,
        status=status_in(said, sha256, origin),
        created_ns=created_ns,
    )


def event_of(row: Row) -> Event:
    """An event from a row of ``statements.EVENTS``."""
    row_id, kind, subject, author, at_ns, detail = row
    return Event(id=row_id, kind=kind, subject=subject, author=author, at_ns=at_ns, detail=msgspec.json.decode(detail))


def not_found(ref: Ref, versions: Sequence[Version], slugs: Sequence[str], aliases: Sequence[str] = ()) -> NotFoundError:
    """Why ``ref`` names nothing: an unknown slug, number or alias, or only withdrawn versions.

    ``versions`` and ``aliases`` are all of the slug's, ``slugs`` all that exist.
    """
    if not versions:
        near = difflib.get_close_matches(ref.slug, slugs, n=3, cutoff=0.4) or sorted(slugs)[:5]
        allowed = f"for example {', '.join(near)}" if near else "nothing yet: the store is empty"
        return NotFoundError(f"no record named {ref.slug!r}", allowed=allowed, do="see `kb list` for all records")
    if ref.alias is not None:
        known = ", ".join((*aliases, "latest"))
        return NotFoundError(f"{ref.slug} has no alias {ref.alias!r}", allowed=known, do=f"name one, or see `kb log {ref.slug}`")
    refs = ", ".join(str(version.ref) for version in versions[-5:])
    reachable = ref.n is None and any(ref.origin in (None, version.origin) for version in versions)
    what = f"every version of {ref} is withdrawn" if reachable else f"no version {ref}"
    return NotFoundError(what, allowed=refs, do=f"name one exactly, or see `kb log {ref.slug}`")
