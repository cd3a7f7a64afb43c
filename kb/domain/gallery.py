"""The gallery: what a browser of records needs, nothing more."""

from __future__ import annotations

import msgspec

from kb.domain.case import RecordKind
from kb.domain.provenance import Provenance, StoreOrigin
from kb.domain.text import Text
from kb.domain.version import Visibility


class GalleryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A record in a list.

    ``uses`` counts trials of any version of it, ``worked`` those by others than the author that improved, ``reproductions``
    the recomputations by others; ``verified`` is whether the newest version's evidence
    was recomputed and still holds; ``impact`` is its Tuning Impact Score (0..100), None where no outcome allows one.
    """

    slug: str
    n: int
    origin: StoreOrigin
    kind: RecordKind
    title: Text
    provenance: Provenance
    summary: Text = Text()
    tags: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    model_types: tuple[str, ...] = ()
    author: str = ""
    created_ns: int = 0
    visibility: Visibility = "private"
    uses: int = 0
    worked: int = 0
    reproductions: int = 0
    verified: bool = False
    impact: float | None = None
    status: str = "published"


class GalleryPage(msgspec.Struct, frozen=True, kw_only=True):
    """``total`` counts all matches; ``entries`` is the part asked for."""

    entries: tuple[GalleryEntry, ...]
    total: int


class Contributor(msgspec.Struct, frozen=True, kw_only=True):
    """The quality of somebody's records in three figures, each a count of events over a count of records.

    ``verified``: records whose evidence was recomputed and holds (accuracy of the diagnosis). ``reproduced``: records that
    others reproduced (effect). ``reused``: records somebody tried and that worked (reuse). ``steps`` (0..3) says how many of
    the three reach the bar.
    """

    author: str
    records: int
    verified: int
    reproduced: int
    reused: int
    steps: int
