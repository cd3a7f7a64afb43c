"""Job: causes and strategies for a problem told in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from kb.domain.case import CaseQuery
from kb.domain.catalogue import Catalogue, CauseId
from kb.domain.field import FieldAnswer, FieldQuestion
from kb.domain.protocols import Embedder, Store
from kb.domain.recommendation import Constraints
from kb.domain.soc import SocFamily
from kb.recommend.field.answering import field_answer
from kb.recommend.field.calibration import Calibration, read_calibration, shipped_calibration
from kb.recommend.field.documents import CaseDocument, Lessons, case_documents, cause_document, cause_texts, is_field_case
from kb.recommend.field.model import FieldModel, fit_field, judge
from kb.recommend.field.question import read_field_question
from kb.recommend.field.weights import load_field_weights
from kb.recommend.filters import exclusion
from kb.search.dense import VectorView
from kb.search.prepare import field_texts
from kb.search.query import search
from kb.workflow.casebook import Casebook
from kb.workflow.field_model import kept, model_key, remembered
from kb.workflow.search import version_of
from kb.workflow.search_data import current_corpus, current_vectors

CALIBRATION_FILE: Final = "field-calibration.json"
_SIMILAR: Final = 20


def lessons(store: Store, embedder: Embedder, catalogue: Catalogue, view: VectorView) -> Lessons:
    """Every field case the store shows, with the vectors it holds of the embedder's model, and the catalogue's causes."""
    causes = tuple(catalogue.causes.values())
    texts = [cause_texts(cause) for cause in causes]
    ends = np.cumsum([0, *map(len, texts)])
    vectors = embedder.encode_documents([text for own in texts for text in own])
    definitions = [cause_document(cause, catalogue, vectors[start:end]) for cause, (start, end) in zip(causes, pairwise(ends), strict=True)]
    return Lessons(tuple(definitions), tuple(_cases(store, catalogue, view)))


def _cases(store: Store, catalogue: Catalogue, view: VectorView) -> list[CaseDocument]:
    versions = store.versions([row.id for row in store.summaries()])
    found: list[CaseDocument] = []
    for row, version in versions.items():
        if is_field_case(version.record):
            fields, own = tuple(field_texts(version.record, catalogue)), view.rows_of(row)
            found += case_documents(version.record, fields if len(fields) == len(own) else (), own, catalogue)
    return found


def ask_field(casebook: Casebook, question: FieldQuestion, constraints: Constraints) -> FieldAnswer:
    """Likely causes of what ``question`` tells and what to try, within the constraints that need no profile.

    Raises UsageError for a question without a word.
    """
    weights, embedder, catalogue = load_field_weights(), casebook.embedder(), casebook.catalogue
    asked = read_field_question(question, embedder, catalogue, weights)
    view = current_vectors(casebook, embedder)
    evidence = judge(model := field_model(casebook, embedder, view), asked, weights)
    similar = _similar(casebook, question, embedder, view)
    family = constraints.soc_family or _named_family(question.hardware, catalogue)
    excluded = {name for name, entry in catalogue.strategies.items() if exclusion(entry, constraints, family, None) is not None}
    return field_answer(model, evidence, catalogue, current_calibration(casebook, embedder), tuple(similar), excluded)


def _named_family(hardware: str, catalogue: Catalogue) -> SocFamily:
    """The family of the first chip that the words name; unknown where they name none."""
    chips = (catalogue.known_soc(word) for word in _WORD.findall(hardware))
    return next((chip.family for chip in chips if chip is not None), "unknown")


_WORD: Final = re.compile(r"[A-Za-z0-9_-]+")


def _similar(casebook: Casebook, question: FieldQuestion, embedder: Embedder, view: VectorView) -> Iterator[tuple[CauseId, str]]:
    query = CaseQuery(text=question.words(), kinds=("recipe", "case"), limit=_SIMILAR)
    answer = search(query, store=casebook.store, embedder=embedder, catalogue=casebook.catalogue, vectors=view,
                    corpus=current_corpus(casebook))  # fmt: skip
    for hit in answer.hits:
        for case in version_of(casebook, hit).record.cases:
            yield case.cause, f"{hit.slug}@{hit.version}"


def field_model(casebook: Casebook, embedder: Embedder, view: VectorView) -> FieldModel:
    """The model of this casebook as it stands: from the workspace's cache where that is current, else fitted (about a second) and kept."""
    key = model_key(casebook.store, casebook.catalogue, embedder.model_id)
    found = remembered(casebook.workspace, key)
    if found is None:
        learnt = lessons(casebook.store, embedder, casebook.catalogue, view)
        found = fit_field(learnt, casebook.catalogue, load_field_weights())
        kept(casebook.workspace, key, found)
    return found


def current_calibration(casebook: Casebook, embedder: Embedder) -> Calibration | None:
    """The calibration that ``kb fit`` made in this workspace, else the shipped one; None where it was made with another embedder.

    Raises ContentError for a damaged file.
    """
    own = casebook.workspace.home / CALIBRATION_FILE
    found = read_calibration(own) if own.is_file() else shipped_calibration()
    return found if found.embedder == embedder.name else None
