"""Time of one diagnosis's recommendation over a large casebook, in a warm process.

    python benchmarks/recommend_speed.py PROFILE [--records 10000] [--home FOLDER] [--rounds 20] [--seed 0]

The casebook is filled with sentences of the shipped library, shuffled into recipes with random vectors (time does not depend on their
values); ``--home`` keeps it for the next run. Each round asks for the recommendation of the diagnosed PROFILE: similar cases (embedding
included), outcomes, effects, limits, percentiles. The last line of the output is JSON: ``warm_p50_ms`` and ``warm_p95_ms`` (wall) and
``warm_cpu_p50_ms`` of the whole, ``search_cpu_p50_ms`` of the search for similar cases in it, ``rank_cpu_p50_ms`` of the rest,
``field_cpu_p50_ms`` of a problem told in words, and ``t0_s``, a new Python that imports numpy.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

import numpy as np

from benchmarks.synthetic import shuffled
from kb.domain.field import FieldQuestion
from kb.domain.protocols import Embedder, Publication
from kb.domain.recommendation import Constraints
from kb.embed.choice import open_embedder
from kb.search.prepare import prepare
from kb.workflow.casebook import Casebook, open_casebook
from kb.workflow.diagnose import Diagnosed, diagnose_paths
from kb.workflow.field import ask_field
from kb.workflow.gains import gains_of
from kb.workflow.recommend import recommend_for, recommend_from
from kb.workflow.search import similar
from kb.workflow.vectors import keep_vectors
from kb.workflow.workspace import Workspace

BATCH: Final = 500
QUESTION: Final = FieldQuestion(symptom="device idle between steps, the loader queue is empty", workload="training")


class RandomEmbedder:
    """The shape of an embedder with random unit vectors, so that a large casebook is filled quickly."""

    def __init__(self, embedder: Embedder, seed: int) -> None:
        self.name, self.dim, self.model_id = embedder.name, embedder.dim, embedder.model_id
        self._draw = np.random.default_rng(seed)

    def encode_query(self, text: str) -> Any:
        return self.encode_documents([text])[0]

    def encode_documents(self, texts: Any) -> Any:
        rows = self._draw.standard_normal((len(texts), self.dim), dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Warm(Casebook):
    """A casebook whose embedder is loaded once, as in a server."""

    def embedder(self) -> Embedder:
        return _loaded(self.embedder_name, self.workspace.cache)


_LOADED: dict[str, Embedder] = {}


def _loaded(name: str, cache: Path) -> Embedder:
    if name not in _LOADED:
        _LOADED[name] = open_embedder(name, cache=cache)
    return _LOADED[name]


def main() -> None:
    parser = argparse.ArgumentParser(description="Time of a recommendation over a large casebook; JSON on the last line.")
    parser.add_argument("profile", type=Path)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--home", type=Path, help="workspace to make or to use again")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Workspace(options.home or Path(folder))
        with open_casebook(place, _progress, writable=True) as casebook:
            _fill(casebook, options.records, options.seed)
        diagnosed = diagnose_paths([options.profile])
        with open_casebook(place, _progress) as casebook:
            warm = Warm(casebook.workspace, casebook.store, casebook.catalogue, casebook.embedder_name)
            figures = _measured(warm, diagnosed, options.rounds)
    print(json.dumps({"records": options.records, "findings": len(diagnosed.diagnosis.all_findings()), **figures, "seed": options.seed}))


def _progress(stage: str, done: int, total: int) -> None:
    print(f"{stage} {done}/{total}", file=sys.stderr)


def _fill(casebook: Casebook, count: int, seed: int) -> None:
    draw, embedder = random.Random(seed), RandomEmbedder(casebook.embedder(), seed)
    held = len(casebook.store.summaries())
    sources = [version.record for version in casebook.store.versions(range(1, 200)).values() if version.record.cases]
    for first in range(held, count, BATCH):
        _progress("records", first, count)
        records = [shuffled(number, sources, draw) for number in range(first, min(count, first + BATCH))]
        casebook.store.publish_all(
            [Publication(record=record, prepared=prepare(record, embedder, casebook.catalogue), origin="workspace", author="benchmark")
             for record in records]
        )  # fmt: skip
    keep_vectors(casebook.store, casebook.workspace.vectors, embedder.model_id)


def _measured(casebook: Casebook, diagnosed: Diagnosed, rounds: int) -> dict[str, float]:
    past, gains = similar(casebook, diagnosed), gains_of(casebook.workspace)
    whole = _times(lambda: recommend_for(casebook, diagnosed, Constraints(), gains=gains), rounds)
    search = _times(lambda: similar(casebook, diagnosed), rounds)
    rank = _times(lambda: recommend_from(casebook, diagnosed, past, Constraints(), gains=gains), rounds)
    field = _times(lambda: ask_field(casebook, QUESTION, Constraints()), max(3, rounds // 4))
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import numpy"], check=True)
    return {
        "warm_p50_ms": median(wall for wall, _ in whole),
        "warm_p95_ms": quantiles([wall for wall, _ in whole], n=20, method="inclusive")[-1],
        "warm_cpu_p50_ms": median(cpu for _, cpu in whole),
        "search_cpu_p50_ms": median(cpu for _, cpu in search),
        "rank_cpu_p50_ms": median(cpu for _, cpu in rank),
        "field_cpu_p50_ms": median(cpu for _, cpu in field),
        "t0_s": time.perf_counter() - start,
    }


def _times(job: Callable[[], object], rounds: int) -> list[tuple[float, float]]:
    """Wall and processor time in ms, after two calls that warm up."""
    found = []
    for turn in range(rounds + 2):
        wall, cpu = time.perf_counter(), time.process_time()
        job()
        if turn >= 2:
            found.append(((time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3))
    return found


if __name__ == "__main__":
    main()
