"""The share of Chinese in a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.text.language import chinese_share


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0.0),
        ("123 %", 0.0),
        ("attention is not fused", 0.0),
        ("注意力没有融合", 1.0),
        ("注意力 attention", 3 / 4.5),
        ("用 torch_npu.npu_fusion_attention", 1 / 2.5),
        ("ａｂｃ 算子", 2 / 3.5),
    ],
)
def test_the_share_weighs_hanzi_against_words(text: str, expected: float) -> None:
    assert chinese_share(text) == pytest.approx(expected)


@given(st.text())
def test_the_share_lies_between_0_and_1(text: str) -> None:
    assert 0.0 <= chinese_share(text) <= 1.0


@given(st.text(alphabet="ab 融合1", max_size=30))
def test_more_chinese_never_lowers_the_share(text: str) -> None:
    assert chinese_share(f"{text} 融合") >= chinese_share(text)
