from __future__ import annotations

import numpy as np
import pytest
from search.samples import CATALOGUE, record

from kb.domain.text import Text
from kb.embed.hashing import HashingEmbedder
from kb.search.prepare import field_texts, prepare
from kb.text.tokens import counts

EMBEDDER = HashingEmbedder(64)
FULL = record(
    "sd3-attention", "注意力没有融合", "attention is not fused", cause="unfused_attention", symptoms=[Text(zh="很慢", en="it is slow")]
)


def test_there_is_one_vector_for_each_field_and_language_with_text() -> None:
    prepared = prepare(FULL, EMBEDDER, CATALOGUE)
    assert prepared.fields == ("title.zh", "title.en", "symptoms.zh", "symptoms.en", "strategy.zh", "strategy.en")
    vectors = np.frombuffer(prepared.vectors, dtype="<f4").reshape(len(prepared.fields), prepared.dim)
    for row, text in zip(vectors, field_texts(FULL, CATALOGUE).values(), strict=True):
        np.testing.assert_array_equal(row, EMBEDDER.encode_query(text))
    assert (prepared.dim, prepared.model_id) == (64, EMBEDDER.model_id)


def test_a_language_without_text_or_equal_to_the_other_gives_no_vector() -> None:
    assert prepare(record("a", en="only English"), EMBEDDER).fields == ("title.en",)
    assert prepare(record("a", zh="FlashAttention", en="FlashAttention"), EMBEDDER).fields == ("title.zh",)


def test_a_record_without_prose_is_still_found_by_its_slug() -> None:
    prepared = prepare(record("gc-pause"), EMBEDDER)
    assert prepared.fields == ("title.en",)
    assert prepared.tokens.keys() >= counts("gc-pause").keys()


@pytest.mark.parametrize(
    "text",
    [
        "注意力没有融合",
        "attention is not fused",
        "it is slow",
        "很慢",
        "unfused_attention",
        "fuse_attention",
        "改用融合算子",
        "sd3-attention",
    ],
)
def test_tokens_hold_the_text_of_both_languages_and_the_ids(text: str) -> None:
    assert prepare(FULL, None).tokens.keys() >= counts(text).keys()


def test_the_catalogue_adds_names_and_aliases() -> None:
    with_names, without = prepare(FULL, None, CATALOGUE).tokens, prepare(FULL, None).tokens
    assert with_names.keys() >= counts("attn_split flash 融合注意力 注意力未融合").keys()
    assert not without.keys() >= counts("attn_split flash").keys()


def test_the_language_share_is_of_the_prose_not_of_the_ids() -> None:
    assert prepare(record("a-b-c", zh="注意力没有融合", cause="unfused_attention"), None).language_share > 0.5
    assert prepare(record("a", en="attention is not fused"), None).language_share == 0.0


def test_without_an_embedder_there_are_words_only() -> None:
    prepared = prepare(FULL, None)
    assert (prepared.vectors, prepared.fields, prepared.dim, prepared.model_id) == (b"", (), 0, "")
    assert prepared.tokens
