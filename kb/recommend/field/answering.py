"""The answer to a question in words: calibrated causes, strategies that the constraints allow, and the cases behind them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final

import numpy as np

from kb.domain.catalogue import Catalogue, CauseId, StrategyId
from kb.domain.field import FieldAnswer, FieldCause, FieldStrategy
from kb.domain.text import Text
from kb.recommend.field.calibration import Calibration
from kb.recommend.field.model import FieldEvidence, FieldModel

CAUSES: Final = 5
STRATEGIES: Final = 6
_RECORDS: Final = 3


def field_answer(model: FieldModel, evidence: FieldEvidence, catalogue: Catalogue, calibration: Calibration | None,
                 similar: Sequence[tuple[CauseId, str]], excluded: Container[StrategyId]) -> FieldAnswer:  # fmt: skip
    """``similar`` are past cases (cause, slug@n), most similar first; strategies in ``excluded`` are left out.

    Without a calibration the probabilities are the model's own, and the answer says so.
    """
    records: dict[CauseId, list[str]] = {}
    for cause, ref in similar:
        records.setdefault(cause, []).append(ref)
    return FieldAnswer(
        causes=tuple(_cause(model, evidence, place, calibration, records) for place in _best(evidence.probability, CAUSES)),
        strategies=tuple(_strategies(model, evidence, excluded)),
        cases=model.cases,
        calibrated_on=calibration.cases if calibration is not None else 0,
        notes=(*_thin(model), *_uncalibrated(calibration), *_method(model, evidence, catalogue)),
    )


def _best(values: np.ndarray[tuple[int], np.dtype[np.float64]], count: int) -> list[int]:
    order: list[int] = np.argsort(-values, kind="stable")[:count].tolist()
    return order


def _cause(model: FieldModel, evidence: FieldEvidence, place: int, calibration: Calibration | None,
           records: Mapping[CauseId, Sequence[str]]) -> FieldCause:  # fmt: skip
    score = float(evidence.probability[place])
    return FieldCause(
        id=model.causes[place],
        probability=calibration(score) if calibration is not None else score,
        words=evidence.spoken[place],
        records=tuple(dict.fromkeys(records.get(model.causes[place], ())))[:_RECORDS],
    )


def _strategies(model: FieldModel, evidence: FieldEvidence, excluded: Container[StrategyId]) -> list[FieldStrategy]:
    found: list[FieldStrategy] = []
    for place in _best(evidence.strategies, len(model.strategies)):
        if len(found) < STRATEGIES and evidence.strategies[place] > 0 and model.strategies[place] not in excluded:
            tried, worked = (int(count) for count in model.outcomes[place])
            found.append(
                FieldStrategy(
                    id=model.strategies[place],
                    probability=float(evidence.strategies[place]),
                    cause=evidence.speakers[place],
                    tried=tried,
                    worked=worked,
                )
            )
    return found


def _thin(model: FieldModel) -> tuple[Text, ...]:
    if model.cases:
        return ()
    return (
        Text(
            zh="案例库中没有用文字描述的案例：只依据目录中的定义",
            en="the casebook holds no case told in words: definitions of the catalogue only",
        ),
    )


def _uncalibrated(calibration: Calibration | None) -> tuple[Text, ...]:
    if calibration is not None:
        return ()
    return (Text(zh="概率未校准；运行 kb fit", en="the probabilities are not calibrated; run kb fit"),)


def _method(model: FieldModel, evidence: FieldEvidence, catalogue: Catalogue) -> tuple[Text, ...]:
    """Causes that no profile shows are named as such: the next step is an experiment, not a capture."""
    best = model.causes[_best(evidence.probability, 1)[0]]
    if catalogue.causes[best].observable:
        return (
            Text(
                zh="这是根据文字的猜测；采集一次性能数据再用 kb diagnose 确认",
                en="a guess from words: capture a profile and confirm it with kb diagnose",
            ),
        )
    return (
        Text(
            zh="最可能的原因在性能数据里看不到，需要做对照实验",
            en="the likeliest cause does not show in a profile: it needs a controlled experiment",
        ),
    )
