"""Time of a search by the number of records: new processes, a warm process, and the scan itself.

    python benchmarks/search_speed.py --records 10000 [--home FOLDER] [--rounds 20] [--seed 0]

The collection is made of sentences of the shipped library, shuffled into ``--records`` recipes with a title, a summary, symptoms and
a strategy in both languages, as many tokens and vectors a record as shipped ones have; vectors are random (time does not depend on
their values; ``--vectors`` per record). ``--home`` keeps the workspace for the next run. The last line of the output is JSON:
``t0_s`` (a new Python that imports numpy), ``cold_text_s`` and ``cold_hybrid_s`` (``kb search``, best of ``--colds`` new processes),
``warm_p50_ms``, ``warm_p99_ms`` and ``warm_cpu_p50_ms`` (question to explained answer, embedding included), ``scan_over_numpy``
(index over the product of the same matrix, one vector a record), ``scan_filtered_over_numpy`` (the same with 5 % allowed), ``recall10`` and
``recall10_filtered`` (of the index against the exact scan) and ``peak_rss_mb``.
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
from typing import TYPE_CHECKING

import numpy as np

from kb.domain.case import Case, CaseContext, CaseQuery, Outcome
from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Embedder, Prepared, Publication
from kb.domain.record import Record
from kb.index.choice import make_index
from kb.search.dense import load_vectors
from kb.search.prepare import prepare
from kb.search.query import search
from kb.workflow.casebook import Casebook, open_casebook
from kb.workflow.vectors import keep_vectors
from kb.workflow.workspace import Workspace

if TYPE_CHECKING:
    from kb.domain.protocols import Vectors

BATCH = 500
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
    parser.add_argument("--vectors", type=int, default=6, help="vectors a record at most")
    parser.add_argument("--home", type=Path, help="workspace to make or to use again")
    parser.add_argument("--rounds", type=int, default=25, help="warm rounds over the questions")
    parser.add_argument("--colds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Workspace(options.home or Path(folder))
        _fill(place, options.records, options.vectors, options.seed)
        figures = {"records": options.records, "seed": options.seed, **_cold(place, options.colds), **_warm(place, options.rounds)}
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
            records = [_record(number, sources, draw) for number in range(first, min(count, first + BATCH))]
            casebook.store.publish_all([_publication(record, embedder, casebook.catalogue, vectors, numbers) for record in records])
        keep_vectors(casebook.store, place.vectors, embedder.model_id)


def _progress(stage: str, done: int, total: int) -> None:
    print(f"{stage} {done}/{total}", file=sys.stderr)


def _record(number: int, sources: Sequence[Record], draw: random.Random) -> Record:
    """Title, summary, case and body of different shipped recipes: the words of real ones, in new company."""
    first, second, third, fourth = draw.choices(sources, k=4)
    case = draw.choice(third.cases)
    context = CaseContext(model_type=case.context.model_type, phase=case.context.phase, soc_family=case.context.soc_family)
    outcomes = tuple(Outcome(strategy=outcome.strategy, result="unknown", metric="step_time") for outcome in case.outcomes[:1])
    own = Case(cause=case.cause, context=context, finding=case.finding, symptoms=case.symptoms, outcomes=outcomes)
    return Record(kind="recipe", slug=f"speed-{number}", title=first.title, summary=second.summary, body=fourth.body, cases=(own,))


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


def _cold(place: Workspace, colds: int) -> dict[str, float]:
    environment = {**os.environ, "KB_HOME": str(place.home), "KB_EMBEDDER": "use"}
    search_words = [sys.executable, "-m", "kb_cli", "search", QUESTIONS[0]]
    commands = {
        "t0_s": [sys.executable, "-c", "import numpy"],
        "cold_text_s": [*search_words, "--text-only"],
        "cold_hybrid_s": search_words,
    }
    best = {name: float("inf") for name in commands}
    for _ in range(colds):
        for name, command in commands.items():
            started = time.perf_counter()
            subprocess.run(command, env=environment, check=True, capture_output=True)
            best[name] = min(best[name], time.perf_counter() - started)
    return {name: round(value, 4) for name, value in best.items()}


def _warm(place: Workspace, rounds: int) -> dict[str, float]:
    with open_casebook(place, _progress) as casebook:
        wall, used = zip(*_timed(casebook, rounds), strict=True)
    return {
        "warm_p50_ms": round(float(np.percentile(wall, 50)) * 1e3, 2),
        "warm_p99_ms": round(float(np.percentile(wall, 99)) * 1e3, 2),
        "warm_cpu_p50_ms": round(float(np.percentile(used, 50)) * 1e3, 2),
    }


def _timed(casebook: Casebook, rounds: int) -> Iterator[tuple[float, float]]:
    """Wall and processor seconds of each search after the first round."""
    embedder = casebook.embedder()
    vectors = load_vectors(casebook.store, embedder, casebook.workspace.vectors)
    for turn in range(rounds + 1):
        for text in QUESTIONS:
            wall, used = time.perf_counter(), time.process_time()
            query = CaseQuery(text=text)
            search(query, store=casebook.store, embedder=embedder, catalogue=casebook.catalogue, vectors=vectors)
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
