"""Tokens: what a query and a stored text have in common."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.text.tokens import counts, tokenize

WORDS = st.text(alphabet="abcdefgh", min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("融合", ["融合"]),
        ("注意力 融合", ["注意", "意力", "融合"]),
        ("卡", ["卡"]),
        ("stream depth", ["stream", "depth"]),
        ("fused_attention", ["fused_attention", "fus", "attention"]),
        ("L2命中率", ["l2", "命中", "中率"]),
        ("ＡＩＣＰＵ", ["aicpu"]),
        ("192GB 192 gb", ["192gb", "192gb"]),
        ("63％ 63 %", ["63%", "63%"]),
        ("1,520 ms", ["1520ms"]),
        ("186GB/s", ["186gb/s"]),
        ("Ascend910B2", ["ascend910b2", "ascend", "910"]),
        ("910B", ["910b", "910"]),
        ("MatMulV3", ["matmulv3", "mat", "mul"]),
        ("torch_npu.npu_swiglu", ["torch_npu.npu_swiglu", "torch_npu", "torch", "npu", "npu_swiglu", "swiglu"]),
        ("v5.0.RC1", ["v5.0.rc1", "v5", "rc1", "rc"]),
        ("stream_depth=4", ["stream_depth", "stream", "depth", "4"]),
        ("!? ~ \n", []),
        ("", []),
    ],
)
def test_a_text_gives_its_tokens_in_order(text: str, expected: list[str]) -> None:
    assert tokenize(text) == expected


@pytest.mark.parametrize(
    "forms",
    [
        ("fuse", "fused", "fusing", "fuses"),
        ("cache", "caches", "cached", "caching"),
        ("tile", "tiles", "tiled", "tiling"),
        ("batch", "batches", "batched"),
        ("latency", "latencies"),
        ("stall", "stalls", "stalled"),
        ("tag", "tags", "tagged", "tagging"),
        ("npu", "npus"),
        ("embed", "embedded", "embedding"),
        ("bias", "biases"),
        ("feed", "feeds", "feeding"),
    ],
)
def test_inflected_forms_of_a_word_share_one_token(forms: tuple[str, ...]) -> None:
    assert len({tuple(tokenize(form)) for form in forms}) == 1


@pytest.mark.parametrize("pair", [("fusion", "fused"), ("status", "stat"), ("axis", "ax"), ("process", "procession"), ("string", "str")])
def test_different_words_keep_apart(pair: tuple[str, str]) -> None:
    assert tokenize(pair[0]) != tokenize(pair[1])


@pytest.mark.parametrize(
    "name", ["fused_attention", "fused-attention", "fused.attention", "FusedAttention", "fused attention", "Fused Attention"]
)
def test_every_spelling_of_a_name_shares_the_tokens_of_its_words(name: str) -> None:
    assert {"fus", "attention"} <= set(tokenize(name))


@given(st.text())
def test_any_text_is_cut_into_non_empty_folded_tokens_without_spaces(text: str) -> None:
    for token in tokenize(text):
        assert token
        assert not any(character.isspace() for character in token)
        assert token == token.lower()


@given(st.text())
def test_width_of_the_characters_does_not_matter(text: str) -> None:
    assert tokenize(unicodedata.normalize("NFKC", text)) == tokenize(text)


@given(st.lists(WORDS), st.lists(WORDS))
def test_tokens_of_two_lines_are_the_tokens_of_each(one: list[str], two: list[str]) -> None:
    first, second = " ".join(one), " ".join(two)
    assert tokenize(f"{first}\n{second}") == tokenize(first) + tokenize(second)


@given(st.text(alphabet="算子融合注意力显存带宽", min_size=2, max_size=20))
def test_a_chinese_run_gives_one_bigram_for_each_neighbouring_pair(run: str) -> None:
    tokens = tokenize(run)
    assert len(tokens) == len(run) - 1
    assert tokens[0] + "".join(token[1] for token in tokens[1:]) == run


@given(st.text(alphabet="ab 融合_1%", max_size=40))
def test_counts_are_the_tokens_with_their_number(text: str) -> None:
    tokens = tokenize(text)
    assert counts(text) == {token: tokens.count(token) for token in tokens}
