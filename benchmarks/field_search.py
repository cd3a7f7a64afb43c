"""Quality of search over the shipped library, on questions about its field cases.

    python benchmarks/field_search.py --queries queries.jsonl --out rows.jsonl [--embedder use] [--cache FOLDER]

A query is ``{"id", "kind", "query", "case_ids"}``; a record stands for the case its tag ``case:<id>`` names. Rows are ``{"id",
"ranked"}``: the case ids of the first 100 records of the full stack; a record without a case keeps its place as ``record:<slug>``.
The last line of the output is JSON: hit@1, hit@5 (any of ``case_ids`` among the first) and MRR of the first of them, by kind and
over all, with 95 % bootstrap intervals over queries, for the full stack, words alone, the embedder alone and BM25 without the
glossary; how many queries search abstained from; and ``with_cards``, the full stack when knowledge cards and templates, which hold no
case, compete for the same places: the rows and the other figures are of recipes, as the questions ask for past cases.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.judging import Ranker, Row, by_group, lines, systems
from kb.domain.case import CaseQuery
from kb.domain.protocols import Store
from kb.embed.choice import open_embedder
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.search.query import search
from kb.store.sqlite import open_store
from kb.workflow.sync import sync

CASE_TAG = "case:"
PAST_CASES = CaseQuery(kinds=("recipe",))


def main() -> None:
    parser = argparse.ArgumentParser(description="Quality of search over the shipped library; JSON on the last line.")
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="rows of the full stack, JSON lines")
    parser.add_argument("--embedder", default="use")
    parser.add_argument("--cache", type=Path, help="folder of the converted model")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    queries = lines(options.queries)
    catalogue, embedder = load_catalogue(library_root()), open_embedder(options.embedder, cache=options.cache)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "field.db", writable=True)
        sync(store, embedder, library_root(), _progress, catalogue)
        names = _names(store)
        ranked = {name: _answers(rank, queries, names) for name, rank in systems(store, embedder, catalogue, PAST_CASES).items()}
        ranked["with_cards"] = _answers(systems(store, embedder, catalogue, CaseQuery())["full"], queries, names)
        abstained = [
            search(CaseQuery(text=query["query"]), store=store, embedder=embedder, catalogue=catalogue).abstained for query in queries
        ]
        store.close()
    if options.out:
        rows = (json.dumps({"id": query["id"], "ranked": ranked["full"][query["id"]]}) for query in queries)
        options.out.write_text("\n".join(rows) + "\n", encoding="utf-8")
    report = {system: _report(queries, answers, options.seed) for system, answers in ranked.items()}
    facts = {"records": len(names), "queries": len(queries), "abstained": sum(abstained), "glossary_rows": len(catalogue.glossary)}
    print(json.dumps({**report.pop("full"), **report, **facts, "embedder": embedder.model_id}, ensure_ascii=False))


def _progress(stage: str, done: int, total: int) -> None:
    print(f"{stage} {done}/{total}", file=sys.stderr)


def _names(store: Store) -> dict[str, str]:
    """Case id by slug."""
    versions = store.versions([row.id for row in store.candidates(CaseQuery())])
    return {version.record.slug: _case(version.record.tags) or f"record:{version.record.slug}" for version in versions.values()}


def _case(tags: Iterable[str]) -> str:
    return next((tag.removeprefix(CASE_TAG) for tag in tags if tag.startswith(CASE_TAG)), "")


def _answers(rank: Ranker, queries: Sequence[Row], names: Mapping[str, str]) -> dict[str, list[str]]:
    return {query["id"]: [names[hit.slug] for hit in rank(query["query"])] for query in queries}


def _report(queries: Sequence[Row], ranked: Mapping[str, Sequence[str]], seed: int) -> dict[str, Any]:
    places = [place(query["case_ids"], ranked[query["id"]]) for query in queries]
    values = {
        "hit1": [float(at == 1) for at in places],
        "hit5": [float(1 <= at <= 5) for at in places],
        "mrr": [1 / at if at else 0.0 for at in places],
    }
    report: dict[str, Any] = {}
    for metric, found in values.items():
        report[metric], report[f"{metric}_interval95"] = by_group(found, [query["kind"] for query in queries], seed)
    return report


def place(wanted: Iterable[str], ranked: Sequence[str]) -> int:
    """Place (from 1) of the first record that is wanted; 0 when none is there."""
    asked = set(wanted)
    return next((at for at, name in enumerate(ranked, start=1) if name in asked), 0)


if __name__ == "__main__":
    main()
