"""The claim audit as events: its notes stay with the version they speak about."""

from __future__ import annotations

import time
from collections.abc import Iterable

import msgspec

from kb.audit.claims import Note
from kb.audit.record import audit_record
from kb.domain.catalogue import Catalogue
from kb.domain.event import Event
from kb.domain.provenance import StoreOrigin
from kb.domain.record import Record

AUTHOR = "audit"


def audited(record: Record, origin: StoreOrigin, catalogue: Catalogue, doubts: tuple[Note, ...] = ()) -> tuple[tuple[Note, ...], Event]:
    """The notes about a record, after ``doubts`` that others have, and the event that keeps them (its subject is filled in on
    publication)."""
    notes = (*doubts, *audit_record(record, catalogue))
    detail: dict[str, str | int | float | None] = {
        "origin": origin,
        "notes": len(notes),
        "high": sum(note.severity == "high" for note in notes),
        "rules": " ".join(dict.fromkeys(note.rule for note in notes)),
        "json": msgspec.json.encode(notes).decode(),
    }
    return notes, Event(kind="audited", subject="", author=AUTHOR, at_ns=time.time_ns(), detail=detail)


def notes_in(events: Iterable[Event]) -> tuple[Note, ...]:
    """The notes of the newest audit among a version's events; empty when it was never audited."""
    kept = [event for event in events if event.kind == "audited"]
    return msgspec.json.decode(str(kept[-1].detail["json"]), type=tuple[Note, ...]) if kept else ()
