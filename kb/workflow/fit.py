"""Job: fit again, on this workspace's casebook, what the recommender learns from past cases."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kb.domain.protocols import Progress
from kb.errors import NotFoundError, StoreError
from kb.files import write_whole
from kb.recommend.field.calibration import Calibration
from kb.recommend.field.documents import is_field_case
from kb.recommend.field.question import read_field_question
from kb.recommend.field.trial import Asked, calibrated, questions_of
from kb.recommend.field.weights import load_field_weights
from kb.search.dense import load_vectors
from kb.workflow.casebook import Casebook
from kb.workflow.field import CALIBRATION_FILE, lessons


def fit_field_calibration(casebook: Casebook, progress: Progress) -> Calibration:
    """The calibration of the field recommender on this casebook, every case asked without the cases of its own source.

    Raises NotFoundError when the casebook holds no case told in words.
    """
    weights, embedder, catalogue = load_field_weights(), casebook.embedder(), casebook.catalogue
    learnt = lessons(casebook.store, embedder, catalogue, load_vectors(casebook.store, embedder, casebook.workspace.vectors))
    sources = {document.key: document.source for document in learnt.cases}
    versions = casebook.store.versions([row.id for row in casebook.store.summaries()])
    asked = [
        Asked(sources[record.slug], record.cases[0].cause, read_field_question(question, embedder, catalogue, weights))
        for record in (version.record for version in versions.values())
        if record.slug in sources and is_field_case(record)
        for question in questions_of(record.cases[0])
    ]
    if not asked:
        raise NotFoundError("the casebook holds no case told in words", do="publish recipes with symptoms, or keep the shipped calibration")
    return calibrated(learnt, asked, catalogue, weights, progress, embedder)


def keep_calibration(casebook: Casebook, calibration: Calibration, path: Path | None = None) -> Path:
    """Write the calibration to ``path``, else where ``kb recommend`` finds it in this workspace. Raises StoreError when that fails."""
    place = path or casebook.workspace.home / CALIBRATION_FILE
    try:
        write_whole(place, [msgspec.json.format(msgspec.json.encode(calibration)), b"\n"])
    except OSError as error:
        raise StoreError(f"cannot write {place}: {error.strerror}", do="free space or choose another folder") from error
    return place
