"""The team store through the command line, and copies between the engines."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from cli.program import Run, runner
from store.examples import case, prepared, record
from store.servers import TeamDatabase, drop
from workflow.bench import make_library

from kb.domain.event import Event, EventKind
from kb.domain.protocols import Publication, Store
from kb.domain.record import Record
from kb.domain.version import Ref
from kb.errors import StoreError, UsageError
from kb.library.location import library_root
from kb.store.artefacts import FolderArtefacts
from kb.store.postgres.store import PostgresStore, open_store
from kb.store.sqlite import open_store as open_file
from kb.workflow.casebook import require_postgres
from kb.workflow.storecopy import copy_store, place_of
from kb.workflow.team import logins_of
from kb.workflow.workspace import workspace


def quiet(stage: str, done: int, total: int, /) -> None:
    """Progress nobody looks at."""


def told(store: Store, *, ids: bool = False) -> list[object]:
    """Everything of one's own in a store but row ids and generations, which each store counts for itself."""
    slugs = sorted({(str(event.detail["origin"]), str(event.detail["slug"])) for event in store.events() if event.kind == "published"})
    versions = [
        msgspec.structs.replace(version, generation=0)
        for origin, slug in slugs
        for version in store.history(slug, origin)  # type: ignore[arg-type]  # a StoreOrigin
    ]
    events = sorted((e.subject, e.kind, e.author, e.at_ns, sorted(map(str, e.detail.items()))) for e in store.events())
    visible = sorted((str(item.ref), item.status) for item in store.summaries())
    postings = {token: sorted((found.count, found.length) for found in held) for token, held in store.postings(["a", "b", "融合"]).items()}
    block = store.vectors_since(0, "toy@1")
    return [versions, events, visible, postings, sorted(zip(block.fields, chunks(block.vectors, 4 * block.dim), strict=True))]


def chunks(data: bytes, width: int) -> list[bytes]:
    return [data[at : at + width] for at in range(0, len(data), width)] if width else []


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A file with histories, several models, withdrawals, aliases, uses and a session."""
    folder = tmp_path / "source"
    folder.mkdir()
    session = FolderArtefacts(folder / "artefacts").put(b"a capture")
    store = open_file(folder / "casebook.db", writable=True)
    for slug, texts in (("a", ("1", "2", "1")), ("b", ("1",)), ("c", ("1", "2"))):
        for text in texts:
            item = record(slug, text, cases=[case(family="A2")])
            if slug == "b":
                item = msgspec.structs.replace(item, sessions=(session,))
            publish(store, item, slug)
    store.publish(record("b"), prepared({"team": 1}), origin="team", author="tom", visibility="public")
    store.publish(record("shipped"), prepared(), origin="library", author="kb", visibility="public")
    said: tuple[tuple[EventKind, str, dict[str, Any]], ...] = (
        ("used", "a", {"origin": "workspace", "n": 3, "gain_fraction": 0.25}), ("yanked", "c", {"origin": "workspace", "n": 2}),
        ("aliased", "b", {"alias": "stable", "origin": "workspace", "n": 1}), ("used", "b", {"note": "试"}),
    )  # fmt: skip
    for kind, slug, detail in said:
        store.append(Event(kind=kind, subject=store.get(Ref(slug, origin="workspace")).sha256, author="ann", at_ns=9, detail=detail))
    store.close()
    return folder / "casebook.db"


def publish(store: Store, item: Record, author: str) -> None:
    first = Publication(record=item, prepared=prepared({"a": 2, "融合": 1}), origin="workspace", author=author, created_ns=5)
    second = msgspec.structs.replace(first, prepared=prepared({"a": 2}, {"body": (1, 2, 3)}, model_id="toy@2"))
    store.publish_all([first, second])


def opened(path: Path) -> Store:
    return open_file(path, writable=False)


def test_a_copy_there_and_back_is_the_same(filled: Path, team: TeamDatabase, tmp_path: Path) -> None:
    there = copy_store(str(filled), team.urls["ann"], tmp_path, quiet)
    assert (there.versions, there.unchanged, there.events, there.sessions, there.checked) == (7, 0, 4, 1, 7)
    back = copy_store(team.urls["ann"], str(tmp_path / "back" / "casebook.db"), tmp_path, quiet)
    assert (back.versions, back.checked, back.conflicts) == (7, 7, ())
    source, target, middle = opened(filled), opened(tmp_path / "back" / "casebook.db"), open_store(team.urls["ann"], writable=False)
    mine = told(middle)
    assert told(target) == mine
    kept = [item for item in told(source)[0] if item.origin != "library"]  # type: ignore[attr-defined]  # versions
    assert mine[0] == kept
    assert middle.vectors_since(0, "toy@2").dim == 3
    assert middle.get(Ref("b", alias="stable")).n == 1
    assert middle.artefacts.get(middle.get(Ref("b", origin="workspace")).record.sessions[0]) == b"a capture"
    for store in (source, target, middle):
        store.close()


def test_a_copy_repeated_copies_nothing_and_one_cut_short_goes_on(
    filled: Path, team: TeamDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kb.workflow.storecopy.TOGETHER", 2)
    written: list[int] = []
    publish_all = PostgresStore.publish_all

    def cut(self: PostgresStore, items: Any) -> Any:
        written.append(len(items))
        if len(written) == 3:
            raise StoreError("the line broke")
        return publish_all(self, items)

    monkeypatch.setattr(PostgresStore, "publish_all", cut)
    with pytest.raises(StoreError, match="line broke"):
        copy_store(str(filled), team.urls["ann"], tmp_path, quiet)
    monkeypatch.undo()
    rest = copy_store(str(filled), team.urls["ann"], tmp_path, quiet)
    assert (rest.versions + rest.unchanged, rest.checked) == (7, 7)
    assert 0 < rest.unchanged < 7
    again = copy_store(str(filled), team.urls["ann"], tmp_path, quiet)
    assert (again.versions, again.unchanged, again.events, again.checked) == (0, 7, 0, 7)


def test_what_others_may_see_becomes_the_teams(team: TeamDatabase, tmp_path: Path) -> None:
    store = open_file(tmp_path / "a.db", writable=True)
    made = store.publish(record("a"), prepared(), origin="workspace", author="ann", visibility="team")
    store.append(Event(kind="used", subject=made.sha256, author="ann", at_ns=1, detail={"origin": "workspace", "n": 1}))
    store.publish(record("mine"), prepared(), origin="workspace", author="ann")
    store.close()
    copy_store(str(tmp_path / "a.db"), team.urls["ann"], tmp_path, quiet)
    bob = open_store(team.urls["bob"], writable=False)
    assert [str(item.ref) for item in bob.summaries()] == ["team:a@1"]
    assert bob.events()[-1].detail == {"origin": "team", "n": 1}
    bob.close()


def test_a_line_that_went_another_way_is_left_and_named(filled: Path, team: TeamDatabase, tmp_path: Path) -> None:
    other = open_store(team.urls["bob"], writable=True)
    theirs = other.publish(record("b", "another"), prepared(), origin="team", author="bob", visibility="team")
    done = copy_store(str(filled), team.urls["ann"], tmp_path, quiet)
    assert [said.en.partition(":")[2].partition(":")[0] for said in done.conflicts] == ["b"]
    assert done.versions == 6
    assert [version.sha256 for version in other.history("b", "team")] == [theirs.sha256]
    other.close()


def test_a_source_that_is_its_target_and_an_unknown_kind_are_usage_errors(filled: Path, tmp_path: Path) -> None:
    for target in (str(filled), "mysql://a/b"):
        with pytest.raises(UsageError):
            copy_store(str(filled), target, tmp_path, quiet)
    assert place_of(str(filled.parent), tmp_path).database == filled
    assert place_of(f"sqlite:///{filled}", tmp_path).artefacts == filled.parent / "artefacts"


def test_a_login_given_twice_gets_the_stronger_role() -> None:
    assert logins_of(["a", "b"], ["b"], ["c"]) == {"a": "guest", "b": "member", "c": "maintainer"}


def test_the_environment_names_the_store(tmp_path: Path) -> None:
    place = workspace({"KB_HOME": str(tmp_path), "KB_STORE": "postgresql://ann:hunter2@db/kb"})
    assert (place.team_url, place.shown) == ("postgresql://ann:hunter2@db/kb", "postgresql://ann@db/kb")
    with pytest.raises(StoreError, match="no file"):
        _ = place.database
    assert workspace({"KB_HOME": str(tmp_path), "KB_STORE": f"sqlite:///{tmp_path}/x.db"}).database == tmp_path / "x.db"
    assert workspace({"KB_HOME": str(tmp_path)}).database == tmp_path / "casebook.db"
    with pytest.raises(UsageError, match="redis"):
        workspace({"KB_STORE": "redis://x"})


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kb.workflow.casebook.find_spec", lambda name: None)
    with pytest.raises(StoreError, match="driver") as caught:
        require_postgres()
    assert "pip install '.[postgres]'" in str(caught.value)


# The command line


@pytest.fixture
def kb(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("KB_EMBEDDER", "hashing")
    return runner(capsys)


@pytest.fixture
def file_of(tmp_path: Path) -> Callable[[Record], Path]:
    """A record as a file to publish."""

    def write(item: Record) -> Path:
        path = tmp_path / f"{item.slug}.json"
        path.write_bytes(msgspec.json.encode(item))
        return path

    return write


def test_publishing_and_reading_as_different_people(team: TeamDatabase, kb: Run, file_of: Callable[[Record], Path]) -> None:
    item = file_of(record("shared-way", "about bubbles", cases=[case()]))
    made = kb("--store", team.urls["ann"], "publish", item, "--visibility", "team", "--author", "ann", "--json")
    assert made.json()["ref"] == "team:shared-way@1"
    again = kb("publish", item, "--visibility", "team", "--store", team.urls["bob"], "--json")
    assert (again.json()["ref"], again.json()["created"]) == ("team:shared-way@1", False)
    secret = file_of(record("anns-draft", "about bubbles", cases=[case()]))
    assert kb("publish", secret, "--store", team.urls["ann"], "--json").json()["ref"] == "workspace:anns-draft@1"
    listed = {name: kb("list", "--json", f"--store={team.urls[name]}").json()["records"] for name in ("ann", "bob", "guy")}
    seen = {name: {row["slug"] for row in rows} for name, rows in listed.items()}
    assert seen == {"ann": {"shared-way", "anns-draft"}, "bob": {"shared-way"}, "guy": set()}
    for flags in ((), ("--text-only",)):
        found = kb("search", "attention not fused", "--json", "--store", team.urls["bob"], *flags).json()
        assert [hit["slug"] for hit in found["hits"]] == ["shared-way"]
    assert kb("show", "anns-draft", "--store", team.urls["bob"]).status == 1
    assert kb("show", "anns-draft", "--store", team.urls["ann"]).status == 0
    log = kb("log", "shared-way", "--json", "--store", team.urls["bob"])
    assert log.status == 0
    stale = kb("publish", item, "--visibility", "team", "--store", team.urls["ann"], "--expect-parent", "0" * 64)
    assert stale.status == 0
    changed = file_of(record("shared-way", "changed", cases=[case()]))
    assert kb("publish", changed, "--visibility", "team", "--store", team.urls["ann"], "--expect-parent", "0" * 64).status == 1


def test_refusals_are_told_with_what_is_allowed(team: TeamDatabase, kb: Run, file_of: Callable[[Record], Path]) -> None:
    item = file_of(record("g", cases=[case()]))
    for words, status, said in (
        (("publish", item, "--visibility", "team", "--store", team.urls["guy"]), 1, "may not"),
        (("backup", "x.zip", "--store", team.urls["ann"]), 1, "docs/team-store.md"),
        (("list", "--store", "redis://x"), 2, "postgresql://"),
        (("list", "--store", "postgresql://a:hunter2@127.0.0.1:9/kb"), 1, "cannot be reached"),
        (("store", "init", "--admin-url", "nowhere"), 2, "--admin-url"),
        (("store", "copy", "absent.db", "other.db"), 1, "no store"),
    ):
        done = kb(*words)
        assert (done.status, said in done.err, "hunter2" in done.err, "do:" in done.err) == (status, True, False, True), done


def test_the_store_named_for_one_command_is_forgotten_after_it(team: TeamDatabase, kb: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    kb("--store", team.urls["ann"], "list")
    assert "KB_STORE" not in os.environ
    monkeypatch.setenv("KB_STORE", team.urls["bob"])
    assert kb("list", "--json").json()["records"] == []
    kb("list", "--store", team.urls["ann"])
    assert os.environ["KB_STORE"] == team.urls["bob"]


def test_doctor_looks_at_the_team_store(team: TeamDatabase, kb: Run, file_of: Callable[[Record], Path]) -> None:
    kb("publish", file_of(record("a", cases=[case()])), "--visibility", "team", "--store", team.urls["mia"])
    report = kb("doctor", "--json", "--store", team.urls["mia"]).json()
    checks = {check["name"]: check["ok"] for check in report["checks"]}
    assert {name for name in checks if name.startswith("store ")} == {f"store {name}" for name in
           ("guards", "contents", "versions", "heads", "words", "audiences", "generation")}  # fmt: skip
    # Without the library it says so; everything else is well.
    assert [name for name, ok in checks.items() if not ok and name != "import name"] == ["store"]


def test_init_brings_the_library_and_tells_passwords_once(
    team: TeamDatabase, kb: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library = make_library(tmp_path / "library", record("shipped", cases=[case()]))
    (library / "recipes" / "catalogue").symlink_to(library_root() / "recipes" / "catalogue")
    monkeypatch.setattr("kb.workflow.team.library_root", lambda: library)
    name, url = "kb_test_init", team.server.url("kb_test_init")
    with psycopg.connect(team.admin_url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE kb_test_init TEMPLATE template0")
    try:
        made = kb("store", "init", "--admin-url", url, "--member", "kb_test_nan", "--guest", "kb_test_gus", "--json").json()
        assert (made["library"], made["initialised"]["applied"], made["initialised"]["closed"]) == (1, ["m001_initial"], True)
        assert sorted(made["initialised"]["passwords"]) == ["kb_test_gus", "kb_test_nan"]
        again = kb("store", "init", "--admin-url", url, "--member", "kb_test_nan", "--json").json()
        assert (again["library"], again["initialised"]["applied"], again["initialised"]["passwords"]) == (0, [], {})
        said = kb("store", "init", "--admin-url", url, "--member", "kb_test_nan", "--lang", "zh")
        assert "kb_test_nan：member" in said.out
        store = open_store(team.server.url(name, "kb_test_gus", "x"), writable=False)
        assert [str(item.ref) for item in store.summaries()] == ["library:shipped@1"]
        store.close()
    finally:
        drop(team.server, name, {"kb_test_nan": "member", "kb_test_gus": "guest"})
