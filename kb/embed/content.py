"""What an embedder may assume of a text, and unit vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from kb.domain.protocols import Vectors

MAX_CHARACTERS: Final = 4096
"""Longer texts are cut here: an encoder needs some 10 kB of memory a token, and one vector says little about more."""


def has_content(text: str) -> bool:
    """Whether ``text`` holds a letter, ideograph or digit; marks and control characters mean nothing."""
    return any(character.isalnum() for character in text)


def unit_rows(rows: Vectors) -> Vectors:
    """``rows`` (n, dim) scaled to length 1; zero rows stay zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def encode_meaningful(texts: Sequence[str], dim: int, encode: Callable[[list[str]], Vectors]) -> Vectors:
    """``encode`` for the texts with content, each cut to ``MAX_CHARACTERS``; zeros for the others. Shape (n, dim)."""
    cut = [text[:MAX_CHARACTERS] for text in texts]
    rows = [row for row, text in enumerate(cut) if has_content(text)]
    out = np.zeros((len(cut), dim), dtype=np.float32)
    if rows:
        out[rows] = encode([cut[row] for row in rows])
    return out
