"""The same exact answers from FAISS, for large collections in a process that lives long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import faiss
import numpy as np

from kb.index.exact import EVEN_FROM, ExactIndex
from kb.index.matrix import grouped
from kb.index.ranking import MARGIN, ranked, unasked

if TYPE_CHECKING:
    from kb.domain.protocols import Ids, Vectors
    from kb.index.matrix import Rows

_WIDEN: Final = 4


class FaissFlatIndex:
    """``kb.domain.protocols.Index`` on ``faiss.IndexFlatIP``, which keeps its own copy of the vectors (n, dim).

    Importing this module loads FAISS (0.23 s): ``kb.index.choice`` does so only when it is needed.
    """

    kind = "faiss"

    def __init__(self, ids: Ids, vectors: Vectors) -> None:
        given = grouped(ids, vectors)
        self.dim = given.dim
        self._flat = faiss.IndexFlatIP(self.dim)
        self._flat.add(np.ascontiguousarray(given.vectors))
        # The same memory seen by numpy: ties and large answers need the numbers themselves.
        own = faiss.rev_swig_ptr(self._flat.get_xb(), given.vectors.size).reshape(given.vectors.shape)
        self._matrix = grouped(ids, own)
        self._plain = ExactIndex(ids, own)

    def __len__(self) -> int:
        return len(self._matrix.codes)

    def search(self, query: Vectors, k: int, *, allowed: Ids | None = None) -> tuple[Ids, Vectors]:
        """The ``k`` best distinct ids and their scores; see the protocol. Raises UsageError for a query of another shape."""
        matrix = self._matrix
        query = matrix.checked(query, k)
        rows = matrix.rows_of(allowed)
        wanted, size = k * matrix.largest, len(self) if rows is None else len(rows)
        if k == 0 or size == 0 or not query.any():
            return unasked(matrix, rows, k)
        if wanted >= EVEN_FROM * size:
            # FAISS keeps a heap of what is wanted: a plain scan gives large answers sooner.
            return self._plain.search(query, k, allowed=allowed)
        found, scores = self._contenders(query, wanted, size, self._restriction(rows))
        return ranked(matrix, found, scores, query, k)

    def _contenders(self, query: Vectors, wanted: int, size: int, restriction: Any) -> tuple[Rows, Vectors]:
        """At least the ``wanted`` best rows and all others within the margin of the last of them, with their scores."""
        count = min(wanted * _WIDEN, size)
        while True:
            scores, rows = self._flat.search(query[None, :], count, params=restriction)
            if count == size or scores[0, -1] < scores[0, wanted - 1] - MARGIN:
                return rows[0], scores[0]
            count = min(count * _WIDEN, size)

    def _restriction(self, rows: Rows | None) -> Any:
        if rows is None:
            return None
        # A bitmap is 1.2 to 2.4 times faster here than IDSelectorBatch's hash set, for 5 % as for all of the rows.
        mask = np.zeros(len(self), dtype=bool)
        mask[rows] = True
        selector: Any = faiss.IDSelectorBitmap
        parameters: Any = faiss.SearchParameters
        return parameters(sel=selector(np.packbits(mask, bitorder="little")))
