"""The same content gives the same answers on both engines, and the database finds the same neighbours as a plain product."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest
from store.examples import case, prepared, record
from store.servers import TeamDatabase

from kb.domain.case import CaseQuery
from kb.domain.event import Event
from kb.domain.protocols import Publication, Store
from kb.domain.provenance import TIERS
from kb.embed.hashing import HashingEmbedder
from kb.errors import StoreError
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.library.records import read_records
from kb.search.dense import load_vectors
from kb.search.prepare import prepare
from kb.search.query import search
from kb.store.postgres import nearest as nearest_module
from kb.store.postgres.store import PostgresStore, open_store
from kb.store.reading import filters_of
from kb.store.sqlite import open_store as open_file

EMBEDDER = HashingEmbedder(64)
QUERIES = (
    CaseQuery(text="attention is not fused 注意力没有融合"),
    CaseQuery(text="流水线空泡", kinds=("recipe",)),
    CaseQuery(text="communication exposed", soc_families=("A2",), kinds=()),
    CaseQuery(text="pipeline bubbles and slow loading", causes=("pipeline_bubble",), kinds=()),
    CaseQuery(text="KV cache", model_types=("llm",), limit=25),
    CaseQuery(text="xyzzy nothing like that"),
)


@pytest.fixture(scope="module")
def items() -> list[Publication]:
    """A quarter of the shipped library."""
    catalogue = load_catalogue(library_root())
    return [
        Publication(record=item, prepared=prepare(item, EMBEDDER, catalogue), origin="library", author="kb", visibility="public")
        for item in read_records(library_root())[::4]
    ]


@pytest.fixture
def both(team: TeamDatabase, tmp_path: Path, items: list[Publication]) -> Iterator[tuple[Store, PostgresStore]]:
    """Library records and some events, published in the same order into a file and into a team store."""
    file = open_file(tmp_path / "store.db", writable=True, clock=lambda: 7)
    stores = (file, open_store(team.urls["mia"], writable=True, clock=lambda: 7))
    for store in stores:
        made = store.publish_all(items)
        for place, kind in ((0, "yanked"), (3, "deprecated"), (5, "verified")):
            store.append(Event(kind=kind, subject=made[place].version.sha256, author="kb", at_ns=1))  # type: ignore[arg-type]  # an EventKind
    yield stores
    for store in stores:
        store.close()


def test_both_engines_answer_alike(both: tuple[Store, PostgresStore]) -> None:
    catalogue = load_catalogue(library_root())
    file, team = both
    assert file.generation() == team.generation()
    views = [load_vectors(store, EMBEDDER) for store in both]
    assert np.array_equal(views[0].ids, views[1].ids)
    assert np.array_equal(views[0].vectors, views[1].vectors)
    for query in QUERIES:
        answers = [search(query, store=store, embedder=EMBEDDER, catalogue=catalogue, vectors=view)
                   for store, view in zip(both, views, strict=True)]  # fmt: skip
        assert answers[0] == answers[1]
        words = [search(query, store=store, embedder=None, catalogue=catalogue) for store in both]
        assert words[0] == words[1]
    assert any(search(query, store=team, embedder=None, catalogue=catalogue).hits for query in QUERIES)


def test_both_engines_tell_the_same_of_everything(both: tuple[Store, PostgresStore]) -> None:
    file, team = both
    assert file.summaries() == team.summaries()
    assert [file.candidates(query) for query in QUERIES] == [team.candidates(query) for query in QUERIES]
    assert [list(file.listing(query)) for query in QUERIES] == [list(team.listing(query)) for query in QUERIES]
    assert file.collection() == team.collection()
    assert file.changes_since(5) == team.changes_since(5)
    ids = [item.id for item in file.summaries()]
    assert file.versions(ids) == team.versions(ids)
    tokens = file.collection().tokens[::7]
    assert file.postings(tokens) == team.postings(tokens)
    assert file.postings_among(tokens, ids[::3]) == team.postings_among(tokens, ids[::3])
    assert file.events() == team.events()


@pytest.fixture
def crowd(team: TeamDatabase) -> Iterator[PostgresStore]:
    """400 records with two vectors each, in families of different size."""
    dice, values = random.Random(3), np.random.default_rng(3)
    store = open_store(team.urls["mia"], writable=True)
    items = []
    for number in range(400):
        family = "A3" if dice.random() < 0.05 else "A2"
        vectors = {name: [float(value) for value in values.standard_normal(16).astype(np.float32)] for name in ("title", "body")}
        item = record(f"r{number}", cases=[case(family=family)], provenance=dice.choice(TIERS))  # type: ignore[arg-type]  # a SocFamily
        items.append(Publication(record=item, prepared=prepared({"x": 1}, vectors), origin="team", author="mia", visibility="team"))
    store.publish_all(items)
    yield store
    store.close()


@pytest.mark.parametrize(
    "query", [CaseQuery(kinds=()), CaseQuery(soc_families=("A3",)), CaseQuery(min_provenance="measured"), CaseQuery(kinds=("card",))]
)
def test_the_database_finds_the_neighbours_a_product_finds(crowd: PostgresStore, query: CaseQuery) -> None:
    block = crowd.vectors_since(0, "toy@1")
    ids, vectors = np.frombuffer(block.ids, dtype="<i8"), np.frombuffer(block.vectors, dtype="<f4").reshape(-1, 16)
    allowed = {item.id for item in crowd.candidates(query)}
    wanted = np.random.default_rng(9).standard_normal(16).astype(np.float32)
    scores: dict[int, float] = {}
    for row_id, score in zip(ids.tolist(), (vectors @ wanted).tolist(), strict=True):
        if row_id in allowed:
            scores[row_id] = max(score, scores.get(row_id, -np.inf))
    best = sorted(scores, key=lambda row_id: -scores[row_id])[:10]
    found = crowd.nearest(wanted, "toy@1", query, 10)
    assert [row_id for row_id, _ in found] == best
    assert np.allclose([score for _, score in found], [scores[row_id] for row_id in best], rtol=1e-5)


def test_an_index_is_kept_only_where_it_finds_the_same(team: TeamDatabase, crowd: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    filters = [filters_of(query) for query in (CaseQuery(kinds=()), CaseQuery(soc_families=("A3",)))]
    admin = open_store(team.admin_url, writable=True)
    (small,) = admin.consider_indexes(filters)
    assert (small.vectors, small.kept, small.recall) == (800, False, None)
    monkeypatch.setattr(nearest_module.consider, "__kwdefaults__", {"at_least": 500, "wanted": 1.01})
    (refused,) = admin.consider_indexes(filters)
    assert (refused.kept, indexes(team)) == (False, 0)
    monkeypatch.setattr(nearest_module.consider, "__kwdefaults__", {"at_least": 500, "wanted": 0.99})
    (kept,) = admin.consider_indexes(filters)
    assert kept.recall is not None
    assert kept.recall >= 0.99
    assert (kept.kept, indexes(team)) == (True, 1)
    wanted = np.random.default_rng(4).standard_normal(16).astype(np.float32)
    found = crowd.nearest(wanted, "toy@1", CaseQuery(soc_families=("A3",)), 10)
    with psycopg.connect(team.admin_url, autocommit=True) as connection:
        connection.execute(f"DROP INDEX casebook.{nearest_module.index_name('toy@1')}".encode())
    exact = crowd.nearest(wanted, "toy@1", CaseQuery(soc_families=("A3",)), 10)
    assert len({row_id for row_id, _ in found} & {row_id for row_id, _ in exact}) >= 9
    admin.close()


def test_indexes_are_the_administrators(crowd: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_module.consider, "__kwdefaults__", {"at_least": 1, "wanted": 0.99})
    with pytest.raises(StoreError, match="may not"):
        crowd.consider_indexes([])


def indexes(team: TeamDatabase) -> int:
    with psycopg.connect(team.admin_url) as connection:
        row = connection.execute("SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'embedding_hnsw%'").fetchone()
    return row[0] if row else -1
