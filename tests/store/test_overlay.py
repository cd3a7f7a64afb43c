"""Random histories against a model that computes everything anew from the list of what happened."""

from __future__ import annotations

import sqlite3
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from store.examples import prepared, record

from kb.domain.event import Event
from kb.domain.provenance import StoreOrigin
from kb.domain.version import RESOLUTION, Ref
from kb.errors import NotFoundError
from kb.store.sqlite import SqliteStore, open_store

ORIGINS: tuple[StoreOrigin, ...] = ("library", "team", "workspace")


@dataclass
class Model:
    """Versions as (origin, slug, n, text), and the contents withdrawn, as (slug, text)."""

    versions: list[tuple[StoreOrigin, str, int, str]] = field(default_factory=list)
    yanked: set[tuple[str, str]] = field(default_factory=set)

    def publish(self, origin: StoreOrigin, slug: str, text: str) -> int:
        mine = [version for version in self.versions if version[:2] == (origin, slug)]
        if mine and mine[-1][3] == text:
            return mine[-1][2]
        self.versions.append((origin, slug, len(mine) + 1, text))
        return len(mine) + 1

    def newest(self, slug: str) -> tuple[StoreOrigin, str, int, str] | None:
        visible = [version for version in self.versions if version[1] == slug and (slug, version[3]) not in self.yanked]
        return min(visible, key=lambda version: (RESOLUTION.index(version[0]), -version[2]), default=None)


publishing = st.tuples(st.just("publish"), st.sampled_from(ORIGINS), st.sampled_from("ab"), st.sampled_from("xyz"))
yanking = st.tuples(st.just("yank"), st.sampled_from(ORIGINS), st.sampled_from("ab"), st.integers(0, 5))


def newest_in(store: SqliteStore, slug: str) -> tuple[StoreOrigin, str, int, str] | None:
    try:
        found = store.get(Ref(slug))
    except NotFoundError:
        return None
    return found.origin, slug, found.n, found.record.body.en


def play(store: SqliteStore, model: Model, step: tuple[object, ...]) -> None:
    match step:
        case ("publish", origin, str(slug), str(text)):
            made = store.publish(record(slug, text), prepared({text: 1}), origin=origin, author="ann")  # type: ignore[arg-type]
            assert made.n == model.publish(origin, slug, text)  # type: ignore[arg-type]
        case ("yank", _, str(slug), int(place)):
            mine = [version for version in model.versions if version[1] == slug]
            if mine:
                origin, _, n, text = mine[place % len(mine)]
                subject = store.get(Ref(slug, n, origin)).sha256
                store.append(Event(kind="yanked", subject=subject, author="ann", at_ns=0))
                model.yanked.add((slug, text))


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(st.one_of(publishing, publishing, yanking), max_size=14))
def test_what_is_visible_is_what_the_history_says(steps: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        store, model = open_store(path, writable=True), Model()
        for step in steps:
            play(store, model, step)
        expected = [version for version in map(model.newest, "ab") if version]
        assert [version for slug in "ab" if (version := newest_in(store, slug))] == expected
        listed = {(item.ref.origin, item.ref.slug, item.ref.n) for item in store.summaries()}
        assert listed == {version[:3] for version in expected}
        ids = {item.ref.slug: item.id for item in store.summaries()}
        for text, found in store.postings(["x", "y", "z"]).items():
            assert {posting.id for posting in found} == {ids[version[1]] for version in expected if version[3] == text}
        for origin, slug, n, text in model.versions:
            assert store.get(Ref(slug, n, origin)).record.body.en == text
        store.close()
        raw = sqlite3.connect(path)
        assert raw.execute("SELECT count(*) FROM head").fetchone() == (len(expected),)
        raw.close()
