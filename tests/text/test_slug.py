"""Slugs from names in any script: valid, told apart, and stable."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kb.domain.record import checked_slug
from kb.text.slug import slug_of


@given(st.text(max_size=200))
def test_every_name_with_a_letter_or_digit_makes_a_slug_that_is_one(name: str) -> None:
    made = slug_of(name, "template")
    assert bool(made) == any(letter.isalnum() for letter in name)
    if made:
        assert checked_slug(made) == made
        assert slug_of(made, "template") == made


def test_ascii_words_are_kept_and_the_rest_is_told_apart() -> None:
    assert slug_of("SD3 Diagnosis_v2", "x") == "sd3-diagnosis-v2"
    assert slug_of("café", "x") == "cafe"
    first, second = slug_of("中文模板", "template"), slug_of("中文模版", "template")
    assert first.startswith("template-")
    assert first != second
    assert slug_of("sd3 诊断", "x").startswith("sd3-")
    assert slug_of("sd3 诊断", "x") != "sd3"
