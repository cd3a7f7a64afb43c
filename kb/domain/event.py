"""Append-only facts about a version: they never change the version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

EventKind = Literal["published", "aliased", "deprecated", "yanked", "verified", "reproduced", "stale", "verification_withdrawn", "used",
                    "restored", "audited"]  # fmt: skip


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """``subject`` is the content hash of the version the event speaks about; ``detail`` depends on ``kind``."""

    kind: EventKind
    subject: str
    author: str
    at_ns: int
    detail: Mapping[str, str | int | float | None] = {}
    id: int = 0
