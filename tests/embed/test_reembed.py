from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from search.samples import CATALOGUE, record

from kb.domain.event import Event
from kb.embed.hashing import HashingEmbedder
from kb.errors import ConflictError
from kb.search.dense import load_vectors
from kb.search.prepare import prepare
from kb.store.sqlite import SqliteStore, open_store
from kb.workflow.casebook import Casebook
from kb.workflow.embedding import reembed
from kb.workflow.workspace import Workspace

OLD, NEW = HashingEmbedder(32), HashingEmbedder(48)


@pytest.fixture
def casebook(tmp_path: Path) -> Iterator[Casebook]:
    store = open_store(tmp_path / "casebook.db", writable=True)
    for number in range(70):
        publish(store, f"r{number}", f"attention is not fused, case {number}")
    yield Casebook(Workspace(tmp_path), store, CATALOGUE, "hashing")
    store.close()


def publish(store: SqliteStore, slug: str, en: str) -> str:
    item = record(slug, en=en)
    return store.publish(item, prepare(item, OLD, CATALOGUE), origin="workspace", author="test").sha256


def test_every_record_gets_vectors_and_nothing_else_changes(casebook: Casebook) -> None:
    before = casebook.store.summaries()
    seen: list[tuple[int, int]] = []
    done = reembed(casebook, NEW, lambda _stage, at, total: seen.append((at, total)))
    assert (done.embedded, done.held, done.records, done.passed_over) == (70, 0, 70, ())
    assert casebook.store.summaries() == before
    assert seen[0] == (0, 70)
    assert seen[-1] == (70, 70)
    for embedder in (OLD, NEW):
        view = load_vectors(casebook.store, embedder, casebook.workspace.vectors)
        assert view.ids.tolist() == [row.id for row in before]
    own = prepare(casebook.store.versions([before[3].id])[before[3].id].record, NEW, CATALOGUE)
    assert load_vectors(casebook.store, NEW).rows_of(before[3].id).tobytes() == own.vectors


def test_a_second_run_finds_them_there(casebook: Casebook) -> None:
    reembed(casebook, NEW, lambda *_: None)
    generation = casebook.store.generation()
    assert reembed(casebook, NEW, lambda *_: None).embedded == 0
    assert casebook.store.generation() == generation


def test_a_record_shown_in_an_older_version_is_passed_over(casebook: Casebook) -> None:
    sha256 = publish(casebook.store, "r5", "a second version")  # type: ignore[arg-type]  # the fixture's store
    casebook.store.append(Event(kind="yanked", subject=sha256, author="test", at_ns=1))
    done = reembed(casebook, NEW, lambda *_: None)
    assert (done.embedded, len(done.passed_over)) == (69, 1)
    assert done.passed_over[0].endswith("r5@1")
    assert len(casebook.store.history("r5")) == 2


def test_a_record_published_meanwhile_is_a_conflict_not_a_step_back(casebook: Casebook) -> None:
    class Interfering(HashingEmbedder):
        def encode_documents(self, texts):  # type: ignore[no-untyped-def]  # as its parent
            if not casebook.store.history("r1")[1:]:
                publish(casebook.store, "r1", "newer")  # type: ignore[arg-type]  # the fixture's store
            return super().encode_documents(texts)

    with pytest.raises(ConflictError):
        reembed(casebook, Interfering(48), lambda *_: None)
    assert casebook.store.history("r1")[-1].record.summary.en == "newer"


def test_the_figures_can_be_printed(casebook: Casebook) -> None:
    done = msgspec.to_builtins(reembed(casebook, NEW, lambda *_: None))
    assert done["model_id"] == NEW.model_id
    assert done["dim"] == 48
