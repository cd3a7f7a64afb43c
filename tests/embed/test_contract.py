from __future__ import annotations

import pytest
from embed.contract import EmbedderContract

from kb.domain.protocols import Embedder
from kb.embed.hashing import HashingEmbedder
from kb.embed.use import UseEmbedder


class TestHashing(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return HashingEmbedder()


class TestUse(EmbedderContract):
    @pytest.fixture
    def embedder(self, use: UseEmbedder) -> Embedder:
        return use
