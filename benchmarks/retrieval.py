"""Quality of search on a set of documents and judged queries.

    python benchmarks/retrieval.py --docs docs.jsonl --queries queries.jsonl --out rows.jsonl [--embedder use] [--glossary yes|no]

A document is ``{"id", "text"}``; a query ``{"id", "type", "text", "qrels": {doc id: grade 1..3}, "ignore": [doc ids]}``. Rows are
``{"id", "ranked"}``: the first 100 documents of the full stack, before ``ignore`` is removed. The last line of the output is
JSON: nDCG@10 (gain 2^grade - 1, log2 discount, ideal over all of ``qrels``), recall@5 (grade-3 documents in the first five /
min(5, their number)) and MRR of the first grade-3 document, by type and over all, with 95 % bootstrap intervals over queries,
for the full stack, words alone, the embedder alone and BM25 without the glossary.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.judging import Row, by_group, lines, systems
from kb.domain.case import CaseQuery
from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Embedder, Store
from kb.domain.record import Record
from kb.domain.text import Text
from kb.embed.choice import open_embedder
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.search.prepare import prepare
from kb.store.sqlite import open_store
from kb.text.language import chinese_share


def main() -> None:
    parser = argparse.ArgumentParser(description="Quality of search on judged queries; JSON on the last line.")
    parser.add_argument("--docs", type=Path, required=True)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="rows of the full stack, JSON lines")
    parser.add_argument("--embedder", default="use")
    parser.add_argument("--cache", type=Path, help="folder of the converted model")
    parser.add_argument("--glossary", choices=("yes", "no"), default="yes")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    documents, queries = lines(options.docs), lines(options.queries)
    catalogue = _catalogue(options.glossary == "yes")
    embedder = open_embedder(options.embedder, cache=options.cache)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "retrieval.db", writable=True)
        names = _filled(store, documents, embedder)
        rankers = systems(store, embedder, catalogue, CaseQuery(kinds=("card",)))
        ranked = {
            name: {query["id"]: [names[hit.slug] for hit in rank(query["text"])] for query in queries} for name, rank in rankers.items()
        }
        store.close()
    if options.out:
        rows = (json.dumps({"id": query["id"], "ranked": ranked["full"][query["id"]]}) for query in queries)
        options.out.write_text("\n".join(rows) + "\n", encoding="utf-8")
    report = {system: _report(queries, answers, options.seed) for system, answers in ranked.items()}
    facts = {"documents": len(documents), "queries": len(queries), "glossary_rows": len(catalogue.glossary), "embedder": embedder.model_id}
    print(json.dumps({**report.pop("full"), **report, **facts}, ensure_ascii=False))


def _catalogue(glossary: bool) -> Catalogue:
    return load_catalogue(library_root()) if glossary else Catalogue(causes={}, strategies={}, metrics={}, socs={}, glossary=())


def _filled(store: Store, documents: Sequence[Row], embedder: Embedder) -> dict[str, str]:
    """Publish each document as a card with its text in its own language only; document id by slug."""
    names: dict[str, str] = {}
    for number, document in enumerate(documents):
        slug = f"doc-{number}"
        names[slug] = document["id"]
        text = document["text"]
        prose = Text(zh=text) if chinese_share(text) > 0.5 else Text(en=text)
        record = Record(kind="card", slug=slug, title=Text(), summary=prose, body=Text())
        # the slug's own tokens would be the same in every document, yet count in its length
        prepared = prepare(record, embedder)
        tokens = {token: count for token, count in prepared.tokens.items() if token not in prepare(_bare(slug), None).tokens}
        store.publish(record, msgspec.structs.replace(prepared, tokens=tokens), origin="workspace", author="benchmark")
    return names


def _bare(slug: str) -> Record:
    return Record(kind="card", slug=slug, title=Text(), summary=Text(), body=Text())


def _report(queries: Sequence[Row], ranked: Mapping[str, list[str]], seed: int) -> dict[str, Any]:
    types = [query["type"] for query in queries]
    report: dict[str, Any] = {}
    for metric, score in METRICS.items():
        values = [score(query, _kept(query, ranked[query["id"]])) for query in queries]
        report[metric], report[f"{metric}_interval95"] = by_group(values, types, seed)
    return report


def _kept(query: Row, ranked: Sequence[str]) -> list[str]:
    ignored = set(query["ignore"])
    return [name for name in ranked if name not in ignored]


def ndcg10(query: Row, ranked: Sequence[str]) -> float:
    """Normalised discounted cumulative gain of the first ten."""
    ideal = sorted(query["qrels"].values(), reverse=True)[:10]
    return _gain([query["qrels"].get(name, 0) for name in ranked[:10]]) / _gain(ideal)


def _gain(grades: Sequence[int]) -> float:
    return math.fsum((2**grade - 1) / math.log2(place + 2) for place, grade in enumerate(grades))


def recall5(query: Row, ranked: Sequence[str]) -> float:
    """Share of the grade-3 documents that could be in the first five and are."""
    right = {name for name, grade in query["qrels"].items() if grade == 3}
    return len(right & set(ranked[:5])) / min(5, len(right))


def mrr(query: Row, ranked: Sequence[str]) -> float:
    """1 / place of the first grade-3 document, 0 when there is none."""
    return next((1 / (place + 1) for place, name in enumerate(ranked) if query["qrels"].get(name) == 3), 0.0)


METRICS: Mapping[str, Callable[[Row, Sequence[str]], float]] = {"ndcg10": ndcg10, "recall5": recall5, "mrr": mrr}


if __name__ == "__main__":
    main()
