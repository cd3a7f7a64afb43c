from __future__ import annotations

import math

import numpy as np
import pytest
from search.memory_store import MemoryStore
from search.samples import CATALOGUE, filled, record

from kb.domain.case import Answer, CaseContext, CaseQuery
from kb.domain.event import Event
from kb.domain.protocols import Embedder, Store
from kb.domain.record import Record
from kb.domain.text import Lang, Text
from kb.embed.hashing import HashingEmbedder
from kb.errors import UsageError
from kb.search.corpus import language_of
from kb.search.dense import load_vectors
from kb.search.filters import find_candidates
from kb.search.lexical import score_lexical
from kb.search.prepare import prepare
from kb.search.query import search
from kb.search.question import read_question
from kb.search.weights import load_weights

EMBEDDER = HashingEmbedder(128)
WEIGHTS = load_weights()
RECORDS = [
    record("sd3-attention", "注意力没有融合，L2 命中率低", "attention is not fused, low L2 hit rate", cause="unfused_attention",
           family="A2", model_type="diffusion"),
    record("bert-attention", "注意力拆成五个算子", "attention is split into five kernels", cause="unfused_attention", family="A3"),
    record("pipeline-stages", "流水线各段不均", "pipeline stages are uneven", cause="pipeline_imbalance"),
    record("checkpoint", "保存模型时训练卡住", "training stalls while a checkpoint is written", cause="io_checkpoint",
           strategy="async_checkpoint", symptoms=[Text(zh="每隔一会儿停一分钟", en="stops for a minute")]),
    record("simulated-fusion", "注意力融合的仿真结果", "simulated attention fusion", cause="unfused_attention", provenance="simulated"),
]  # fmt: skip


def ask(query: CaseQuery, records: list[Record] = RECORDS, embedder: Embedder | None = EMBEDDER) -> Answer:
    store: Store = filled(records, embedder)
    return search(query, store=store, embedder=embedder, catalogue=CATALOGUE)


def slugs(answer: Answer) -> list[str]:
    return [hit.slug for hit in answer.hits]


@pytest.mark.parametrize("embedder", [EMBEDDER, None], ids=["hybrid", "words"])
@pytest.mark.parametrize("text", ["attention 没融合 L2 命中率低", "attention not fused, low L2 hit rate", "注意力 命中率"])
def test_the_right_record_is_first_in_either_language(text: str, embedder: Embedder | None) -> None:
    answer = ask(CaseQuery(text=text), embedder=embedder)
    assert slugs(answer)[0] == "sd3-attention"
    assert not answer.abstained


def generated(count: int) -> list[Record]:
    words = ["attention", "fused", "cache", "stall", "pipeline", "MatMul", "tiling", "checkpoint", "launch", "idle"]
    hanzi = ["注意力", "融合", "缓存", "卡住", "流水线", "算子", "切分", "保存", "下发", "空闲"]
    draw = np.random.default_rng(7)
    made = []
    for number in range(count):
        picked = draw.integers(0, 10, size=int(draw.integers(3, 9)))
        text = " ".join((hanzi if number % 3 == 0 else words)[int(word)] for word in picked)
        made.append(record(f"r{number}", zh=text) if number % 3 == 0 else record(f"r{number}", en=text))
    return made


@pytest.mark.parametrize("text", ["attention cache stall", "注意力 缓存", "MatMul 切分 idle", "注意力 卡住 launch"])
@pytest.mark.parametrize("count", [5, 30, 700])
def test_the_answer_is_that_of_scoring_every_record(text: str, count: int) -> None:
    """The oracle adds both balanced scores for all records, without pools or orders."""
    store = filled(generated(count), EMBEDDER)
    answer = search(CaseQuery(text=text, limit=15), store=store, embedder=EMBEDDER, catalogue=CATALOGUE)
    expected = brute_force(store, text)[:15]
    assert [hit.score for hit in answer.hits] == pytest.approx([score for score, _ in expected], abs=1e-4)
    assert len(set(slugs(answer))) == min(15, count)


def brute_force(store: MemoryStore, text: str) -> list[tuple[float, str]]:
    query = EMBEDDER.encode_query(text)
    languages = {row.id: language_of(row.language_share) for row in store.candidates(CaseQuery())}
    cosine = {row: float((vectors_of(store, row) @ query).max()) for row in languages}
    found = score_lexical(read_question(CaseQuery(text=text), CATALOGUE), find_candidates(CaseQuery(), store, CATALOGUE), WEIGHTS)
    words = {row: found.scores.value(place) or 0.0 for place, row in enumerate(sorted(languages))}
    full = sum(found.idf[word] for word in found.question.words)
    prior = WEIGHTS.calibration("hashing")
    dense = balanced(cosine, languages, (prior.center, prior.scale, prior.center))
    lexical = balanced(words, languages, (0.0, full / WEIGHTS.lexical_span, full))
    scored = [(dense[row] + WEIGHTS.lexical * lexical[row], store.rows[row - 1][0].record.slug) for row in languages]
    return sorted(scored, key=lambda pair: -pair[0])


def vectors_of(store: MemoryStore, row: int) -> np.ndarray:
    return np.frombuffer(store.rows[row - 1][1].vectors, dtype="<f4").reshape(-1, EMBEDDER.dim)


def balanced(raw: dict[int, float], languages: dict[int, Lang], prior: tuple[float, float, float]) -> dict[int, float]:
    found: dict[int, float] = {}
    for row, value in raw.items():
        group = [raw[other] for other in raw if languages[other] == languages[row]]
        group = group if len(group) >= WEIGHTS.minimum_group else list(raw.values())
        mean, deviation, largest = (
            (float(np.mean(group)), float(np.std(group)), max(group)) if len(group) >= WEIGHTS.minimum_group else prior
        )
        found[row] = (value - mean) / max(deviation, (largest - mean) / WEIGHTS.widest, 1e-9)
    return found


@pytest.mark.parametrize("query", [
    CaseQuery(text="attention 命中率 卡住"),
    CaseQuery(context=CaseContext(causes=("unfused_attention",), model_type="diffusion", soc_family="A2"), include_simulated=True),
    CaseQuery(text="stall", soc_families=("A2",)),
])  # fmt: skip
@pytest.mark.parametrize("embedder", [EMBEDDER, None], ids=["hybrid", "words"])
def test_the_reasons_sum_to_the_score_and_speak_both_languages(query: CaseQuery, embedder: Embedder | None) -> None:
    answer = ask(query, embedder=embedder)
    assert answer.hits
    for hit in answer.hits:
        assert math.fsum(why.contribution for why in hit.why) == pytest.approx(hit.score, abs=1e-9)
        assert all(why.text.zh and why.text.en for why in hit.why)
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)


def test_a_record_in_both_languages_does_not_count_a_concept_twice() -> None:
    both = record("both", "卡住", "stall")
    single = record("single", en="stall")
    lexical = [ask(CaseQuery(text="卡住"), [item, *RECORDS[:3]], embedder=None).hits[0] for item in (both, single)]
    assert "glossary:stall" not in {why.feature for why in lexical[0].why}
    assert "glossary:stall" in {why.feature for why in lexical[1].why}


def test_the_reasons_name_the_glossary_row_the_words_and_the_nearest_field() -> None:
    english = record("checkpoint", en="training stalls while a checkpoint is written", cause="io_checkpoint", strategy="async_checkpoint",
                     symptoms=[Text(zh="每隔一会儿停一分钟", en="stops for a minute")])  # fmt: skip
    hit = ask(CaseQuery(text="stops for a minute 卡住"), [english if item.slug == "checkpoint" else item for item in RECORDS]).hits[0]
    assert hit.slug == "checkpoint"
    reasons = {why.feature: why for why in hit.why}
    assert "卡住 = stall" in reasons["glossary:stall"].text.zh
    assert reasons["glossary:stall"].contribution > 0
    assert "minut" in reasons["words"].text.en
    assert "(symptoms, English)" in reasons["text"].text.en
    assert hit.similarity is not None
    assert f"{hit.similarity:.2f}" in reasons["text"].text.en
    assert hit.snippet == Text(zh="每隔一会儿停一分钟", en="stops for a minute")


def test_with_a_session_another_known_family_is_left_out_and_an_unknown_one_marked() -> None:
    answer = ask(CaseQuery(context=CaseContext(causes=("unfused_attention", "pipeline_imbalance"), soc_family="A2")))
    assert "bert-attention" not in slugs(answer)
    features = {hit.slug: {why.feature: why.contribution for why in hit.why} for hit in answer.hits}
    assert features["sd3-attention"]["soc"] > 0
    assert features["pipeline-stages"]["soc"] < 0


def test_a_record_with_the_same_cause_is_found_whatever_its_words() -> None:
    records = [*generated(300), record("quiet", en="nothing in common", cause="pipeline_imbalance")]
    answer = ask(CaseQuery(text="attention cache", context=CaseContext(causes=("pipeline_imbalance",)), limit=300), records)
    assert "quiet" in slugs(answer)


def test_simulated_records_come_only_when_asked_for_and_are_marked() -> None:
    hidden = ask(CaseQuery(text="attention fusion"))
    assert "simulated-fusion" not in slugs(hidden)
    assert any("simulated" in note.en and note.zh for note in hidden.notes)
    shown = ask(CaseQuery(text="attention fusion", include_simulated=True))
    hit = next(hit for hit in shown.hits if hit.slug == "simulated-fusion")
    assert hit.provenance == "simulated"
    assert any(why.feature == "provenance" and "not measured" in why.text.en for why in hit.why)


@pytest.mark.parametrize(
    ("query", "culprit"),
    [
        (CaseQuery(text="attention", causes=("no_such_cause",)), "--cause no_such_cause"),
        (CaseQuery(text="attention", model_types=("zebra",), causes=("attn_split",)), "--model-type zebra"),
        (CaseQuery(text="attention", min_provenance="reproduced"), "--provenance reproduced"),
        (CaseQuery(text="attention", kinds=("template",)), "--kind template"),
    ],
)
def test_an_emptying_filter_is_named(query: CaseQuery, culprit: str) -> None:
    answer = ask(query)
    assert answer.hits == ()
    assert answer.abstained
    assert any(f"the filter {culprit} alone leaves none of 5" in note.en and culprit in note.zh for note in answer.notes)


def test_filters_that_only_together_empty_the_set_are_said_to() -> None:
    answer = ask(CaseQuery(text="attention", model_types=("diffusion",), causes=("pipeline_imbalance",)))
    assert any("together" in note.en for note in answer.notes)


def test_a_cause_filter_takes_aliases_and_names_near_ids() -> None:
    assert set(slugs(ask(CaseQuery(text="attention", causes=("attn_split",))))) == {"sd3-attention", "bert-attention"}
    assert any("unfused_attention" in note.en for note in ask(CaseQuery(text="attention", causes=("unfused_attn",))).notes)


def test_a_language_filter_keeps_records_written_in_it() -> None:
    records = [
        record("zh", zh="注意力没有融合"),
        record("en", en="attention is not fused"),
        record("both", "注意力没有融合", "attention is not fused"),
    ]
    assert set(slugs(ask(CaseQuery(text="attention 注意力", lang="zh"), records))) == {"zh", "both"}
    assert set(slugs(ask(CaseQuery(text="attention 注意力", lang="en"), records))) == {"en", "both"}


def test_an_empty_store_says_so() -> None:
    answer = ask(CaseQuery(text="attention"), [])
    assert answer.abstained
    assert "kb doctor" in answer.notes[0].en


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="limit"):
        ask(CaseQuery(text="attention", limit=0))


def test_records_embedded_by_another_model_are_found_by_words_and_counted() -> None:
    store = filled(RECORDS, HashingEmbedder(64))
    store.publish(
        record("new", en="attention again"), prepare(record("new", en="attention again"), EMBEDDER), origin="library", author="test"
    )
    answer = search(CaseQuery(text="attention", include_simulated=True), store=store, embedder=EMBEDDER, catalogue=CATALOGUE)
    assert {"sd3-attention", "bert-attention", "new"} <= set(slugs(answer))
    assert {hit.slug for hit in answer.hits if hit.similarity is not None} == {"new"}
    assert any("5 records have no vectors" in note.en and "kb doctor" in note.zh for note in answer.notes)


def test_vectors_of_another_dimension_are_never_compared() -> None:
    class Renamed(HashingEmbedder):
        def __init__(self) -> None:
            super().__init__(32)
            self.model_id = EMBEDDER.model_id

    store = filled(RECORDS, Renamed())
    answer = search(CaseQuery(text="attention"), store=store, embedder=EMBEDDER, catalogue=CATALOGUE)
    assert "sd3-attention" in slugs(answer)
    assert all(hit.similarity is None for hit in answer.hits)
    assert any("no vectors" in note.en for note in answer.notes)


def test_kept_vectors_are_used_until_the_store_changes() -> None:
    store = filled(RECORDS, EMBEDDER)
    kept = load_vectors(store, EMBEDDER)
    query = CaseQuery(text="attention garbage")
    plain = search(query, store=store, embedder=EMBEDDER, catalogue=CATALOGUE)
    reads = store.vector_reads
    assert search(query, store=store, embedder=EMBEDDER, catalogue=CATALOGUE, vectors=kept) == plain
    assert store.vector_reads == reads
    added = record("gc", en="garbage collection pause")
    store.publish(added, prepare(added, EMBEDDER), origin="workspace", author="test")
    assert slugs(search(query, store=store, embedder=EMBEDDER, catalogue=CATALOGUE, vectors=kept))[0] == "gc"


def test_old_and_withdrawn_versions_are_not_found() -> None:
    store = filled(RECORDS, EMBEDDER)
    newer = record("checkpoint", en="asynchronous saving helps")
    version = store.publish(newer, prepare(newer, EMBEDDER), origin="library", author="test")
    query = CaseQuery(text="checkpoint saving")
    hit = search(query, store=store, embedder=EMBEDDER, catalogue=CATALOGUE).hits[0]
    assert (hit.slug, hit.version) == ("checkpoint", 2)
    store.append(Event(kind="yanked", subject=version.sha256, author="test", at_ns=1))
    assert search(query, store=store, embedder=EMBEDDER, catalogue=CATALOGUE).hits[0].version == 1


def test_words_only_answers_abstain_when_they_share_little() -> None:
    assert ask(CaseQuery(text="zebra crossing attention giraffe river mountain"), embedder=None).abstained
    nothing = ask(CaseQuery(text="zebra"), embedder=None)
    assert nothing.hits == ()
    assert nothing.abstained
    assert "no record holds a word" in nothing.notes[-1].en


def test_a_shared_cause_is_an_answer_without_similar_text() -> None:
    answer = ask(CaseQuery(text="zebra", context=CaseContext(causes=("pipeline_imbalance",))), embedder=None)
    assert slugs(answer)[0] == "pipeline-stages"
    assert not answer.abstained
