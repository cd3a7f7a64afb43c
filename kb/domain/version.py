"""Immutable revisions and how a user names them."""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec

from kb.domain.provenance import Provenance, StoreOrigin
from kb.domain.record import Record
from kb.errors import UsageError

# The overlay order: what the user published shadows what shipped.
RESOLUTION: Final[tuple[StoreOrigin, ...]] = ("workspace", "team", "library")
Visibility = Literal["private", "team", "public"]
_REF = re.compile(r"(?:(library|workspace|team):)?([^@:]+)(?:@(?:([1-9]\d{0,8})|([a-z][a-z0-9-]{1,30})))?\Z")
LATEST: Final = "latest"
"""The alias every record has: its newest visible version."""


class Ref(msgspec.Struct, frozen=True):
    """``[origin:]slug[@n]`` or ``[origin:]slug[@alias]``. No ``n`` means the newest visible one; no origin follows
    ``RESOLUTION``."""

    slug: str
    n: int | None = None
    origin: StoreOrigin | None = None
    alias: str | None = None

    def __str__(self) -> str:
        prefix = f"{self.origin}:" if self.origin else ""
        suffix = f"@{self.n or self.alias}" if self.n or self.alias else ""
        return f"{prefix}{self.slug}{suffix}"


def parse_ref(text: str) -> Ref:
    """Read a reference. Raises UsageError with the accepted form."""
    match = _REF.match(text.strip())
    if match is None:
        raise UsageError(
            f"{text!r} does not name a record", allowed="SLUG, SLUG@N, SLUG@ALIAS or ORIGIN:SLUG@N (origin: library, workspace, team)"
        )
    origin, slug, n, alias = match.groups()
    return Ref(slug, int(n) if n else None, origin, None if alias == LATEST else alias)  # type: ignore[arg-type]  # StoreOrigin by the pattern


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """One published revision. ``sha256`` (hex, over the canonical form) is its identity; ``n`` counts per
    (origin, slug). ``created_ns`` is UTC. ``generation`` is the store's commit counter at publication."""

    record: Record
    origin: StoreOrigin
    n: int
    sha256: str
    author: str
    created_ns: int
    visibility: Visibility = "private"
    parent: str | None = None
    generation: int = 0

    @property
    def ref(self) -> Ref:
        """The exact reference of this revision."""
        return Ref(slug=self.record.slug, n=self.n, origin=self.origin)


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """A version without its content: a line of a history. ``status`` is what the events about it add up to."""

    ref: Ref
    sha256: str
    author: str
    created_ns: int
    visibility: Visibility
    provenance: Provenance
    parent: str | None
    generation: int
    status: str
