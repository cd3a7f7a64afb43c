from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.domain.text import Lang
from kb.search.fusion import Moments, Scores, best, moments, pooled, settled, total

FIXED = Moments(0.1, 0.1, 1, 0.1)
values = st.lists(st.floats(-1, 1), min_size=1, max_size=30)


def of(raw: list[float]) -> Moments:
    return moments(len(raw), sum(raw), sum(value * value for value in raw), max(raw))


@given(raw=values)
def test_balanced_scores_have_mean_zero_and_deviation_one_at_most(raw: list[float]) -> None:
    balanced = [of(raw).balanced(value, 8.5) for value in raw]
    assert math.fsum(balanced) / len(raw) == pytest.approx(0.0, abs=1e-4)
    assert math.sqrt(math.fsum(value**2 for value in balanced) / len(raw)) <= 1 + 1e-4


@given(raw=values, other=values)
def test_pooled_moments_are_those_of_all_values(raw: list[float], other: list[float]) -> None:
    together, expected = pooled([of(raw), of(other)]), of(raw + other)
    assert together.mean == pytest.approx(expected.mean, abs=1e-9)
    assert together.deviation == pytest.approx(expected.deviation, abs=1e-6)
    assert (together.count, together.largest) == (expected.count, expected.largest)


def test_the_widest_score_is_held_to_the_range_the_mix_was_measured_in() -> None:
    rare = of([0.0] * 9_999 + [1.0])
    assert rare.balanced(1.0, 8.5) == pytest.approx(8.5)
    assert of([0.0] * 20 + [1.0]).balanced(1.0, 8.5) < 8.5


def test_a_language_with_many_documents_uses_its_own_moments() -> None:
    zh, en = of([0.5] * 20), of([0.1] * 20)
    assert settled({"zh": zh, "en": en}, FIXED, 16) == {"zh": zh, "en": en}


def test_a_small_group_uses_the_moments_of_all_and_a_small_collection_the_fixed_ones() -> None:
    zh, en = of([0.5] * 3), of([0.1] * 20)
    assert settled({"zh": zh, "en": en}, FIXED, 16) == {"zh": pooled([zh, en]), "en": en}
    assert settled({"zh": zh, "en": of([0.1])}, FIXED, 16) == {"zh": FIXED, "en": FIXED}


def test_the_bias_of_a_scorer_towards_one_language_is_removed() -> None:
    """Every Chinese document scores above every English one; after balancing the best of each language stand together."""
    raw = {number: 0.6 + 0.01 * number for number in range(20)} | {100 + number: 0.1 + 0.01 * number for number in range(20)}
    languages: dict[int, Lang] = {number: "zh" if number < 100 else "en" for number in raw}
    assert best([scores(raw, languages)], languages.__getitem__, range(200), 4, 200) == [19, 119, 18, 118]


def scores(raw: dict[int, float], languages: dict[int, Lang], absent: float | None = None, weight: float = 1.0) -> Scores:
    groups: dict[Lang, list[int]] = {"zh": [], "en": []}
    for record in sorted(raw, key=lambda record: (-raw[record], record)):
        groups[languages[record]].append(record)
    own = {lang: of([raw[record] for record in members] or [0.0]) for lang, members in groups.items()}
    return Scores(raw.get, lambda lang, depth: groups[lang][:depth], own, absent, weight, 8.5, len(raw))


@given(seed=st.integers(0, 10_000), pool=st.integers(1, 8), count=st.integers(1, 12))
def test_a_growing_pool_gives_the_answer_of_adding_up_everything(seed: int, pool: int, count: int) -> None:
    draw = random.Random(seed)
    languages: dict[int, Lang] = {record: draw.choice(["zh", "en"]) for record in range(60)}
    cosines = {record: draw.choice([0.1, 0.2, draw.random()]) for record in languages if draw.random() < 0.8}
    words = {record: draw.random() * 9 for record in languages if draw.random() < 0.4}
    dense, lexical = scores(cosines, languages), scores(words, languages, absent=0.0, weight=0.5)
    known = cosines.keys() | words.keys()
    everything = sorted(known, key=lambda record: (-total([dense, lexical], record, languages[record]), record))
    found = best([dense, lexical], languages.__getitem__, range(60), count, pool)
    expected = everything[:count]
    assert [total([dense, lexical], record, languages[record]) for record in found] == pytest.approx(
        [total([dense, lexical], record, languages[record]) for record in expected]
    )
    assert found == expected


def test_records_asked_for_are_looked_at_whatever_their_score() -> None:
    languages: dict[int, Lang] = dict.fromkeys(range(5), "en")
    assert best([scores({0: 0.9, 1: 0.1}, languages)], languages.__getitem__, range(5), 1, 200, also=[4]) == [0, 4]
