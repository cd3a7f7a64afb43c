"""What users of a version reported reaches the recommender: of this version, of this origin, and only what is a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from kb.domain.event import Event, EventKind
from kb.domain.protocols import Store
from kb.domain.version import Version
from kb.recommend.support import Use
from kb.workflow.uses import uses_of


@dataclass
class Told:
    """A store that only tells events."""

    said: Sequence[Event]

    def events(self, subject: str) -> Sequence[Event]:
        return [event for event in self.said if event.subject == subject]


@dataclass
class Named:
    """What ``uses_of`` asks of a version."""

    sha256: str
    origin: str


def _event(kind: EventKind, subject: str = "abc", **detail: Any) -> Event:
    return Event(kind=kind, subject=subject, author="me", at_ns=1, detail=detail)


def test_only_results_of_this_version_count() -> None:
    said = [
        _event("used", result="improved", gain_fraction=0.2),
        _event("used", result="worse", origin="team"),
        _event("used", result="no_gain", origin="workspace"),
        _event("used", result="splendid"),
        _event("used", subject="other", result="improved"),
        _event("verified", result="improved"),
    ]
    found = uses_of(cast(Store, Told(said)), cast(Version, Named("abc", "workspace")))
    assert found == (Use(result="improved", gain_fraction=0.2), Use(result="no_gain"))
