"""One page of the gallery: what a browser of records needs, nothing more."""

from __future__ import annotations

import msgspec

from kb.domain.case import RecordKind
from kb.domain.provenance import Provenance, StoreOrigin
from kb.domain.text import Text


class GalleryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A record in a list."""

    slug: str
    n: int
    origin: StoreOrigin
    kind: RecordKind
    title: Text
    provenance: Provenance
    tags: tuple[str, ...] = ()
    uses: int = 0
    status: str = "published"


class GalleryPage(msgspec.Struct, frozen=True, kw_only=True):
    """``total`` counts all matches; ``entries`` is the part asked for."""

    entries: tuple[GalleryEntry, ...]
    total: int
