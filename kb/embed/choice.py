"""Which embedder a name stands for."""

from __future__ import annotations

from pathlib import Path

from kb.domain.protocols import Embedder
from kb.errors import UsageError

ST_PREFIX = "st:"
NAMES = "use, hashing, st:FOLDER_OR_MODEL_NAME"


def open_embedder(name: str, *, cache: Path | None = None) -> Embedder:
    """The embedder called ``name``, loaded and ready.

    ``use`` is the default model (512 dimensions, Chinese and English); ``cache`` is a folder for its
    memory-mapped copy, None = load the package's own file each time. ``hashing`` needs no weights and
    knows no meaning: for tests. ``st:X`` is a sentence-transformers folder or an already downloaded
    model name. Raises UsageError for any other name and KbError when a model cannot be loaded.
    """
    if name == "use":
        from kb.embed.use import UseEmbedder

        return UseEmbedder(cache)
    if name == "hashing":
        from kb.embed.hashing import HashingEmbedder

        return HashingEmbedder()
    if name.startswith(ST_PREFIX) and len(name) > len(ST_PREFIX):
        from kb.embed.sentence import SentenceEmbedder

        return SentenceEmbedder(name[len(ST_PREFIX) :])
    raise UsageError(f"unknown embedder {name!r}", allowed=NAMES, do="choose one of these, or leave the option out for use")
