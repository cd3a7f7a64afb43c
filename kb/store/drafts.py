"""What both engines do to a publication before the lock is taken, and their common refusals."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from kb.domain.canonical import canonical
from kb.domain.protocols import Publication
from kb.domain.record import checked_slug
from kb.errors import ConflictError, NotFoundError
from kb.store.preparation import field_vectors


class Draft(msgspec.Struct, frozen=True):
    """A publication checked and encoded: canonical bytes, their hash, and each field's vector as little-endian float32."""

    item: Publication
    body: bytes
    sha256: str
    vectors: Mapping[str, bytes]


def drafted(item: Publication) -> Draft:
    """The draft of ``item``. Raises UsageError for a bad slug, ContentError or StoreError for what cannot be kept."""
    checked_slug(item.record.slug)
    body = canonical(item.record)
    return Draft(item, body, hashlib.sha256(body).hexdigest(), field_vectors(item.prepared))


def parent_conflict(slug: str, expected: str, newest: tuple[int, str] | None) -> ConflictError:
    """Somebody published first: ``newest`` is the number and hash of the version there is, None for none."""
    now = f"{slug}@{newest[0]} ({newest[1]})" if newest else "nothing"
    return ConflictError(
        f"{slug}: the newest version is not {expected} but {now}",
        allowed="the hash of the newest version",
        do=f"read {slug}, merge, and publish on top of it",
    )


def width_conflict(model_id: str, held: int, given: int) -> ConflictError:
    """Vectors of one model have one width."""
    return ConflictError(
        f"vectors of {model_id} have {held} numbers here, not {given}",
        allowed=f"{held} numbers",
        do="give an embedder whose vectors changed another model id",
    )


def unknown_subject(subject: str) -> NotFoundError:
    """An event about a content hash no version has."""
    return NotFoundError(
        f"no version has the content hash {subject}",
        allowed="the sha256 of a published version",
        do="see `kb log SLUG` for the hashes of a record",
    )


def names_of(items: tuple[Publication, ...] | list[Publication]) -> str:
    """What is published, for a message."""
    return items[0].record.slug if len(items) == 1 else f"{len(items)} records"
