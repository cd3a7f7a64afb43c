"""What the searches of one casebook share: read once, and used for as long as the store stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.search.corpus import believed
from kb.workflow.casebook import Casebook
from kb.workflow.words import opened_words

if TYPE_CHECKING:
    from kb.domain.protocols import Embedder
    from kb.search.corpus import Corpus
    from kb.search.dense import VectorView
    from kb.search.hints import Hints


def current_corpus(casebook: Casebook) -> Corpus | None:
    """Words and filters of the index cache at the store's present generation; None where the cache cannot be used."""
    known: Corpus | None = casebook.memo.get("corpus")
    if known is None or known.generation != casebook.store.generation():
        known = casebook.memo["corpus"] = believed(opened_words(casebook.store, casebook.workspace.vectors), casebook.store)
    return known


def current_vectors(casebook: Casebook, embedder: Embedder) -> VectorView:
    """The vectors of the embedder's model at the store's present generation."""
    known: VectorView | None = casebook.memo.get("vectors")
    if known is None or known.model_id != embedder.model_id or known.generation != casebook.store.generation():
        from kb.search.dense import load_vectors  # numpy: not on the words-only path

        known = casebook.memo["vectors"] = load_vectors(casebook.store, embedder, casebook.workspace.vectors)
    return known


def current_hints(casebook: Casebook, embedder: Embedder) -> Hints | None:
    """The sentences that lead to causes, for the embedder's model."""
    if casebook.memo.get("hinting") != embedder.model_id:
        from kb.search.hints import load_hints

        casebook.memo["hints"] = load_hints(casebook.catalogue, embedder, casebook.workspace.vectors)
        casebook.memo["hinting"] = embedder.model_id
    known: Hints | None = casebook.memo["hints"]
    return known
