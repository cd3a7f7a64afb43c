"""The Tuning Impact Score from attached sessions, and the baseline that limits are held against."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from workflow.bench import with_gain

from kb.compare.comparison import compare
from kb.domain.record import Record
from kb.profile.simulated.options import Options
from kb.session.session import Session
from kb.store.artefacts import FolderArtefacts
from kb.workflow.baseline import baseline_of, held_memory
from kb.workflow.casebook import Casebook
from kb.workflow.diagnose import diagnose_sessions
from kb.workflow.impact import impact_of, record_impact
from kb.workflow.publish import publish, with_sessions
from kb.workflow.simulate import simulated_session


@pytest.fixture
def draft(book: Casebook, runs: tuple[Session, Session]) -> Record:
    seen = compare(*runs)
    stated = with_gain("mine", seen.before_step_ns / 1e6, seen.after_step_ns / 1e6)
    return with_sessions(stated, runs, FolderArtefacts(book.workspace.artefacts))


def test_the_score_is_recomputed_from_the_sessions(book: Casebook, draft: Record, runs: tuple[Session, Session]) -> None:
    found = record_impact(draft, book.artefacts, book.catalogue)
    assert found is not None
    assert found.from_sessions
    assert found.provenance == "simulated"
    assert found.benefits["latency"] == pytest.approx(compare(*runs).gain_fraction)
    assert "memory" not in found.benefits  # these captures do not sample it
    version = publish(book, draft, author="ann").version
    assert impact_of(version, book.artefacts) == pytest.approx(found.score)


def test_a_typed_figure_does_not_move_the_score_of_sessions(book: Casebook, draft: Record) -> None:
    boasted = replace(with_gain("mine", 100.0, 1.0), sessions=draft.sessions)
    honest, loud = (record_impact(own, book.artefacts, book.catalogue) for own in (draft, boasted))
    assert honest is not None
    assert loud is not None
    assert loud.benefits == honest.benefits


def test_a_lost_session_leaves_the_outcomes_to_speak(book: Casebook, draft: Record) -> None:
    for name in draft.sessions:
        next(book.workspace.artefacts.rglob(f"{name}*")).unlink()
    found = record_impact(draft, book.artefacts, book.catalogue)
    assert found is not None
    assert not found.from_sessions


def test_nothing_attached_and_nothing_told_is_no_score(book: Casebook, draft: Record) -> None:
    assert record_impact(replace(draft, cases=(), sessions=()), book.artefacts, book.catalogue) is None


def test_the_baseline_is_what_the_capture_shows(book: Casebook, runs: tuple[Session, Session]) -> None:
    found = baseline_of(diagnose_sessions(runs[:1], book.catalogue))
    assert found.latency_ns > 0
    assert found.memory_b is None
    assert found.samples == runs[0].meta.model.batch
    assert baseline_of(diagnose_sessions(runs[:1], book.catalogue), samples=7).samples == 7


def test_memory_is_the_most_that_any_allocator_reserved(book: Casebook) -> None:
    session = simulated_session(book.catalogue, "bert-base", soc="910b3", seed=1, options=Options(batch=2), name="x")
    table = session.table("counters")
    assert table is not None
    reserved = table["value"][table["name"] == session.code("PTA Total Reserved [B]")]
    assert held_memory(session) == float(reserved.max()) > 0
    assert baseline_of(diagnose_sessions((session,), book.catalogue)).throughput is not None
