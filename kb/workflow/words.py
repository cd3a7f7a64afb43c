"""The cache of postings kept in step with the store."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kb.domain.protocols import Store
from kb.errors import StoreError
from kb.index.words import Words, open_words, save_words

IDENTITY: Final = "identity"
"""Name of the store's state value that differs between stores."""
FRESH_SHARE: Final = 0.02
"""Records changed since the cache, as a share of all, from which it is written anew: below, reading them beside it is cheaper."""
FRESH_RECORDS: Final = 64


def opened_words(store: Store, folder: Path) -> Words | None:
    """The cache in ``folder``, where there is one of this store."""
    return open_words(folder, identity=store.state(IDENTITY) or "")


def keep_words(store: Store, folder: Path) -> bool:
    """Write the cache anew when it is missing, unusable or far behind; whether it was written.

    A folder that cannot be written is left alone: searches read the store instead.
    """
    words = opened_words(store, folder)
    if words is not None and words.manifest.generation <= store.generation():
        changed = len(store.changes_since(words.manifest.generation).gone)
        if changed <= max(FRESH_RECORDS, FRESH_SHARE * len(words)):
            return False
    try:
        save_words(folder, store.collection(), identity=store.state(IDENTITY) or "")
    except StoreError:
        return False
    return True
