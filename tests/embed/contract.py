"""What every embedder promises; a subclass gives an ``embedder`` fixture."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kb.domain.protocols import Embedder

TEXTS = (
    "attention not fused, low L2 hit rate",
    "注意力没有融合，二级缓存命中率低",
    "decode 阶段 KV cache 带宽打满，token 间延迟 42ms",
    "FlashAttentionScore",
    "a",
)
EMPTY = ("", "   ", "!?…，。", "\x00\x07\t\n", "—" * 50)


class EmbedderContract:
    @pytest.fixture
    def embedder(self) -> Embedder:
        pytest.fail("a contract suite needs an embedder fixture")

    def test_vectors_are_float32_of_the_stated_dimension_and_length_one(self, embedder: Embedder) -> None:
        vectors = embedder.encode_documents(TEXTS)
        assert vectors.shape == (len(TEXTS), embedder.dim)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
        query = embedder.encode_query(TEXTS[0])
        assert query.shape == (embedder.dim,)
        assert query.dtype == np.float32
        assert np.linalg.norm(query) == pytest.approx(1.0, abs=1e-5)

    def test_text_without_content_is_all_zeros(self, embedder: Embedder) -> None:
        assert not embedder.encode_documents(EMPTY).any()
        assert not any(embedder.encode_query(text).any() for text in EMPTY)

    def test_no_documents_give_no_rows(self, embedder: Embedder) -> None:
        assert embedder.encode_documents([]).shape == (0, embedder.dim)

    def test_a_vector_does_not_depend_on_its_neighbours_in_the_batch(self, embedder: Embedder) -> None:
        together = embedder.encode_documents([*TEXTS, *EMPTY, *reversed(TEXTS)])
        alone = np.stack([embedder.encode_documents([text])[0] for text in TEXTS])
        np.testing.assert_allclose(together[: len(TEXTS)], alone, atol=1e-5)
        np.testing.assert_allclose(together[-len(TEXTS) :], alone[::-1], atol=1e-5)

    def test_the_same_text_gives_the_same_vector(self, embedder: Embedder) -> None:
        np.testing.assert_array_equal(embedder.encode_query(TEXTS[2]), embedder.encode_query(TEXTS[2]))

    def test_a_text_is_nearest_to_itself(self, embedder: Embedder) -> None:
        vectors = embedder.encode_documents(TEXTS)
        for row, text in enumerate(TEXTS):
            assert int((vectors @ embedder.encode_query(text)).argmax()) == row

    def test_threads_get_the_answers_a_single_one_gets(self, embedder: Embedder) -> None:
        expected = [embedder.encode_query(text) for text in TEXTS]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(embedder.encode_query, TEXTS * 5))
        for place, vector in enumerate(found):
            np.testing.assert_allclose(vector, expected[place % len(TEXTS)], atol=1e-5)

    def test_a_megabyte_of_text_is_encoded_as_its_beginning(self, embedder: Embedder) -> None:
        long = "低 L2 hit rate " * 70_000
        np.testing.assert_allclose(embedder.encode_query(long), embedder.encode_query(long[:4096]), atol=1e-6)

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors])
    @given(text=st.text(max_size=80))
    def test_any_text_gives_finite_numbers_of_length_one_or_zero(self, embedder: Embedder, text: str) -> None:
        length = float(np.linalg.norm(embedder.encode_query(text)))
        assert length == pytest.approx(1.0, abs=1e-4) or length == 0.0

    def test_name_and_model_id_are_stated(self, embedder: Embedder) -> None:
        assert embedder.name
        assert embedder.name in embedder.model_id.split("-")[0] or embedder.name in embedder.model_id
        assert embedder.dim > 0
