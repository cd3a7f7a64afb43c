"""What the events about a version add up to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kb.domain.event import EventKind

_LASTING: Final[tuple[EventKind, ...]] = ("yanked", "deprecated")
_LIFTED: Final[EventKind] = "restored"
_EVIDENCE: Final[dict[EventKind, str]] = {
    "verified": "verified",
    "reproduced": "verified",
    "stale": "stale",
    "verification_withdrawn": "published",
}
DECIDING: Final[tuple[EventKind, ...]] = (*_LASTING, _LIFTED, *_EVIDENCE)
"""The kinds of event that can change a status."""


def status_of(kinds: Iterable[str]) -> str:
    """``yanked`` or ``deprecated`` when said since the last ``restored``, else what the newest event about evidence says,
    else ``published``.

    ``kinds`` are the event kinds of one version, oldest first.
    """
    seen = tuple(kinds)
    since = seen[len(seen) - seen[::-1].index(_LIFTED) :] if _LIFTED in seen else seen
    for lasting in _LASTING:
        if lasting in since:
            return lasting
    return next((status for kind in reversed(seen) for known, status in _EVIDENCE.items() if kind == known), "published")
