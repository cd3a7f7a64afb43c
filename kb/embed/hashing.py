"""A deterministic embedder without weights, for tests: words hashed to signed coordinates."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kb.embed.content import encode_meaningful, unit_rows
from kb.errors import UsageError
from kb.text.tokens import counts

if TYPE_CHECKING:
    from kb.domain.protocols import Vectors


class HashingEmbedder:
    """Signed feature hashing of lexical tokens, weighted by 1 + log(count), scaled to length 1.

    Equal on every machine and run. Two texts are near when they share tokens; it knows no synonyms and no
    translation. ``dim`` must be positive, else UsageError.
    """

    name = "hashing"

    def __init__(self, dim: int = 256) -> None:
        if dim < 1:
            raise UsageError(f"an embedder of {dim} dimensions", allowed="1 or more")
        self.dim = dim
        self.model_id = f"hashing-1/{dim}"

    def encode_query(self, text: str) -> Vectors:
        """Shape (dim,), float32."""
        vector: Vectors = self.encode_documents([text])[0]
        return vector

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dim), float32."""
        return encode_meaningful(texts, self.dim, self._encode)

    def _encode(self, texts: list[str]) -> Vectors:
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for token, count in counts(text).items():
                coordinate, sign = _place(token, self.dim)
                row[coordinate] += sign * (1 + math.log(count))
        return unit_rows(rows)


def _place(token: str, dim: int) -> tuple[int, float]:
    number = int.from_bytes(hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
    return (number >> 1) % dim, 1.0 if number & 1 else -1.0
