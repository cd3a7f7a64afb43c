"""Verification is bound to evidence: tiers come from sessions, and fall with an edited figure or a lost session."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from workflow.bench import record, run_of, with_gain

from kb.compare.comparison import compare
from kb.domain.event import Event
from kb.domain.quantity import Quantity
from kb.domain.record import Record
from kb.domain.version import Ref
from kb.errors import ConflictError
from kb.search.prepare import prepare
from kb.session.codec import to_bytes
from kb.session.session import Session
from kb.store.artefacts import FolderArtefacts
from kb.workflow.audit import notes_in
from kb.workflow.casebook import Casebook
from kb.workflow.events import status_of
from kb.workflow.publish import publish, with_sessions
from kb.workflow.verify import reproduce, verify


@pytest.fixture
def draft(book: Casebook, runs: tuple[Session, Session]) -> Record:
    """A recipe with a recomputed gain and both sessions attached."""
    seen = compare(*runs)
    stated = with_gain("mine", seen.before_step_ns / 1e6, seen.after_step_ns / 1e6)
    return with_sessions(stated, runs, FolderArtefacts(book.workspace.artefacts))


def edited(record: Record, after_ms: float) -> Record:
    """The record with another figure after the change."""
    cases = list(record.cases)
    at = next(place for place, case in enumerate(cases) if case.outcomes)
    outcome = replace(cases[at].outcomes[0], after=Quantity(after_ms, "ms"))
    cases[at] = replace(cases[at], outcomes=(outcome,))
    return replace(record, cases=tuple(cases))


def outcome_tier(record: Record) -> str:
    return next(outcome.provenance for case in record.cases for outcome in case.outcomes)


def kinds(book: Casebook, sha256: str) -> list[str]:
    return [event.kind for event in book.store.events(sha256)]


def test_sessions_carry_the_tier_of_their_origin(book: Casebook, draft: Record) -> None:
    made = publish(book, draft, author="ann").version
    assert (made.record.provenance, outcome_tier(made.record)) == ("simulated", "simulated")


def test_a_typed_tier_is_lowered_to_what_is_carried(book: Casebook, draft: Record) -> None:
    cases = tuple(replace(case, outcomes=tuple(replace(item, provenance="measured") for item in case.outcomes)) for case in draft.cases)
    made = publish(book, replace(draft, provenance="reproduced", cases=cases), author="ann")
    assert (made.version.record.provenance, outcome_tier(made.version.record)) == ("simulated", "simulated")
    assert made.remarks


def test_an_edited_figure_drops_the_tier(book: Casebook, draft: Record) -> None:
    publish(book, draft, author="ann")
    made = publish(book, edited(draft, 40.0), author="ann")
    assert (made.version.n, made.version.record.provenance, outcome_tier(made.version.record)) == (2, "claimed", "claimed")
    assert "recomputed" in made.remarks[0].en


def test_measured_sessions_carry_measured_figures_and_no_others(book: Casebook) -> None:
    runs = run_of(100, 102, 98, 101, origin="measured"), run_of(50, 51, 49, 50, origin="measured")
    rounded = with_gain("mine", 100.0, 50.0, provenance="measured")
    item = with_sessions(rounded, runs, FolderArtefacts(book.workspace.artefacts))
    assert publish(book, item, author="ann").version.record.provenance == "measured"
    assert publish(book, edited(item, 50.4), author="ann").version.record.provenance == "claimed"


def test_a_flipped_result_drops_the_tier(book: Casebook, draft: Record) -> None:
    cases = tuple(replace(case, outcomes=tuple(replace(item, result="no_gain") for item in case.outcomes)) for case in draft.cases)
    assert publish(book, replace(draft, cases=cases), author="ann").version.record.provenance == "claimed"


def test_sessions_of_another_record_carry_nothing(book: Casebook, draft: Record) -> None:
    assert publish(book, replace(draft, sessions=draft.sessions[::-1]), author="ann").version.record.provenance == "claimed"
    assert publish(book, replace(draft, sessions=("0" * 64,)), author="ann").version.record.provenance == "claimed"


def test_verification_is_recorded_once_with_its_figures(book: Casebook, draft: Record) -> None:
    made = publish(book, draft, author="ann").version
    found = verify(book, Ref("mine"), author="bob")
    verify(book, Ref("mine"), author="bob")
    assert (found.verified, found.version) == (True, made)
    assert kinds(book, made.sha256) == ["published", "audited", "verified"]
    assert found.event is not None
    assert found.event.detail["tier"] == "simulated"
    assert found.event.detail["before_steps"] == found.event.detail["after_steps"] == 4
    assert status_of(book.store, made) == "verified"


def test_a_lost_session_withdraws_the_verification(book: Casebook, draft: Record) -> None:
    made = publish(book, draft, author="ann").version
    verify(book, Ref("mine"), author="ann")
    lost = book.workspace.artefacts / draft.sessions[1][:2] / draft.sessions[1]
    lost.unlink()
    found = verify(book, Ref("mine"), author="ann")
    assert not found.verified
    assert kinds(book, made.sha256)[-1] == "verification_withdrawn"
    assert (found.version.n, found.version.record.provenance) == (2, "claimed")


def test_a_version_published_with_a_wrong_tier_gets_the_right_one(book: Casebook, draft: Record) -> None:
    lying = replace(edited(draft, 1.0), provenance="simulated")
    book.store.publish(lying, prepare(lying, None), origin="workspace", author="mallory")
    found = verify(book, Ref("mine"), author="ann")
    assert (found.verified, found.version.n, found.version.record.provenance) == (False, 2, "claimed")
    with pytest.raises(ConflictError):
        verify(book, Ref("mine", 1), author="ann")


def test_software_that_moved_makes_it_stale(book: Casebook, draft: Record, runs: tuple[Session, Session]) -> None:
    sessions = tuple(
        Session(meta=replace(session.meta, software={"cann": "8.0"}), tables=session.tables, strings=session.strings) for session in runs
    )
    item = with_sessions(draft, sessions, FolderArtefacts(book.workspace.artefacts))
    made = publish(book, item, author="ann").version
    assert verify(book, Ref("mine"), author="ann", software={"cann": "8.0", "torch": "2.1"}).verified
    assert status_of(book.store, made) == "verified"
    verify(book, Ref("mine"), author="ann", software={"cann": "8.1"})
    assert status_of(book.store, made) == "stale"


def test_a_run_of_ones_own_reproduces_and_the_same_one_does_not(
    book: Casebook, draft: Record, runs: tuple[Session, Session], tmp_path: Path
) -> None:
    made = publish(book, draft, author="ann").version
    paths = []
    for name, session in zip(("b", "a"), runs, strict=True):
        path = tmp_path / f"{name}.prof"
        path.write_bytes(
            to_bytes(Session(meta=replace(session.meta, name=f"again-{name}"), tables=session.tables, strings=session.strings))
        )
        paths.append(path)
    found = reproduce(book, Ref("mine"), *paths, author="bob")
    assert found.verified
    assert kinds(book, made.sha256)[-1] == "reproduced"
    assert found.event is not None
    assert found.event.detail["tier"] == "simulated"
    with pytest.raises(ConflictError, match="already rests"):
        reproduce(book, Ref("mine"), *paths, author="bob")
    slower = tmp_path / "slower.prof"
    slower.write_bytes(to_bytes(run_of(150, 151, 149, 150, origin="simulated", simulator="1", options={"noise": 0.05})))
    paths[0].write_bytes(to_bytes(run_of(100, 101, 99, 100, origin="simulated", simulator="1", options={"noise": 0.05})))
    assert not reproduce(book, Ref("mine"), paths[0], slower, author="bob").verified


def test_notes_of_the_audit_stay_with_the_version(book: Casebook) -> None:
    made = publish(book, record(text="Captured 217 of 218 operators (99.8 %)."), author="ann")
    assert [note.rule for note in made.notes] == ["percentage"]
    publish(book, record(text="nothing to doubt"), author="ann")
    assert notes_in(book.store.events(made.version.sha256)) == made.notes
    assert isinstance(book.store.events(made.version.sha256)[-1], Event)
