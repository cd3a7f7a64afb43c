"""The index cache kept in step with the store."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kb.domain.protocols import Store
from kb.errors import StoreError
from kb.workflow.words import keep_words

FRESH_SHARE: Final = 0.02
"""Vectors committed since the cache, as a share of all, from which it is written anew: below, reading them beside it is cheaper."""
FRESH_ROWS: Final = 512


def keep_vectors(store: Store, folder: Path, model_id: str) -> bool:
    """Write the cache of ``model_id`` anew when it is missing, unusable or far behind; whether it was written. That of the words, in
    the same folder, is kept as well.

    A folder that cannot be written is left alone: searches read the store instead.
    """
    from kb.index.cache import IDENTITY, open_cached, refresh

    keep_words(store, folder)
    cached = open_cached(folder, model_id, identity=store.state(IDENTITY) or "")
    if cached is not None:
        added = store.vectors_since(cached.generation, model_id)
        rows = len(added.ids) // 8
        behind = rows > max(FRESH_ROWS, FRESH_SHARE * len(cached.ids))
        if not behind and added.generation >= cached.generation and added.dim == cached.dim:
            return False
    try:
        refresh(store, folder, model_id)
    except StoreError:
        return False
    return True
