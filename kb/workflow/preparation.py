"""Search data of many records: every distinct text is embedded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Embedder, Prepared
from kb.domain.record import Record
from kb.search.prepare import field_texts, prepare

if TYPE_CHECKING:
    from kb.domain.protocols import Vectors

BATCH: Final = 64
"""Records embedded together and published in one transaction: enough to share a commit, few enough to lose little."""
REMEMBERED: Final = 4096
"""Vectors kept for texts that come again, such as the names of strategies."""


class OnceEmbedder:
    """An embedder that encodes a document text it has seen lately only once; equal texts give equal vectors."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}
        self.name, self.dim, self.model_id = embedder.name, embedder.dim, embedder.model_id

    def encode_query(self, text: str) -> Vectors:
        """As the embedder itself."""
        return self._embedder.encode_query(text)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dim); only texts without a known vector are encoded."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._known]
        if fresh:
            self._known.update(zip(fresh, self._embedder.encode_documents(fresh), strict=True))
        found = np.stack([self._known[text] for text in texts]) if texts else np.zeros((0, self.dim), dtype=np.float32)
        for text in list(islice(self._known, max(0, len(self._known) - REMEMBERED))):
            del self._known[text]
        return found


def prepare_all(records: Sequence[Record], embedder: OnceEmbedder, catalogue: Catalogue) -> list[Prepared]:
    """Search data of each record, as ``kb.search.prepare`` would make it one by one."""
    embedder.encode_documents([text for record in records for text in field_texts(record, catalogue).values()])
    return [prepare(record, embedder, catalogue) for record in records]


def batches(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """The records in groups of ``BATCH``."""
    for first in range(0, len(records), BATCH):
        yield records[first : first + BATCH]
