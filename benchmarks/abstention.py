"""How well search knows that it has no answer.

    python benchmarks/abstention.py --queries queries.jsonl [--others benchmarks/data/other_fields.jsonl] [--out rows.jsonl]

``--queries`` are questions the shipped library has cases for (``{"id", "query"}``), ``--others`` questions of other fields. The score is
what search decides by: the best raw cosine among the hits, and the share of the question's words that a hit holds. Rows are ``{"id",
"answerable", "cosine", "abstained"}``. The last line of the output is JSON: ``auc`` of the cosine, ``roc`` (threshold, share of answerable
questions kept, share of others let through), both shares for the decision as shipped, with the threshold, and ``n`` of each kind.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.judging import Row, lines
from kb.domain.case import CaseQuery
from kb.embed.choice import open_embedder
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.search.dense import load_vectors
from kb.search.hints import load_hints
from kb.search.query import search
from kb.search.weights import load_weights
from kb.store.sqlite import open_store
from kb.workflow.sync import sync

THRESHOLDS = [round(0.1 + 0.02 * step, 2) for step in range(21)]
OTHERS = Path(__file__).with_name("data") / "other_fields.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description="How well search knows that it has no answer; JSON on the last line.")
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--others", type=Path, default=OTHERS)
    parser.add_argument("--embedder", default="use")
    parser.add_argument("--cache", type=Path, help="folder of the converted model")
    parser.add_argument("--out", type=Path, help="rows, JSON lines")
    options = parser.parse_args()
    asked = [(row, True) for row in lines(options.queries)] + [(row, False) for row in lines(options.others)]
    rows, cut = _judged(asked, options.embedder, options.cache)
    if options.out:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    kept = [row["cosine"] for row in rows if row["answerable"]]
    others = [row["cosine"] for row in rows if not row["answerable"]]
    print(json.dumps({
        "auc": round(auc(kept, others), 4),
        "roc": [{"threshold": cut, "kept": share(kept, cut), "let_through": share(others, cut)} for cut in THRESHOLDS],
        "shipped": {
            "threshold": cut,
            "kept": _answered(rows, answerable=True),
            "let_through": _answered(rows, answerable=False),
        },
        "n": {"answerable": len(kept), "others": len(others)},
    }))  # fmt: skip


def _judged(asked: Sequence[tuple[Row, bool]], name: str, cache: Path | None) -> tuple[list[dict[str, Any]], float | None]:
    catalogue, embedder = load_catalogue(library_root()), open_embedder(name, cache=cache)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "field.db", writable=True)
        sync(store, embedder, library_root(), _progress, catalogue)
        vectors, hints = load_vectors(store, embedder), load_hints(catalogue, embedder)
        rows = []
        for row, answerable in asked:
            answer = search(CaseQuery(text=row["query"]), store=store, embedder=embedder, catalogue=catalogue, vectors=vectors, hints=hints)
            cosine = max((hit.similarity or 0.0 for hit in answer.hits), default=0.0)
            rows.append({"id": row["id"], "answerable": answerable, "cosine": round(cosine, 4), "abstained": answer.abstained})
        store.close()
    return rows, load_weights().calibration(embedder.name).cut(int(vectors.counts.sum()))


def _progress(stage: str, done: int, total: int) -> None:
    print(f"{stage} {done}/{total}", file=sys.stderr)


def auc(right: Sequence[float], wrong: Sequence[float]) -> float:
    """Chance that a question of the first kind scores above one of the second, ties counting half."""
    wins = sum((mine > other) + 0.5 * (mine == other) for mine in right for other in wrong)
    return wins / (len(right) * len(wrong))


def share(scores: Sequence[float], cut: float) -> float:
    """Share of ``scores`` that reach the threshold."""
    return round(sum(score >= cut for score in scores) / len(scores), 3)


def _answered(rows: Sequence[dict[str, Any]], *, answerable: bool) -> float:
    own = [row for row in rows if row["answerable"] == answerable]
    return round(sum(not row["abstained"] for row in own) / len(own), 3)


if __name__ == "__main__":
    main()
