"""What a backend saw at a path, before it reads anything."""

from __future__ import annotations

import msgspec


class Sniff(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend recognised at a path: a format name, the profile roots found (one a rank), and remarks."""

    format: str
    roots: tuple[str, ...]
    remarks: tuple[str, ...] = ()
