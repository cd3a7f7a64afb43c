"""How right the field recommender is on cases it never saw: each case of the casebook asked again without what its source taught."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kb.domain.case import Case
from kb.domain.catalogue import Catalogue, CauseId
from kb.domain.field import FieldQuestion
from kb.domain.protocols import Embedder, Progress
from kb.domain.text import LANGS
from kb.recommend.field.calibration import Calibration, breakpoints, calibration_error, crossed, reliability
from kb.recommend.field.documents import Lessons
from kb.recommend.field.model import AskedField, judge, left_out
from kb.recommend.field.weights import FieldWeights

FOLDS: Final = 10
JUDGED: Final = 5
"""Causes of each answer that count: those that are shown."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question whose answer is known. ``source`` is that of the case it was made of."""

    source: str
    cause: CauseId
    question: AskedField


def questions_of(case: Case) -> Iterator[FieldQuestion]:
    """The case as somebody would ask it, once in each language: what was seen and where, not why."""
    context = case.context
    metrics = {name: f"{quantity.value:g} {quantity.unit}" for name, quantity in context.metrics.items()}
    for lang in LANGS:
        seen = [text.zh if lang == "zh" else text.en for text in (case.finding, *case.symptoms)]
        if any(seen):
            yield FieldQuestion(
                symptom=" ".join(filter(None, seen)),
                metrics=metrics,
                hardware=context.soc or "",
                model=" ".join(filter(None, (context.model, context.model_type))),
                workload=context.phase or "",
            )


def calibrated(
    lessons: Lessons, asked: Sequence[Asked], catalogue: Catalogue, weights: FieldWeights, progress: Progress, embedder: Embedder
) -> Calibration:
    """The calibration of the causes' probabilities by leave-one-source-out.

    ``asked`` must not be empty; ``progress`` is told the sources done.
    """
    places: dict[str, list[int]] = {}
    for place, document in enumerate(lessons.cases):
        places.setdefault(document.source, []).append(place)
    sources = [source for source in dict.fromkeys(item.source for item in asked) if source in places]
    scores, right, folds = list[float](), list[bool](), list[int]()
    models = left_out(lessons, [places[source] for source in sources], catalogue, weights)
    for number, (source, model) in enumerate(zip(sources, models, strict=True)):
        progress("calibration", number, len(sources))
        for item in (item for item in asked if item.source == source):
            probability = judge(model, item.question, weights).probability
            for best in np.argsort(-probability, kind="stable")[:JUDGED].tolist():
                scores.append(float(probability[best]))
                right.append(model.causes[best] == item.cause)
                folds.append(number % FOLDS)
    progress("calibration", len(sources), len(sources))
    knots, rates = breakpoints(scores, right)
    diagram = reliability(crossed(scores, right, folds), right)
    return Calibration(
        scores=knots,
        probabilities=rates,
        cases=len(lessons.cases),
        groups=len(sources),
        fingerprint=_fingerprint(lessons, embedder.model_id),
        embedder=embedder.name,
        error=calibration_error(diagram),
        raw_error=calibration_error(reliability(scores, right)),
        diagram=diagram,
    )


def _fingerprint(lessons: Lessons, model_id: str) -> str:
    """64 hex digits over which cases were learnt from and with which embedder."""
    keys: Mapping[str, CauseId] = {document.key: document.cause for document in lessons.cases}
    return hashlib.sha256("\n".join((model_id, *(f"{key} {keys[key]}" for key in sorted(keys)))).encode()).hexdigest()
