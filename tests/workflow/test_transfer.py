"""Records out and in: byte-equal round trips, merges by hash, conflicts by name, nothing trusted."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from workflow.bench import casebook, quiet, record, run_of, with_gain

from kb.compare.comparison import compare
from kb.domain.catalogue import Catalogue
from kb.domain.text import Text
from kb.domain.version import Ref
from kb.errors import ContentError, NotFoundError
from kb.session.session import Session
from kb.store.artefacts import FolderArtefacts
from kb.workflow.archive import open_source, write_zip
from kb.workflow.casebook import Casebook
from kb.workflow.events import alias, deprecate, unyank, use, yank
from kb.workflow.merge import Imported, OnConflict, import_from
from kb.workflow.publish import publish, with_sessions
from kb.workflow.transfer import export
from kb.workflow.verify import verify


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def taken(book: Casebook, path: Path, on_conflict: OnConflict = "skip") -> Imported:
    source = open_source(path)
    try:
        return import_from(book, source, quiet, on_conflict=on_conflict)
    finally:
        source.close()


@pytest.fixture
def full(book: Casebook, runs: tuple[Session, Session]) -> Casebook:
    """Records of every kind of history."""
    for text in ("1", "2", "3"):
        publish(book, record("line", text), author="安", visibility="team")
    for n, name in ((3, "stable"), (1, "stable"), (2, "old")):
        alias(book.store, Ref("line", n), name, author="ann")
    yank(book.store, Ref("line", 2), author="ann", reason="wrong", replacement=Ref("line", 3))
    unyank(book.store, Ref("line", 2), author="bob")
    yank(book.store, Ref("line", 2), author="bob", reason="harmful")
    publish(book, record("single", "x"), author="ann", visibility="public")
    use(book.store, Ref("single"), author="bob", result="improved", gain_fraction=0.125, note="试")
    deprecate(book.store, Ref("single"), author="bob", reason="superseded")
    seen = compare(*runs)
    stated = with_gain("proved", seen.before_step_ns / 1e6, seen.after_step_ns / 1e6)
    publish(book, with_sessions(stated, runs, FolderArtefacts(book.workspace.artefacts)), author="ann")
    verify(book, Ref("proved"), author="ann")
    return book


def test_a_round_trip_gives_equal_bytes_and_equal_answers(full: Casebook, tmp_path: Path, catalogue: Catalogue) -> None:
    done = export(full, tmp_path / "one")
    assert (done.records, done.versions, done.sessions) == (3, 5, 2)
    with casebook(tmp_path / "other", catalogue) as other:
        result = taken(other, tmp_path / "one")
        assert (result.versions, result.conflicts, result.refused) == (5, (), ())
        export(other, tmp_path / "two")
        for slug in ("line", "single", "proved"):
            mine, theirs = (book.store.revisions(slug) for book in (full, other))
            assert [(item.sha256, item.author, item.created_ns, item.status, item.parent) for item in mine] == [
                (item.sha256, item.author, item.created_ns, item.status, item.parent) for item in theirs
            ]
        assert other.store.get(Ref("line", alias="stable")).n == full.store.get(Ref("line", alias="stable")).n == 1
        assert verify(other, Ref("proved"), author="ann").verified
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_importing_again_changes_nothing(full: Casebook, tmp_path: Path) -> None:
    export(full, tmp_path / "one")
    before = full.store.generation()
    result = taken(full, tmp_path / "one")
    assert (result.versions, result.events, result.unchanged) == (0, 0, 5)
    assert full.store.generation() == before


def test_a_zip_holds_the_same_and_equal_exports_give_equal_zips(full: Casebook, tmp_path: Path, catalogue: Catalogue) -> None:
    export(full, tmp_path / "one")
    for name in ("a.zip", "b.zip"):
        write_zip(tmp_path / "one", tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with casebook(tmp_path / "other", catalogue) as other:
        assert taken(other, tmp_path / "a.zip").versions == 5


def test_a_longer_history_continues_and_a_shorter_one_changes_nothing(book: Casebook, tmp_path: Path, catalogue: Catalogue) -> None:
    publish(book, record("a", "1"), author="ann")
    export(book, tmp_path / "short")
    with casebook(tmp_path / "other", catalogue) as other:
        taken(other, tmp_path / "short")
        publish(book, record("a", "2"), author="ann")
        export(book, tmp_path / "long")
        assert taken(other, tmp_path / "long").versions == 1
        assert taken(other, tmp_path / "short").versions == 0
        assert other.store.get(Ref("a")).record.body.en == "2"


@pytest.mark.parametrize(("on_conflict", "expected"), [("skip", ["1", "mine"]), ("append", ["1", "mine", "theirs"])])
def test_histories_that_parted_are_named(
    book: Casebook, tmp_path: Path, catalogue: Catalogue, on_conflict: OnConflict, expected: list[str]
) -> None:
    publish(book, record("a", "1"), author="ann")
    export(book, tmp_path / "start")
    publish(book, record("a", "theirs"), author="ann")
    publish(book, record("b", "new"), author="ann")
    export(book, tmp_path / "theirs")
    with casebook(tmp_path / "other", catalogue) as other:
        taken(other, tmp_path / "start")
        publish(other, record("a", "mine"), author="bob")
        result = taken(other, tmp_path / "theirs", on_conflict)
        assert ["workspace:a@2" in text.en for text in result.conflicts] == [True]
        assert [version.record.body.en for version in other.store.history("a")] == expected
        assert other.store.get(Ref("b")).record.body.en == "new"


def edit(folder: Path, **changes: object) -> None:
    path = folder / "workspace" / "a" / "1.json"
    data = json.loads(path.read_text())
    data["record"] |= {key: value for key, value in changes.items() if key != "sha256"}
    if "sha256" in changes:
        data["sha256"] = changes["sha256"]
    path.write_text(json.dumps(data))


def rehash(folder: Path) -> None:
    """Make the hash fit an edited record, as a forger would."""
    import msgspec

    from kb.domain.canonical import content_hash
    from kb.domain.record import Record

    path = folder / "workspace" / "a" / "1.json"
    data = json.loads(path.read_text())
    data["sha256"] = content_hash(msgspec.convert(data["record"], Record))
    path.write_text(json.dumps(data))
    (folder / "workspace" / "a" / "events.json").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("changes", "forged", "words"),
    [
        ({"summary": {"en": "edited", "zh": "改"}}, False, "does not fit its hash"),
        ({"body": {"en": "<script>alert(1)</script>", "zh": "正文"}}, True, "raw HTML"),
        ({"body": {"en": "[x](javascript:alert(1))", "zh": "正文"}}, True, "link"),
        ({"sources": [{"title": "x", "url": "file:///etc/passwd"}]}, True, "link"),
        ({"title": {"en": "a\u202eb", "zh": "标题"}}, True, "control character"),
        ({"provenance": "measured"}, True, "its sessions carry claimed"),
        ({"sessions": ["../../etc/passwd"]}, True, "sessions"),
    ],
)
def test_what_may_not_come_in_is_refused_by_name(
    book: Casebook, tmp_path: Path, catalogue: Catalogue, changes: dict[str, object], forged: bool, words: str
) -> None:
    publish(book, record("a"), author="ann")
    publish(book, record("b"), author="ann")
    export(book, tmp_path / "one")
    edit(tmp_path / "one", **changes)
    if forged:
        rehash(tmp_path / "one")
    with casebook(tmp_path / "other", catalogue) as other:
        result = taken(other, tmp_path / "one")
        assert [words in text.en for text in result.refused] == [True], result.refused
        assert [str(item.ref) for item in other.store.summaries()] == ["workspace:b@1"]


def test_nothing_leads_out_of_an_archive(book: Casebook, tmp_path: Path) -> None:
    for name in ("../evil.json", "/etc/evil.json", "a\\..\\evil", "workspace/../../x.json"):
        with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
            archive.writestr(name, "{}")
        with pytest.raises(ContentError, match="member"):
            taken(book, tmp_path / "bad.zip")


def test_a_small_archive_may_not_unpack_to_much(book: Casebook, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"workspace/a/{number + 1}.json", bytes(40 * 2**20))
    with pytest.raises(ContentError, match="would unpack"):
        taken(book, tmp_path / "bomb.zip")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nonsense", b"not a zip"])
def test_what_is_no_export_is_named(book: Casebook, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(ContentError):
        taken(book, tmp_path / "x.zip")
    with pytest.raises(ContentError, match=r"casebook\.json"):
        taken(book, tmp_path)


def test_a_link_in_a_folder_is_not_followed(book: Casebook, tmp_path: Path, catalogue: Catalogue) -> None:
    publish(book, record("a"), author="ann")
    export(book, tmp_path / "one")
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    (tmp_path / "one" / "workspace" / "b").mkdir()
    (tmp_path / "one" / "workspace" / "b" / "1.json").symlink_to(secret)
    with casebook(tmp_path / "other", catalogue) as other:
        assert taken(other, tmp_path / "one").records == 1


def test_a_forged_session_is_refused(book: Casebook, tmp_path: Path) -> None:
    publish(book, record("a"), author="ann")
    export(book, tmp_path / "one")
    folder = tmp_path / "one" / "sessions" / "00"
    folder.mkdir(parents=True)
    (folder / f"{'0' * 64}.prof").write_bytes(b"something else")
    with pytest.raises(ContentError, match="does not fit its name"):
        taken(book, tmp_path / "one")


def test_only_the_records_asked_for_are_exported(full: Casebook, tmp_path: Path) -> None:
    assert export(full, tmp_path / "a", slugs=("line",)).records == 1
    assert export(full, tmp_path / "b", visibilities=("public",)).records == 1
    with pytest.raises(NotFoundError, match="unknown"):
        export(full, tmp_path / "c", slugs=("unknown",))


def test_measured_evidence_travels(book: Casebook, tmp_path: Path, catalogue: Catalogue) -> None:
    runs = run_of(100, 101, 99, 100), run_of(80, 81, 79, 80)
    publish(
        book, with_sessions(with_gain("m", 100.0, 80.0, provenance="measured"), runs, FolderArtefacts(book.workspace.artefacts)), author="a"
    )
    export(book, tmp_path / "one")
    with casebook(tmp_path / "other", catalogue) as other:
        assert taken(other, tmp_path / "one").refused == ()
        assert other.store.get(Ref("m")).record.provenance == "measured"
        assert other.store.get(Ref("m")).record.title == Text("标题", "title")
