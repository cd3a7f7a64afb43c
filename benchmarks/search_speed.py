"""Time of a search by the number of records: new processes, a warm process, and the scan itself.

    python benchmarks/search_speed.py --records 10000 [--home FOLDER] [--rounds 20] [--seed 0]

Up to ``--stored`` records the collection is a real workspace: sentences of the shipped library, shuffled into recipes with a title, a
summary, symptoms and a strategy in both languages. Beyond, only the index files are real (``benchmarks/synthetic.py``): the same
shuffled records stand behind them, made when they are shown, and from 200,000 on they are titles and summaries only; ``synthetic`` says
so and there are no cold figures. Vectors are random throughout (time does not depend on their values; ``--vectors`` a record at
most: 6, from 200,000 records on 1). ``--home`` keeps the workspace for the next run. The last line of the output is JSON: ``t0_s`` (a new
Python that imports numpy), ``cold_text_s`` and ``cold_hybrid_s`` (``kb search``, best of ``--colds`` new processes with compiled
modules, as after an installation; ``_cpu_s``: processor time), ``warm_p50_ms``, ``warm_p99_ms`` and ``warm_cpu_p50_ms`` (question to
explained answer, embedding included), ``scan_over_numpy`` (index over the product of the same matrix, one vector a record),
``scan_filtered_over_numpy`` (the same with 5 % allowed), ``recall10`` and ``recall10_filtered`` (of the index against the exact scan) and
``peak_rss_mb``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.synthetic import Shown, shuffled, synthetic
from kb.domain.case import CaseQuery
from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Embedder, Prepared, Publication
from kb.domain.record import Record
from kb.index.choice import COARSE_FROM_ROWS, make_index
from kb.search.coarse import coarse_view
from kb.search.corpus import believed
from kb.search.dense import load_vectors
from kb.search.hints import load_hints
from kb.search.prepare import prepare
from kb.search.query import search
from kb.workflow.casebook import open_casebook
from kb.workflow.vectors import keep_vectors
from kb.workflow.words import opened_words
from kb.workflow.workspace import Workspace

if TYPE_CHECKING:
    from kb.domain.protocols import Vectors

BATCH = 500
LARGE = 200_000
QUESTIONS = (
    "attention 没融合 L2 命中率低",
    "device idle between small kernels",
    "decode gets slower as the context grows",
    "多卡训练时通信没有和计算重叠",
    "how to reduce pipeline bubble",
    "第一步编译很久，之后正常",
    "data loader cannot keep up with the accelerator",
    "显存碎片导致反复申请",
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time of a search by the number of records; JSON on the last line.")
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--vectors", type=int, help="vectors a record at most; 6, or 1 for large collections")
    parser.add_argument("--stored", type=int, default=20_000, help="records up to which a real store is filled")
    parser.add_argument("--home", type=Path, help="workspace to make or to use again")
    parser.add_argument("--rounds", type=int, default=25, help="warm rounds over the questions")
    parser.add_argument("--colds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    vectors = options.vectors or (6 if options.records < LARGE else 1)
    figures: dict[str, Any] = {"records": options.records, "vectors_a_record": vectors, "seed": options.seed}
    with tempfile.TemporaryDirectory() as folder:
        place = Workspace(options.home or Path(folder))
        if options.records <= options.stored:
            _fill(place, options.records, vectors, options.seed)
            figures |= {"synthetic": False, **_cold(place, options.colds, Path(folder)), **_warm(place, options.rounds)}
        else:
            figures |= {"synthetic": True, **_large(place, options.records, vectors, options.rounds, options.seed)}
        figures |= _scan(options.records, options.seed)
    figures["peak_rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
    print(json.dumps(figures))


def _fill(place: Workspace, count: int, vectors: int, seed: int) -> None:
    """Publish records until the workspace holds ``count``; one that does already is left alone."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    with open_casebook(place, _progress, writable=True) as casebook:
        embedder = casebook.embedder()
        held = len(casebook.store.summaries())
        sources = [version.record for version in casebook.store.versions(range(1, 200)).values() if version.record.cases]
        for first in range(held, count, BATCH):
            _progress("records", first, count)
            records = [shuffled(number, sources, draw) for number in range(first, min(count, first + BATCH))]
            casebook.store.publish_all([_publication(record, embedder, casebook.catalogue, vectors, numbers) for record in records])
        keep_vectors(casebook.store, place.vectors, embedder.model_id)


def _progress(stage: str, done: int, total: int) -> None:
    print(f"{stage} {done}/{total}", file=sys.stderr)


def _publication(record: Record, embedder: Embedder, catalogue: Catalogue, vectors: int, numbers: np.random.Generator) -> Publication:
    prepared = prepare(record, _Blank(embedder), catalogue)
    fields = prepared.fields[:vectors]
    found = _unit(numbers.standard_normal((len(fields), embedder.dim), dtype=np.float32))
    ready = Prepared(tokens=prepared.tokens, vectors=found.tobytes(), fields=fields, dim=embedder.dim, model_id=embedder.model_id,
                     language_share=prepared.language_share)  # fmt: skip
    return Publication(record=record, prepared=ready, origin="workspace", author="benchmark")


class _Blank:
    """The shape of an embedder without its work: the vectors are replaced."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.dim, self.model_id = embedder.name, embedder.dim, embedder.model_id

    def encode_query(self, _text: str) -> Vectors:
        return np.zeros(self.dim, dtype=np.float32)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        return np.zeros((len(texts), self.dim), dtype=np.float32)


def _unit(rows: Vectors) -> Vectors:
    unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _cold(place: Workspace, colds: int, folder: Path) -> dict[str, float]:
    environment = {**os.environ, "KB_HOME": str(place.home), "KB_EMBEDDER": "use", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    search_words = [sys.executable, "-m", "kb_cli", "search", QUESTIONS[0]]
    commands = {
        "t0": [sys.executable, "-c", "import numpy"],
        "cold_text": [*search_words, "--text-only"],
        "cold_hybrid": search_words,
    }
    best: dict[str, float] = {}
    for turn in range(colds + 1):
        for name, command in commands.items():
            wall, used = time.perf_counter(), _children_s()
            subprocess.run(command, env=environment, check=True, capture_output=True)
            for unit, value in (("s", time.perf_counter() - wall), ("cpu_s", _children_s() - used)):
                if turn:
                    best[f"{name}_{unit}"] = min(best.get(f"{name}_{unit}", value), value)
    return {name: round(value, 4) for name, value in best.items()}


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _warm(place: Workspace, rounds: int) -> dict[str, float]:
    with open_casebook(place, _progress) as casebook:
        embedder = casebook.embedder()
        vectors = load_vectors(casebook.store, embedder, place.vectors)
        corpus = believed(opened_words(casebook.store, place.vectors), casebook.store)
        hints = load_hints(casebook.catalogue, embedder, place.vectors)
        held = {
            "store": casebook.store,
            "embedder": embedder,
            "catalogue": casebook.catalogue,
            "vectors": vectors,
            "corpus": corpus,
            "hints": hints,
        }
        return _quantiles(held, rounds)


def _large(place: Workspace, count: int, vectors: int, rounds: int, seed: int) -> dict[str, float]:
    with open_casebook(place, _progress) as casebook:
        embedder = casebook.embedder()
        sources = [version.record for version in casebook.store.versions(range(1, 200)).values() if version.record.cases]
        made = synthetic(sources, count, vectors, embedder, casebook.catalogue, place.vectors, seed, brief=count >= LARGE)
        used = time.process_time()
        large = len(made.view.vectors) >= COARSE_FROM_ROWS
        view = (coarse_view(made.view, made.corpus) if large else None) or made.view
        built = time.process_time() - used
        hints = load_hints(casebook.catalogue, embedder, place.vectors)
        held = {
            "store": Shown(made),
            "embedder": embedder,
            "catalogue": casebook.catalogue,
            "vectors": view,
            "corpus": made.corpus,
            "hints": hints,
        }
        tokens = round(sum(made.corpus.lengths) / count, 1)
        return {"tokens_a_record": tokens, "coarse": large, "coarse_built_cpu_s": round(built, 1), **_quantiles(held, rounds)}


def _quantiles(held: dict[str, Any], rounds: int) -> dict[str, float]:
    wall, used = zip(*_timed(held, rounds), strict=True)
    return {
        "warm_p50_ms": round(float(np.percentile(wall, 50)) * 1e3, 2),
        "warm_p99_ms": round(float(np.percentile(wall, 99)) * 1e3, 2),
        "warm_cpu_p50_ms": round(float(np.percentile(used, 50)) * 1e3, 2),
    }


def _timed(held: dict[str, Any], rounds: int) -> Iterator[tuple[float, float]]:
    """Wall and processor seconds of each search after the first round."""
    for turn in range(rounds + 1):
        for text in QUESTIONS:
            wall, used = time.perf_counter(), time.process_time()
            search(CaseQuery(text=text), **held)
            if turn:
                yield time.perf_counter() - wall, time.process_time() - used


def _scan(count: int, seed: int) -> dict[str, float]:
    numbers = np.random.default_rng(seed)
    ids, matrix = np.arange(count), _unit(numbers.standard_normal((count, 512), dtype=np.float32))
    queries = _unit(numbers.standard_normal((20, 512), dtype=np.float32))
    few = np.sort(numbers.choice(ids, size=max(1, count // 20), replace=False))
    index, exact = make_index(ids, matrix), make_index(ids, matrix, kind="exact")
    plain = _seconds(lambda query: matrix @ query, queries)
    return {
        "scan_over_numpy": round(_seconds(lambda query: index.search(query, 10), queries) / plain, 3),
        "scan_filtered_over_numpy": round(_seconds(lambda query: index.search(query, 10, allowed=few), queries) / plain, 3),
        "scan_numpy_ms": round(plain * 1e3, 3),
        "recall10": float(np.mean([np.isin(exact.search(query, 10)[0], index.search(query, 10)[0]).mean() for query in queries])),
        "recall10_filtered": float(
            np.mean([np.isin(exact.search(query, 10, allowed=few)[0], index.search(query, 10, allowed=few)[0]).mean() for query in queries])
        ),
    }


def _seconds(run: Callable[[Vectors], object], queries: Vectors) -> float:
    times = []
    for query in queries:
        started = time.perf_counter()
        run(query)
        times.append(time.perf_counter() - started)
    return float(np.median(times))


if __name__ == "__main__":
    main()
