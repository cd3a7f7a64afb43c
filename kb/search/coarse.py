"""Cosines of a large collection: the nearest by a coarse scan, with exact products, and moments from a fixed sample.

For a process that lives long. Balancing between languages needs the mean and the deviation of all cosines of a language; here they
come from a sample that is drawn once and stays with the scan, so that the cost of a query does not grow with the collection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kb.domain.text import LANGS, Lang
from kb.index.faiss_pq import coarse_scan, nearest_rows, scannable
from kb.search.corpus import CODES
from kb.search.dense import aligned
from kb.search.fusion import Moments, Scores, settled
from kb.search.tally_arrays import column

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from kb.domain.protocols import Ids, Vectors
    from kb.search.corpus import Corpus
    from kb.search.dense import VectorView
    from kb.search.filters import Candidates
    from kb.search.weights import Weights

SAMPLE: Final = 1000
"""Records a language whose cosines stand for all: their mean is off by a thirtieth of the deviation."""
FETCHED: Final = 4000
"""Rows multiplied exactly."""
SCANNED_BELOW: Final = 0.2
"""Share of the rows beyond which the plain scan over the candidates costs less."""


@dataclass(frozen=True, slots=True, eq=False)
class CoarseView:
    """A scan over the vectors of ``view``, and a fixed sample of its records (places in ``view.ids``, ascending)."""

    view: VectorView
    scan: Any
    owners: Ids
    sample: Ids


def coarse_view(view: VectorView, corpus: Corpus) -> CoarseView | None:
    """The scan and the sample (spread evenly over the records of each language); None where the plain scan is as good."""
    vectors = view.vectors
    if not scannable(len(vectors), vectors.shape[1]):
        return None
    langs = np.frombuffer(corpus.langs, np.uint8)[aligned(view, corpus)]
    groups = [np.flatnonzero(langs == code) for code in CODES.values()]
    chosen = [group[:: max(1, len(group) // SAMPLE)][:SAMPLE] for group in groups]
    return CoarseView(view, coarse_scan(vectors), np.repeat(np.arange(len(view.ids)), view.counts), np.sort(np.concatenate(chosen)))


class Coarse:
    """The cosines of one query with a large collection: exact where they are looked at, worked out when they are."""

    def __init__(self, query: Vectors, coarse: CoarseView, candidates: Candidates) -> None:
        self._query, self._view, self._candidates = query, coarse.view, candidates
        self._langs = np.frombuffer(candidates.langs, np.uint8)
        self._places = aligned(coarse.view, candidates.corpus)
        self._ids = column(candidates.corpus, "ids", np.int64)
        self._known: dict[int, float] = {}
        self._add(coarse.sample[self._langs[self._places[coarse.sample]] > 0])
        self.moments = {lang: self._sampled(lang, code) for lang, code in CODES.items()}
        self._add(self._nearest(coarse))
        self._order = {lang: self._ordered(code) for lang, code in CODES.items()}

    def value(self, place: int) -> float | None:
        """The cosine of a record; None without vectors."""
        if place not in self._known:
            rows = self._view.rows_of(int(self._ids[place]))
            if not len(rows):
                return None
            self._known[place] = float((rows @ self._query).max())
        return self._known[place]

    def many(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The cosines of several records, NaN without vectors."""
        unknown = np.array([place for place in places.tolist() if place not in self._known], dtype=np.int64)
        ids = self._ids[unknown]
        at = np.minimum(np.searchsorted(self._view.ids, ids), len(self._view.ids) - 1)
        self._add(at[self._view.ids[at] == ids])
        return np.array([self._known.get(place, math.nan) for place in places.tolist()])

    def top(self, lang: Lang, depth: int) -> list[int]:
        """The nearest records of a language that the scan found: asking for more than it fetched gives those."""
        return self._order[lang][:depth]

    def _nearest(self, coarse: CoarseView) -> Ids:
        share = self._candidates.count / max(1, len(self._langs))
        count = int(FETCHED / max(share, 1e-9))
        if count > SCANNED_BELOW * len(coarse.owners):
            return np.flatnonzero(self._langs[self._places] > 0)
        found = np.unique(coarse.owners[nearest_rows(coarse.scan, self._query, count)])
        return found[self._langs[self._places[found]] > 0]

    def _add(self, records: Ids) -> None:
        """Work out the cosines of records, given by their place in the view."""
        if not len(records):
            return
        counts = self._view.counts[records]
        starts = np.concatenate(([0], np.cumsum(counts[:-1])))
        rows = np.repeat(self._view.starts[records] - starts, counts) + np.arange(counts.sum())
        # Not a matrix product: of so few rows it is over before a second thread of BLAS has begun.
        best = np.maximum.reduceat(np.einsum("ij,j->i", self._view.gathered(rows), self._query), starts)
        self._known.update(zip(self._places[records].tolist(), best.tolist(), strict=True))

    def _sampled(self, lang: Lang, code: int) -> Moments:
        values = np.array([value for place, value in self._known.items() if self._langs[place] == code])
        if not len(values):
            return Moments(0.0, 0.0, 0, 0.0)
        return Moments(float(values.mean()), float(values.std()), self._candidates.sizes[lang], float(values.max()))

    def _ordered(self, code: int) -> list[int]:
        places = np.fromiter(self._known, dtype=np.int64, count=len(self._known))
        places = places[self._langs[places] == code]
        values = np.array([self._known[place] for place in places.tolist()])
        found: list[int] = places[np.lexsort((self._ids[places], -values))].tolist()
        return found


def score_coarse(query: Vectors, coarse: CoarseView, candidates: Candidates, embedder: str, weights: Weights) -> Scores | None:
    """As ``kb.search.dense.score_dense``, with moments of the sample and ranks among what the scan found."""
    if not query.any() or not candidates.count:
        return None
    found = Coarse(query, coarse, candidates)
    calibration = weights.calibration(embedder)
    fixed = Moments(calibration.center, calibration.scale, 1, calibration.center)
    return Scores(
        value=found.value,
        top=found.top,
        moments=settled(_widened(found), fixed, weights.minimum_group),
        absent=None,
        weight=weights.dense,
        widest=weights.widest,
        ranked=candidates.count,
        many=found.many,
    )


def _widened(found: Coarse) -> Mapping[Lang, Moments]:
    """The sample's moments with the largest cosine of all."""
    best = {lang: found.top(lang, 1) for lang in LANGS}
    return {
        lang: Moments(own.mean, own.deviation, own.count, max([own.largest, *(found.value(place) or 0.0 for place in best[lang])]))
        for lang, own in found.moments.items()
    }
