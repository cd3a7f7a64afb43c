"""The cut of the default embedder, on texts of the field and of other fields."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from search.memory_store import MemoryStore
from search.samples import CATALOGUE, filled, record

from kb.domain.case import CaseQuery
from kb.embed.use import UseEmbedder
from kb.search.query import search
from kb.search.weights import load_weights

ELSEWHERE = (
    "how to bake sourdough bread",
    "怎么做红烧肉",
    "weather in Paris tomorrow",
    "猫为什么喜欢纸箱",
    "who won the world cup in 2018",
    "唐朝的皇帝有哪些",
)


@pytest.fixture(scope="module")
def use() -> UseEmbedder:
    return UseEmbedder()


@pytest.fixture(scope="module")
def store(shared: Path, use: UseEmbedder) -> MemoryStore:
    lines = (shared / "data" / "retrieval" / "docs.jsonl").read_text(encoding="utf-8").splitlines()
    documents = [json.loads(line) for line in lines]
    return filled([record(item["id"], **{"en" if item["lang"] == "en" else "zh": item["text"]}) for item in documents], use)


@pytest.mark.parametrize("text", ELSEWHERE)
def test_questions_of_other_fields_find_nothing_similar(text: str, store: MemoryStore, use: UseEmbedder) -> None:
    assert search(CaseQuery(text=text), store=store, embedder=use, catalogue=CATALOGUE).abstained


def test_development_queries_are_answered(shared: Path, store: MemoryStore, use: UseEmbedder) -> None:
    lines = (shared / "data" / "retrieval" / "dev_queries.jsonl").read_text(encoding="utf-8").splitlines()
    answers = [search(CaseQuery(text=json.loads(line)["text"]), store=store, embedder=use, catalogue=CATALOGUE) for line in lines]
    assert sum(answer.abstained for answer in answers) <= 0.05 * len(answers)


def test_the_cut_grows_with_the_collection_to_a_limit() -> None:
    known = load_weights().calibration("use")
    cuts = [known.cut(count) for count in (1, 72, 1_000, 10**9)]
    assert cuts == sorted(cuts, key=lambda cut: cut or 0.0)
    assert cuts[0] == known.abstain_below
    assert cuts[-1] == known.abstain_most
    assert load_weights().calibration("unknown").cut(1_000) is None


def test_a_paraphrase_in_the_other_language_finds_the_case(use: UseEmbedder) -> None:
    records = [record("l2", en="low hit rate of the second level cache"), record("gc", en="garbage collection pauses the host")]
    answer = search(CaseQuery(text="二级缓存总是没命中"), store=filled(records, use), embedder=use, catalogue=CATALOGUE)
    assert answer.hits[0].slug == "l2"
