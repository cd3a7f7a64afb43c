"""Cosines of the query with every candidate, from the vectors the store holds.

One plain product over all rows: balancing between languages needs every score, not the best few, and up to some
hundred thousand rows no index is faster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from kb.domain.protocols import Embedder, Store
from kb.embed.blas import Blas
from kb.index.cache import current_parts
from kb.index.rows import rows_of
from kb.search.corpus import CODES, Corpus
from kb.search.filters import Candidates
from kb.search.fusion import Moments, Scores, moments, settled
from kb.search.tally_arrays import column, top_places
from kb.search.weights import Weights

if TYPE_CHECKING:
    from kb.domain.protocols import Ids, Vectors

GATHER_BELOW: Final = 0.15
"""Share of records below which copying the rows of the candidates beats multiplying all rows."""


@dataclass(frozen=True, slots=True)
class VectorView:
    """Everything the store holds of one model, grouped by record.

    ``ids`` (n,) distinct, ascending; record ``ids[i]`` owns the rows ``starts[i]`` .. ``starts[i] + counts[i]`` of ``vectors``
    (rows, dim), in the order of its fields; ``blocks`` are those rows in order, in pieces, so that a mapped file is never copied.
    Valid for the store's ``generation``.
    """

    generation: int
    model_id: str
    ids: Ids
    starts: Ids
    counts: Ids
    blocks: tuple[Vectors, ...]
    blas: Blas = field(default_factory=Blas, repr=False, compare=False)
    """One thread while a question is answered: reading the rows is what takes the time, and a second thread of BLAS spins for some
    8 ms after each product."""

    @property
    def vectors(self) -> Vectors:
        """All rows as one array: a copy where there are several pieces."""
        return self.blocks[0] if len(self.blocks) == 1 else np.concatenate(self.blocks)

    def rows_of(self, record: int) -> Vectors:
        """The record's vectors, shape (fields, dim); no rows for a record without any."""
        at = int(np.searchsorted(self.ids, record))
        if at == len(self.ids) or self.ids[at] != record:
            return self.blocks[0][:0]
        first = int(self.starts[at])
        if first + self.counts[at] <= len(self.blocks[0]):
            return self.blocks[0][first : first + int(self.counts[at])]
        return self.gathered(np.arange(first, first + int(self.counts[at])))

    def gathered(self, rows: Ids) -> Vectors:
        """Copies of the vectors at ``rows``, ascending."""
        ends = np.cumsum([len(block) for block in self.blocks])
        pieces = np.split(rows, np.searchsorted(rows, ends[:-1]))
        return np.concatenate([block[own - end + len(block)] for block, own, end in zip(self.blocks, pieces, ends, strict=True)])

    def products(self, query: Vectors) -> Vectors:
        """Inner product of every row with ``query``."""
        return np.concatenate([block @ query for block in self.blocks])


def load_vectors(store: Store, embedder: Embedder, cache: Path | None = None) -> VectorView:
    """Read the vectors of the embedder's model; ``cache`` is the folder of ``kb.index.cache``, where one is kept.

    Vectors of another dimension than the embedder's are left out: their records count as not embedded.
    """
    model_id = embedder.model_id
    parts = (rows_of(store.vectors_since(0, model_id)),) if cache is None else current_parts(store, cache, model_id)
    generation = parts[-1].generation
    fitting = [part for part in parts if part.vectors.shape[1] == embedder.dim]
    ids = np.concatenate([part.ids for part in fitting]) if fitting else np.zeros(0, dtype=np.int64)
    blocks = tuple(part.vectors for part in fitting) or (np.zeros((0, embedder.dim), dtype=np.float32),)
    if np.any(np.diff(ids) < 0):
        order = np.argsort(ids, kind="stable")
        ids, blocks = ids[order], (np.concatenate(blocks)[order],)
    distinct, starts, counts = np.unique(ids, return_index=True, return_counts=True)
    return VectorView(generation, model_id, distinct, starts, counts, blocks)


def current(view: VectorView | None, store: Store, embedder: Embedder) -> VectorView:
    """``view`` when it still shows what the store holds of this model, else a new one."""
    if view is not None and view.model_id == embedder.model_id and view.generation == store.generation():
        return view
    return load_vectors(store, embedder)


def score_dense(query: Vectors, view: VectorView, candidates: Candidates, embedder: str, weights: Weights) -> Scores | None:
    """Cosine of each candidate, the best over its vectors; None when no candidate has one."""
    if not query.any():
        return None
    langs = np.frombuffer(candidates.langs, np.uint8)
    places = aligned(view, candidates.corpus)
    allowed = (places >= 0) & (langs[places] > 0)
    if not allowed.any():
        return None
    raw = np.full(len(langs), np.nan)
    raw[places[allowed]] = _best_products(query, view, allowed)
    known = ~np.isnan(raw)
    held = {lang: np.flatnonzero((langs == code) & known) for lang, code in CODES.items()}
    calibration = weights.calibration(embedder)
    fixed = Moments(calibration.center, calibration.scale, 1, calibration.center)
    ids = column(candidates.corpus, "ids", np.int64)
    return Scores(
        value=lambda place: None if math.isnan(value := raw.item(place)) else value,
        top=lambda lang, depth: top_places(held[lang], raw[held[lang]], ids, depth),
        moments=settled({lang: _moments(raw[own]) for lang, own in held.items()}, fixed, weights.minimum_group),
        absent=None,
        weight=weights.dense,
        widest=weights.widest,
        ranked=int(known.sum()),
        raw=raw,
        many=raw.__getitem__,
    )


def aligned(view: VectorView, corpus: Corpus) -> Ids:
    """The place of each of the view's ids in the corpus, -1 for a record that is not visible; worked out once for both."""
    known = corpus.memo.get("aligned")
    if known is None or known[0] is not view:
        ids = column(corpus, "ids", np.int64)
        order = np.argsort(ids, kind="stable")
        # The last of equal ids: a record touched since the cache stands a second time, behind the place that is not visible any more.
        at = np.searchsorted(ids, view.ids, side="right", sorter=order) - 1
        found = order[np.maximum(at, 0)] if len(order) else np.zeros(len(view.ids), dtype=np.int64)
        places = np.where(ids[found] == view.ids, found, -1) if len(order) else np.full(len(view.ids), -1)
        known = corpus.memo["aligned"] = (view, places)
    places_of_view: Ids = known[1]
    return places_of_view


def _best_products(query: Vectors, view: VectorView, allowed: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Vectors:
    if allowed.mean() >= GATHER_BELOW:
        return np.maximum.reduceat(view.products(query), view.starts)[allowed]
    counts = view.counts[allowed]
    starts = np.concatenate(([0], np.cumsum(counts[:-1])))
    return np.maximum.reduceat(view.gathered(np.flatnonzero(np.repeat(allowed, view.counts))) @ query, starts)


def _moments(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Moments:
    return moments(len(values), float(values.sum()), float(values @ values), float(values.max(initial=-1.0)))


def nearest_field(record: int, query: Vectors, view: VectorView, fields: tuple[str, ...]) -> str:
    """Which of ``fields`` (names in the order of the record's vectors) is nearest; empty when they do not match the vectors."""
    rows = view.rows_of(record)
    return fields[int((rows @ query).argmax())] if len(rows) == len(fields) else ""
