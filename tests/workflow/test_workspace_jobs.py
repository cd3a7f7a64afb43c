"""Backup, restore, doctor and the upgrade of an old store, over a whole workspace."""

from __future__ import annotations

import shutil
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest
from workflow.bench import casebook, make_library, quiet, record

from kb.domain.catalogue import Catalogue
from kb.domain.version import Ref
from kb.errors import ConflictError, ContentError, StoreError
from kb.store import migrations, sqlite
from kb.store.migrations import MIGRATIONS
from kb.store.sqlite import open_store
from kb.workflow import casebook as opening
from kb.workflow import doctor
from kb.workflow.backup import back_up_workspace, restore_workspace
from kb.workflow.casebook import Casebook, open_casebook
from kb.workflow.publish import publish
from kb.workflow.search import find
from kb.workflow.workspace import Workspace


def slugs(place: Workspace) -> list[str]:
    store = open_store(place.database, writable=False)
    found = sorted(item.ref.slug for item in store.summaries())
    store.close()
    return found


def test_a_backup_of_a_workspace_in_use_comes_back(book: Casebook, tmp_path: Path) -> None:
    from kb.store.artefacts import FolderArtefacts

    name = FolderArtefacts(book.workspace.artefacts).put(b"a session")
    publish(book, record("one"), author="ann")
    done = back_up_workspace(book.workspace, tmp_path / "b.zip", quiet)
    assert done.sessions == 1
    publish(book, record("two"), author="ann")
    fresh = Workspace(tmp_path / "fresh")
    restore_workspace(fresh, tmp_path / "b.zip", force=False)
    assert slugs(fresh) == ["one"]
    assert FolderArtefacts(fresh.artefacts).get(name) == b"a session"
    with pytest.raises(ConflictError, match="exists"):
        restore_workspace(book.workspace, tmp_path / "b.zip", force=False)
    with pytest.raises(ConflictError, match="exists"):
        back_up_workspace(book.workspace, tmp_path / "b.zip", quiet)


def test_what_a_restore_replaces_is_kept_beside(book: Casebook, tmp_path: Path) -> None:
    publish(book, record("one"), author="ann")
    back_up_workspace(book.workspace, tmp_path / "b.zip", quiet)
    publish(book, record("two"), author="ann")
    done = restore_workspace(book.workspace, tmp_path / "b.zip", force=True, now=datetime(2026, 1, 2, tzinfo=UTC))
    assert slugs(book.workspace) == ["one"]
    assert done.replaced is not None
    assert "20260102" in done.replaced
    kept = open_store(Path(done.replaced), writable=False)
    assert sorted(item.ref.slug for item in kept.summaries()) == ["one", "two"]
    kept.close()


def test_a_store_that_cannot_be_opened_any_more_can_be_restored(tmp_path: Path, catalogue: Catalogue) -> None:
    place = Workspace(tmp_path / "home")
    with casebook(place.home, catalogue) as book:
        publish(book, record("one"), author="ann")
        back_up_workspace(place, tmp_path / "b.zip", quiet)
    place.database.write_bytes(b"rubbish" * 1000)
    done = restore_workspace(place, tmp_path / "b.zip", force=True)
    assert slugs(place) == ["one"]
    assert done.replaced is not None
    assert Path(done.replaced).read_bytes().startswith(b"rubbish")


@pytest.mark.parametrize("at", [0.1, 0.5, 0.9])
def test_a_damaged_backup_is_refused_and_nothing_is_touched(book: Casebook, tmp_path: Path, at: float) -> None:
    publish(book, record("one"), author="ann")
    back_up_workspace(book.workspace, tmp_path / "b.zip", quiet)
    data = bytearray((tmp_path / "b.zip").read_bytes())
    place = int(len(data) * at)
    data[place : place + 64] = bytes(64)
    (tmp_path / "b.zip").write_bytes(bytes(data))
    publish(book, record("two"), author="ann")
    with pytest.raises((ContentError, StoreError)):
        restore_workspace(book.workspace, tmp_path / "b.zip", force=True)
    assert slugs(book.workspace) == ["one", "two"]


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue) -> Path:
    """A small library in place of the real one."""
    root = make_library(tmp_path / "lib", record("shipped"))
    monkeypatch.setenv("KB_EMBEDDER", "hashing")
    for module in (opening, doctor):
        monkeypatch.setattr(module, "library_root", lambda: root)
        monkeypatch.setattr(module, "load_catalogue", lambda _root: catalogue)
    return root


@pytest.mark.usefixtures("shipped")
def test_doctor_is_content_with_a_sound_workspace_and_repairs_caches_only(tmp_path: Path) -> None:
    place = Workspace(tmp_path / "home")
    with open_casebook(place, quiet, writable=True) as book:
        publish(book, record("one"), author="ann")
    assert [check.name for check in doctor.examine(place, quiet) if not check.ok] == []
    for path in place.vectors.glob("*.vectors"):
        path.write_bytes(b"spoilt")
    connection = sqlite3.connect(place.database)
    connection.execute("DELETE FROM head WHERE slug = 'one'")
    connection.commit()
    before = connection.execute("SELECT count(*), sum(length(body)) FROM content").fetchone()
    assert [check.name for check in doctor.examine(place, quiet) if not check.ok] == ["store heads", "index"]
    repaired = doctor.examine(place, quiet, repair=True)
    assert [check.name for check in repaired if check.repaired] == ["store heads", "index"]
    assert all(check.ok for check in repaired)
    assert connection.execute("SELECT count(*), sum(length(body)) FROM content").fetchone() == before
    connection.close()


@pytest.mark.usefixtures("shipped")
def test_doctor_names_what_it_may_not_mend(tmp_path: Path) -> None:
    place = Workspace(tmp_path / "home")
    with open_casebook(place, quiet, writable=True) as book:
        publish(book, record("one"), author="ann")
    connection = sqlite3.connect(place.database)
    connection.execute("DROP TRIGGER posting_no_delete")
    connection.execute("DELETE FROM posting WHERE version_id = 1")
    connection.commit()
    connection.close()
    bad = [check.name for check in doctor.examine(place, quiet, repair=True) if not check.ok]
    assert bad == ["store guards", "store words"]


def m002_later(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE later (id INTEGER PRIMARY KEY)")


@pytest.mark.usefixtures("shipped")
def test_an_old_store_is_upgraded_by_the_first_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Workspace(tmp_path / "home")
    with open_casebook(place, quiet):
        pass
    steps = (*MIGRATIONS, m002_later)
    monkeypatch.setattr(sqlite, "MIGRATIONS", steps)
    monkeypatch.setattr(migrations.migrate, "__defaults__", (steps,))
    monkeypatch.setattr(migrations.refuse_newer, "__defaults__", (steps,))
    with open_casebook(place, quiet) as book:
        assert book.store.get(Ref("shipped")).n == 1
    connection = sqlite3.connect(place.database)
    assert connection.execute("SELECT count(*) FROM later").fetchone() == (0,)
    connection.close()


@pytest.mark.usefixtures("shipped")
def test_the_workspace_covers_the_library_and_searches_follow_at_once(tmp_path: Path) -> None:
    from kb.domain.case import CaseQuery

    place = Workspace(tmp_path / "home")
    with open_casebook(place, quiet, writable=True) as book:
        publish(book, record("shipped", "about quokkas"), author="ann", overlay=True)
        for text_only in (True, False):
            hit = find(book, CaseQuery(text="quokkas"), text_only=text_only).hits[0]
            assert (hit.slug, hit.origin) == ("shipped", "workspace")
    shutil.rmtree(place.vectors)
    with open_casebook(place, quiet) as book:
        assert find(book, CaseQuery(text="quokkas")).hits
