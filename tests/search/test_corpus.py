"""The cache gives what the store gives: after every kind of change, under every filter, and when it is damaged."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from search.samples import CATALOGUE, record

from kb.domain.case import Answer, CaseQuery
from kb.domain.event import Event, EventKind
from kb.domain.record import Record
from kb.domain.text import Text
from kb.embed.hashing import HashingEmbedder
from kb.search.corpus import Corpus, believed
from kb.search.dense import load_vectors
from kb.search.prepare import prepare
from kb.search.query import search
from kb.store.sqlite import SqliteStore, open_store
from kb.workflow.words import keep_words, opened_words

EMBEDDER = HashingEmbedder(64)
QUERIES = [
    CaseQuery(text="attention is not fused"),
    CaseQuery(text="注意力 融合 命中率"),
    CaseQuery(text="atention stall"),
    CaseQuery(text="attention pipeline", causes=("unfused_attention",)),
    CaseQuery(text="attention pipeline", soc_families=("A3",)),
    CaseQuery(text="attention pipeline", model_types=("diffusion",)),
    CaseQuery(text="attention pipeline", min_provenance="simulated", include_simulated=True),
    CaseQuery(text="attention pipeline", kinds=("card",)),
    CaseQuery(text="attention pipeline", lang="zh"),
    CaseQuery(text="attention pipeline", verified=True),
    CaseQuery(text="attention pipeline", since_ns=1),
    CaseQuery(text="attention pipeline", model_types=("nothing",)),
    CaseQuery(text="zzzz"),
]


def made(number: int, draw: random.Random) -> Record:
    en = " ".join(draw.choices(["attention", "fused", "pipeline", "stall", "low", "hit", "rate", "kernel", "idle"], k=12))
    zh = "".join(draw.choices(["注意力", "没有", "融合", "命中率", "流水线", "卡住", "空闲"], k=8))
    text = {0: (zh, en), 1: (zh, ""), 2: ("", en)}[number % 3]
    cause = draw.choice(["unfused_attention", "pipeline_imbalance", None])
    tier = draw.choice(["claimed", "simulated"])
    made = record(f"r{number}", *text, cause=cause, family=draw.choice(["A2", "A3", "unknown"]), provenance=tier,  # type: ignore[arg-type]  # drawn from typed names
                  model_type=draw.choice(["diffusion", "decoder", None]))  # fmt: skip
    return msgspec.structs.replace(made, kind="card") if number % 5 == 0 else made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = open_store(tmp_path / "store.db", writable=True)
    draw = random.Random(3)
    for number in range(60):
        publish(opened, made(number, draw))
    yield opened
    opened.close()


def publish(store: SqliteStore, item: Record) -> str:
    return store.publish(item, prepare(item, EMBEDDER, CATALOGUE), origin="workspace", author="test").sha256


def happened(store: SqliteStore, kind: EventKind, sha256: str) -> None:
    store.append(Event(kind=kind, subject=sha256, author="test", at_ns=1))


def corpus_of(store: SqliteStore, folder: Path) -> Corpus:
    corpus = believed(opened_words(store, folder), store)
    assert corpus is not None
    return corpus


def asked(store: SqliteStore, query: CaseQuery, corpus: Corpus | None, *, hybrid: bool) -> Answer:
    embedder = EMBEDDER if hybrid else None
    vectors = load_vectors(store, EMBEDDER) if hybrid else None
    return search(query, store=store, embedder=embedder, catalogue=CATALOGUE, corpus=corpus, vectors=vectors)


def assert_same(store: SqliteStore, corpus: Corpus) -> None:
    for query in QUERIES:
        for hybrid in (False, True):
            assert asked(store, query, corpus, hybrid=hybrid) == asked(store, query, None, hybrid=hybrid), (query, hybrid)


def test_answers_are_those_of_the_store(store: SqliteStore, tmp_path: Path) -> None:
    assert keep_words(store, tmp_path)
    assert not keep_words(store, tmp_path)
    assert_same(store, corpus_of(store, tmp_path))


def test_answers_are_those_of_the_store_after_changes(store: SqliteStore, tmp_path: Path) -> None:
    keep_words(store, tmp_path)
    draw = random.Random(9)
    hashes = [publish(store, made(number, draw)) for number in range(50, 70)]
    for kind, sha256 in zip(("yanked", "verified", "deprecated", "yanked"), hashes, strict=False):
        happened(store, kind, sha256)  # type: ignore[arg-type]  # names of kinds
    happened(store, "restored", hashes[3])
    corpus = corpus_of(store, tmp_path)
    assert corpus.added
    assert corpus.words is not None
    assert corpus.words.manifest.generation < store.generation()
    assert_same(store, corpus)


def test_a_corpus_of_an_older_generation_is_not_used(store: SqliteStore, tmp_path: Path) -> None:
    keep_words(store, tmp_path)
    corpus = corpus_of(store, tmp_path)
    publish(store, record("zebra", en="zebra crossing"))
    assert [hit.slug for hit in asked(store, CaseQuery(text="zebra"), corpus, hybrid=False).hits] == ["zebra"]


def test_a_damaged_posting_is_read_from_the_store(store: SqliteStore, tmp_path: Path) -> None:
    keep_words(store, tmp_path)
    corpus = corpus_of(store, tmp_path)
    assert corpus.words is not None
    data = tmp_path / corpus.words.manifest.file
    head = corpus.words.manifest.head_bytes
    data.write_bytes(data.read_bytes()[:head] + bytes(corpus.words.manifest.size - head))
    assert_same(store, corpus)


def test_a_cache_that_does_not_add_up_is_not_believed(store: SqliteStore, tmp_path: Path) -> None:
    """A cache of a past that the store no longer has: same generation, other records."""
    collection = store.collection()
    fewer = msgspec.structs.replace(collection, entries=collection.entries[:-1], tokens=(), ends=(), ids=b"", counts=b"")
    from kb.index.words import save_words

    save_words(tmp_path, fewer, identity=store.state("identity") or "")
    assert believed(opened_words(store, tmp_path), store) is None


def test_many_changes_are_read_from_the_store(store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_words(store, tmp_path)
    publish(store, record("one-more", en="attention", zh=""))
    monkeypatch.setattr("kb.search.corpus.MOST_CHANGES", 0)
    assert believed(opened_words(store, tmp_path), store) is None


def test_the_cache_is_written_anew_when_far_behind(store: SqliteStore, tmp_path: Path) -> None:
    keep_words(store, tmp_path)
    for number in range(70):
        publish(store, msgspec.structs.replace(record(f"more-{number}", en="attention"), title=Text(en=f"t{number}")))
    assert keep_words(store, tmp_path)
    assert_same(store, corpus_of(store, tmp_path))
