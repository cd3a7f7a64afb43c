"""Causes and strategies of reported performance problems, told in words only.

    python benchmarks/recommend_field.py [--heldout cases.jsonl] --out rows.jsonl [--cases field_cases.jsonl] [--nested]

The recommender learns from the shipped casebook and is given a case's symptom, metrics, hardware, model and workload, nothing else.
With ``--heldout F`` it learns from all of the casebook and answers the cases of F. Without, each case of ``--cases`` is answered
by the casebook without the recipe of that case (tag ``case:<id>``); knowledge cards, which repeat recipes, teach nothing.

Rows are ``{"id", "causes", "strategies"}`` in the labels of the taxonomy, best first: catalogue ids, where ``taxonomy.json`` beside this
file does not name another label. The last line is JSON: ``cause_top1, cause_top3, strategy_top1, strategy_top3`` with 95 % bootstrap
intervals over cases, ``n``, and ``baseline``: the same for the labels of the nearest neighbours by TF-IDF. ``--nested`` adds the
figures when the main weights are chosen anew for every case by what is best on all others.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from benchmarks.judging import Row, interval, lines
from kb.domain.catalogue import Catalogue
from kb.domain.field import FieldQuestion
from kb.domain.protocols import Embedder
from kb.embed.choice import open_embedder
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.recommend.field.documents import CaseDocument, Lessons
from kb.recommend.field.model import AskedField, FieldModel, fit_field, judge, left_out
from kb.recommend.field.question import read_field_question
from kb.recommend.field.weights import FieldWeights, load_field_weights
from kb.search.dense import load_vectors
from kb.store.sqlite import open_store
from kb.workflow.field import lessons
from kb.workflow.sync import sync

SHARED_CASES: Final = Path(__file__).parents[2] / "shared/data/cases/field_cases.jsonl"
CASE_TAG: Final = "case:"
DEPTH: Final = 10
GRID: Final[Mapping[str, tuple[float, ...]]] = {
    "smoothing": (30.0, 100.0, 300.0),
    "definition": (1.0, 3.0, 6.0),
    "vectors": (0.5, 0.7, 1.0),
}
MEASURES: Final = {
    "cause_top1": ("causes", 1),
    "cause_top3": ("causes", 3),
    "strategy_top1": ("strategies", 1),
    "strategy_top3": ("strategies", 3),
}
TRUTH: Final = {"causes": "root_cause_label", "strategies": "strategy_label"}


@dataclass(frozen=True)
class Casebook:
    """What is learnt from; ``slugs``: recipe of each field case."""

    catalogue: Catalogue
    embedder: Embedder
    lessons: Lessons
    slugs: Mapping[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description="Causes and strategies of problems told in words; JSON on the last line.")
    parser.add_argument("--heldout", type=Path, help="cases to answer from the whole casebook; without, leave-one-out over --cases")
    parser.add_argument("--cases", type=Path, default=SHARED_CASES)
    parser.add_argument("--out", type=Path, help="rows, JSON lines")
    parser.add_argument("--nested", action="store_true")
    parser.add_argument("--embedder", default="use")
    parser.add_argument("--cache", type=Path, help="folder of the converted model")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    cases, book = lines(options.heldout or options.cases), _casebook(options)
    held_out = options.heldout is not None
    rows = answers(cases, book, load_field_weights(), held_out=held_out)
    if options.out:
        options.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    report: dict[str, Any] = {**_scores(cases, rows, options.seed), "n": len(cases), "learnt_from": len(book.lessons.cases)}
    report["baseline"] = _scores(cases, neighbours(cases, book, held_out=held_out), options.seed)
    if options.nested and not held_out:
        report["nested"] = _scores(cases, _nested(cases, book), options.seed)
    print(json.dumps({**report, "held_out": held_out, "embedder": book.embedder.model_id}, ensure_ascii=False))


def _casebook(options: argparse.Namespace) -> Casebook:
    catalogue, embedder = load_catalogue(library_root()), open_embedder(options.embedder, cache=options.cache)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "field.db", writable=True)
        sync(store, embedder, library_root(), lambda stage, done, total: print(f"{stage} {done}/{total}", file=sys.stderr), catalogue)
        learnt = lessons(store, embedder, catalogue, load_vectors(store, embedder))
        records = [version.record for version in store.versions([row.id for row in store.summaries(kinds=("recipe",))]).values()]
        store.close()
    slugs = {tag.removeprefix(CASE_TAG): record.slug for record in records for tag in record.tags if tag.startswith(CASE_TAG)}
    return Casebook(catalogue, embedder, learnt, slugs)


def asked(case: Row, book: Casebook, weights: FieldWeights) -> AskedField:
    """The question of a case: what was seen, never why or what helped."""
    metrics = {name: str(value) for name, value in (case.get("metrics") or {}).items()}
    told = {name: case.get(name) or "" for name in ("symptom", "hardware", "model", "workload")}
    return read_field_question(FieldQuestion(metrics=metrics, **told), book.embedder, book.catalogue, weights)


def answers(cases: Sequence[Row], book: Casebook, weights: FieldWeights, *, held_out: bool) -> list[dict[str, Any]]:
    """A row for each case, from all that was learnt (``held_out``) or without the case's own recipe."""
    labels = json.loads(Path(__file__).with_name("taxonomy.json").read_text(encoding="utf-8"))
    rows = []
    for case, model in zip(cases, _models(cases, book, weights, held_out=held_out), strict=True):
        found = judge(model, asked(case, book, weights), weights)
        rows.append(
            {
                "id": case["id"],
                "causes": ranked(model.causes, found.probability.tolist(), labels["causes"]),
                "strategies": ranked(model.strategies, found.strategies.tolist(), labels["strategies"]),
            }
        )
    return rows


def _models(cases: Sequence[Row], book: Casebook, weights: FieldWeights, *, held_out: bool) -> Iterable[FieldModel]:
    known = book.lessons
    if held_out:
        return [fit_field(known, book.catalogue, weights)] * len(cases)
    groups = [_own(known.cases, book.slugs.get(case["id"], "")) for case in cases]
    return left_out(known, groups, book.catalogue, weights)


def _own(documents: Sequence[CaseDocument], slug: str) -> list[int]:
    return [place for place, document in enumerate(documents) if document.key.partition("#")[0] == slug]


def ranked(ids: Sequence[str], values: Sequence[float], labels: Mapping[str, str]) -> list[str]:
    """Labels by the sum of what their ids got, best first."""
    total: dict[str, float] = {}
    for name, value in zip(ids, values, strict=True):
        total[labels.get(name, name)] = total.get(labels.get(name, name), 0.0) + value
    return sorted(total, key=lambda label: -total[label])[:DEPTH]


def _scores(cases: Sequence[Row], rows: Sequence[Row], seed: int) -> dict[str, Any]:
    report: dict[str, Any] = {}
    if not all(TRUTH[kind] in case for kind in TRUTH for case in cases):
        return report  # cases without labels are answered, not judged
    for measure, (kind, depth) in MEASURES.items():
        right = [float(case[TRUTH[kind]] in row[kind][:depth]) for case, row in zip(cases, rows, strict=True)]
        report[measure], report[f"{measure}_interval95"] = round(float(np.mean(right)), 4), interval(right, seed)
    return report


def neighbours(cases: Sequence[Row], book: Casebook, *, held_out: bool) -> list[dict[str, Any]]:
    """TF-IDF cosine over the words of past cases; labels in the order of the neighbours that carry them."""
    documents = book.lessons.cases
    columns = {token: place for place, token in enumerate(sorted({token for document in documents for token in document.tokens}))}
    held = np.zeros((len(documents), len(columns)))
    for row, document in enumerate(documents):
        held[row, [columns[token] for token in document.tokens]] = 1.0
    weights = held * np.log((1 + len(documents)) / (1 + held.sum(axis=0)))
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    bare = msgspec.structs.replace(load_field_weights(), translation=0.0)
    rows = []
    for case in cases:
        own = set() if held_out else set(_own(documents, book.slugs.get(case["id"], "")))
        words = [columns[token] for token, weight in asked(case, book, bare).tokens.items() if weight and token in columns]
        order = [documents[place] for place in np.argsort(-weights[:, words].sum(axis=1), kind="stable") if place not in own]
        causes = dict.fromkeys(document.cause for document in order)
        strategies = dict.fromkeys(name for document in order for name, _ in document.tried)
        rows.append({"id": case["id"], "causes": list(causes)[:DEPTH], "strategies": list(strategies)[:DEPTH]})
    return rows


def _nested(cases: Sequence[Row], book: Casebook) -> list[Row]:
    """Each case answered with the weights that do best (causes in the first three, then first) on all other cases."""
    tried: list[tuple[Sequence[Row], np.ndarray[Any, Any]]] = []
    for values in itertools.product(*GRID.values()):
        print(f"nested {dict(zip(GRID, values, strict=True))}", file=sys.stderr)
        rows = answers(cases, book, msgspec.structs.replace(load_field_weights(), **dict(zip(GRID, values, strict=True))), held_out=False)
        good = [
            (case[TRUTH["causes"]] in row["causes"][:3]) + 0.1 * (case[TRUTH["causes"]] == row["causes"][0])
            for case, row in zip(cases, rows, strict=True)
        ]
        tried.append((rows, np.array(good)))
    return [max(tried, key=lambda setting: setting[1].sum() - setting[1][place])[0][place] for place in range(len(cases))]


if __name__ == "__main__":
    main()
