from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from search.samples import CATALOGUE, filled

from kb.domain.case import CaseQuery
from kb.domain.text import LANGS
from kb.search.coarse import Coarse, CoarseView, coarse_view, score_coarse
from kb.search.corpus import Corpus, listed_corpus
from kb.search.dense import VectorView, score_dense
from kb.search.filters import Candidates, find_candidates
from kb.search.weights import load_weights

RECORDS, FIELDS, DIM = 12_000, 2, 64
WEIGHTS = load_weights()


def unit(draw: np.random.Generator, count: int) -> Any:
    rows = draw.standard_normal((count, DIM)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    rows = [(number * 3 + 1, 0.9 if number % 3 else 0.1, "claimed", number, 10) for number in range(RECORDS)]
    return listed_corpus(rows, filled([], None))  # type: ignore[arg-type]  # a tier as text


@pytest.fixture(scope="module")
def coarse(corpus: Corpus) -> CoarseView:
    ids = np.asarray(corpus.ids)
    view = VectorView(
        0, "m", ids, np.arange(RECORDS) * FIELDS, np.full(RECORDS, FIELDS), (unit(np.random.default_rng(1), RECORDS * FIELDS),)
    )
    made = coarse_view(view, corpus)
    assert made is not None
    return made


def candidates(corpus: Corpus, share: float) -> Candidates:
    """The corpus with some places left out."""
    kept = np.random.default_rng(2).random(RECORDS) < share
    langs = bytes((np.frombuffer(corpus.langs, np.uint8) * kept).tolist())
    return Candidates(corpus, langs, {"zh": langs.count(1), "en": langs.count(2)}, ())


@pytest.mark.parametrize("share", [1.0, 0.3, 0.05])
def test_the_ten_nearest_of_each_language_are_found_with_their_cosines(corpus: Corpus, coarse: CoarseView, share: float,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr("kb.search.coarse.FETCHED", 1500)
    left, hits = candidates(corpus, share), []
    for query in unit(np.random.default_rng(3), 10):
        exact, found = score_dense(query, coarse.view, left, "use", WEIGHTS), score_coarse(query, coarse, left, "use", WEIGHTS)
        assert exact is not None
        assert found is not None
        for lang in LANGS:
            right, mine = exact.top(lang, 10), found.top(lang, 10)
            hits.append(np.isin(right, mine).mean())
            assert [found.value(place) for place in mine] == pytest.approx([exact.value(place) for place in mine], abs=1e-5)
            assert all(left.langs[place] for place in mine)
    assert np.mean(hits) >= 0.99


def test_the_sample_stands_for_all(corpus: Corpus, coarse: CoarseView) -> None:
    left = candidates(corpus, 1.0)
    query = unit(np.random.default_rng(4), 1)[0]
    exact, found = score_dense(query, coarse.view, left, "use", WEIGHTS), score_coarse(query, coarse, left, "use", WEIGHTS)
    assert exact is not None
    assert found is not None
    for lang in LANGS:
        mine, right = found.moments[lang], exact.moments[lang]
        assert mine.mean == pytest.approx(right.mean, abs=right.deviation / 10)
        assert mine.deviation == pytest.approx(right.deviation, rel=0.1)
        assert mine.largest == pytest.approx(right.largest, abs=1e-5)


def test_a_record_not_fetched_is_worked_out_when_asked_for(corpus: Corpus, coarse: CoarseView) -> None:
    left = candidates(corpus, 1.0)
    query = unit(np.random.default_rng(5), 1)[0]
    exact, found = score_dense(query, coarse.view, left, "use", WEIGHTS), Coarse(query, coarse, left)
    assert exact is not None
    assert [found.value(place) for place in range(0, RECORDS, 997)] == pytest.approx(
        [exact.value(place) for place in range(0, RECORDS, 997)], abs=1e-5
    )


def test_a_small_collection_has_no_scan() -> None:
    store = filled([], None)
    corpus = find_candidates(CaseQuery(), store, CATALOGUE).corpus
    view = VectorView(0, "m", np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), (np.zeros((0, DIM), np.float32),))
    assert coarse_view(view, corpus) is None
