from __future__ import annotations

import numpy as np
import pytest

from kb.embed.hashing import HashingEmbedder
from kb.errors import UsageError


def test_shared_tokens_make_texts_near() -> None:
    embedder = HashingEmbedder()
    near, far = embedder.encode_documents(["low L2 hit rate in MatMul", "垃圾回收停顿"])
    query = embedder.encode_query("L2 hit rate")
    assert query @ near > 0.5
    assert abs(query @ far) < 0.3


def test_vectors_are_the_same_on_every_machine() -> None:
    vector = HashingEmbedder(8).encode_query("cache")
    assert np.flatnonzero(vector).tolist() == [3]
    assert abs(float(vector[3])) == 1.0


def test_the_dimension_is_part_of_the_model() -> None:
    assert HashingEmbedder(8).model_id != HashingEmbedder(16).model_id
    with pytest.raises(UsageError):
        HashingEmbedder(0)
