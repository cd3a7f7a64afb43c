"""Job: what users of a version reported, for the recommender to learn from."""

from __future__ import annotations

from typing import Final, get_args

from kb.domain.case import Result
from kb.domain.event import Event
from kb.domain.protocols import Store
from kb.domain.version import Version
from kb.recommend.support import Use
from kb.workflow.events import about

_RESULTS: Final[tuple[Result, ...]] = get_args(Result)


def uses_of(store: Store, version: Version) -> tuple[Use, ...]:
    """Every reported use of this version, oldest first. An event of an unknown result says nothing."""
    events = [event for event in store.events(version.sha256) if event.kind == "used" and about(event, version)]
    return tuple(use for event in events if (use := _use(event)) is not None)


def _use(event: Event) -> Use | None:
    result = next((known for known in _RESULTS if known == event.detail.get("result")), None)
    gain = event.detail.get("gain_fraction")
    if result is None:
        return None
    return Use(result=result, gain_fraction=float(gain) if isinstance(gain, int | float) else None)
