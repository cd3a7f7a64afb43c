"""What the benchmarks of search share: lines of JSON, bootstrap intervals, and the three systems compared."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from kb.domain.case import CaseQuery, Hit
from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Embedder, Store
from kb.errors import KbError
from kb.search.dense import load_vectors
from kb.search.hints import Hints, load_hints
from kb.search.query import search
from kb.search.weights import load_weights

DEPTH = 100
DRAWS = 2000
Row = Mapping[str, Any]
Ranker = Callable[[str], Sequence[Hit]]


def lines(path: Path) -> list[dict[str, Any]]:
    """One JSON object a line; blank lines are passed over."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def interval(values: Sequence[float], seed: int) -> list[float]:
    """95 % bootstrap interval of the mean over queries."""
    draw = random.Random(seed)
    means = sorted(fmean(draw.choices(values, k=len(values))) for _ in range(DRAWS))
    return [round(means[int(0.025 * DRAWS)], 4), round(means[int(0.975 * DRAWS) - 1], 4)]


def by_group(values: Sequence[float], groups: Sequence[str], seed: int) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Mean and interval of each group and of ``all``."""
    members = {name: [value for value, group in zip(values, groups, strict=True) if group == name] for name in dict.fromkeys(groups)}
    members["all"] = list(values)
    return {name: round(fmean(own), 4) for name, own in members.items()}, {name: interval(own, seed) for name, own in members.items()}


def systems(store: Store, embedder: Embedder, catalogue: Catalogue, base: CaseQuery) -> dict[str, Ranker]:
    """``full``: the shipped search. ``without_hints``: the same without the causes a question sounds like. ``words``: its words alone (BM25
    with the glossary). ``embedder_alone``: its cosines alone. ``bm25``: words without the glossary. A query that search refuses has
    no hits."""
    shipped = load_weights()
    vectors = load_vectors(store, embedder)
    bare = msgspec.structs.replace(catalogue, glossary=())
    shipped_hints = load_hints(catalogue, embedder)

    def ranker(used: Embedder | None, lexical: float, known: Catalogue, hints: Hints | None = None) -> Ranker:
        weights = msgspec.structs.replace(shipped, lexical=lexical)

        def rank(text: str) -> Sequence[Hit]:
            query = msgspec.structs.replace(base, text=text, limit=DEPTH)
            try:
                return search(query, store=store, embedder=used, catalogue=known, weights=weights, vectors=vectors, hints=hints).hits
            except KbError:
                return ()

        return rank

    return {
        "full": ranker(embedder, shipped.lexical, catalogue, shipped_hints),
        "without_hints": ranker(embedder, shipped.lexical, catalogue),
        "words": ranker(None, shipped.lexical, catalogue),
        "embedder_alone": ranker(embedder, 0.0, catalogue),
        "bm25": ranker(None, shipped.lexical, bare),
    }
