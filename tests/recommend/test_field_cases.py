"""The real field cases, each answered without its own recipe: words alone must beat the nearest neighbour by far.

Vectors add about ten points (``benchmarks/recommend_field.py``); they cost too much time for the suite.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.judging import lines
from benchmarks.recommend_field import Casebook, answers, neighbours
from kb.library.catalogue import load_catalogue
from kb.library.records import read_records
from kb.recommend.field.documents import Lessons, case_documents, cause_document, is_field_case
from kb.recommend.field.weights import load_field_weights

_NO_VECTORS = np.zeros((0, 1), np.float32)


class Mute:
    """An embedder that says nothing."""

    name, dim, model_id = "mute", 1, "mute"

    def encode_query(self, text: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        return np.zeros(1, np.float32)

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        return np.zeros((len(texts), 1), np.float32)


@pytest.fixture(scope="module")
def book(checkout: Path) -> Casebook:
    catalogue = load_catalogue(checkout)
    records = [own for own in read_records(checkout) if is_field_case(own)]
    definitions = tuple(cause_document(cause, catalogue, np.zeros((1, 1), np.float32)) for cause in catalogue.causes.values())
    cases = tuple(document for own in records for document in case_documents(own, (), _NO_VECTORS, catalogue))
    slugs = {tag.removeprefix("case:"): own.slug for own in records for tag in own.tags if tag.startswith("case:")}
    return Casebook(catalogue, Mute(), Lessons(definitions, cases), slugs)


def test_causes_and_strategies_of_real_cases_are_found_from_words(shared: Path, book: Casebook) -> None:
    cases = lines(shared / "data/cases/field_cases.jsonl")
    rows, nearest = answers(cases, book, load_field_weights(), held_out=False), neighbours(cases, book, held_out=False)
    assert [row["id"] for row in rows] == [case["id"] for case in cases]
    causes, strategies = (np.mean([case[label] in row[kind][:3] for case, row in zip(cases, rows, strict=True)])
                          for kind, label in (("causes", "root_cause_label"), ("strategies", "strategy_label")))  # fmt: skip
    baseline = np.mean([case["root_cause_label"] in row["causes"][:3] for case, row in zip(cases, nearest, strict=True)])
    assert causes >= 0.60
    assert strategies >= 0.50
    assert causes > baseline + 0.05


def test_every_label_is_one_of_the_taxonomy(shared: Path, book: Casebook) -> None:
    cases = lines(shared / "data/cases/field_cases.jsonl")
    taxonomy = (shared / "data/cases/TAXONOMY.md").read_text(encoding="utf-8")
    row = answers(cases[:1], book, load_field_weights(), held_out=True)[0]
    assert all(label in taxonomy for label in (*row["causes"], *row["strategies"]))


def test_cases_without_labels_metrics_or_model_are_answered(book: Casebook) -> None:
    told = [
        {"id": "x", "symptom": "设备在等下一批样本，输入队列是空的", "metrics": None, "hardware": None, "model": None, "workload": None}
    ]
    row = answers(told, book, load_field_weights(), held_out=True)[0]
    assert "dataloader_bound" in row["causes"][:3]
