"""How alike two situations are: causes, model, phase, chip family, and metrics with their units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from kb.domain.case import Case, CaseContext, Why
from kb.domain.quantity import UNITS, Quantity
from kb.domain.record import Record
from kb.domain.soc import SocFamily
from kb.domain.text import Text
from kb.search.weights import Weights


def applicable(record: Record, families: Sequence[SocFamily]) -> bool:
    """Whether the record may be shown for chips of ``families`` (empty = any): it has a case of one of them or of an unknown
    family, or no case at all."""
    return not families or not record.cases or any(_fits(case, families) for case in record.cases)


def likeness(context: CaseContext | None, families: Sequence[SocFamily], record: Record, weights: Weights) -> tuple[Why, ...]:
    """The reasons of the record's most alike case, each with what it adds; features unknown on a side add nothing.

    ``families`` are the chips the answer is for; cases of another known family are passed over.
    """
    cases = [case for case in record.cases if _fits(case, families)]
    options = [(*_reasons(context, case, weights), *_soc(families, case.context.soc_family, weights)) for case in cases]
    return max(options, key=lambda reasons: sum(reason.contribution for reason in reasons), default=_soc(families, "unknown", weights))


def _fits(case: Case, families: Sequence[SocFamily]) -> bool:
    return not families or case.context.soc_family == "unknown" or case.context.soc_family in families


def _reasons(context: CaseContext | None, case: Case, weights: Weights) -> Iterator[Why]:
    if context is None:
        return
    other, worth = case.context, weights.structure
    yield from _causes(context, (case.cause, *other.causes), worth.causes)
    yield from _equal("model", Text(zh="同一模型", en="same model"), context.model, other.model, worth.model)
    yield from _equal("model_type", Text(zh="同类模型", en="same kind of model"), context.model_type, other.model_type, worth.model_type)
    yield from _equal("phase", Text(zh="同一阶段", en="same phase"), context.phase, other.phase, worth.phase)
    yield from _metrics(context, other, weights)


def _causes(context: CaseContext, theirs: Iterable[str], worth: float) -> Iterator[Why]:
    mine, other = set(context.causes), set(theirs)
    shared = sorted(mine & other)
    if shared:
        names = ", ".join(shared)
        yield Why(
            feature="causes",
            text=Text(zh=f"原因相同：{names}", en=f"same cause: {names}"),
            contribution=worth * len(shared) / len(mine | other),
        )


def _equal(feature: str, label: Text, mine: str | None, theirs: str | None, worth: float) -> Iterator[Why]:
    if mine and theirs and mine.casefold() == theirs.casefold():
        yield Why(feature=feature, text=Text(zh=f"{label.zh}：{theirs}", en=f"{label.en}: {theirs}"), contribution=worth)


def _metrics(context: CaseContext, other: CaseContext, weights: Weights) -> Iterator[Why]:
    shared = [
        name for name in sorted(context.metrics) if name in other.metrics and _same_dimension(context.metrics[name], other.metrics[name])
    ]
    for name in shared:
        mine, theirs = context.metrics[name], other.metrics[name]
        near = nearness(mine, theirs, weights.metric_span)
        if near > 0:
            pair = f"{name} {mine} / {theirs}"
            yield Why(feature=f"metric:{name}", text=Text(zh=f"指标相近：{pair}", en=f"near metric: {pair}"),
                      contribution=weights.structure.metrics * near / len(shared))  # fmt: skip


def _same_dimension(mine: Quantity, theirs: Quantity) -> bool:
    unknown = ("", 0.0)
    return UNITS.get(mine.unit, unknown)[0] == UNITS.get(theirs.unit, ("?", 0.0))[0]


def nearness(mine: Quantity, theirs: Quantity, span: float) -> float:
    """1 for equal values, falling with the logarithm of their ratio to 0 at a factor of ``span``; units are converted.
    Values of different sign, or one of them zero, are not alike."""
    here, there = mine.value, theirs.to(mine.unit)
    if here == there:
        return 1.0
    if here * there <= 0:
        return 0.0
    return max(0.0, 1.0 - abs(math.log(here / there)) / math.log(span))


def _soc(families: Sequence[SocFamily], family: SocFamily, weights: Weights) -> tuple[Why, ...]:
    """``family`` is one of ``families`` or unknown: others were left out by ``applicable``."""
    if not families:
        return ()
    asked = ", ".join(families)
    if family in families:
        text, worth = Text(zh=f"芯片系列相同：{family}", en=f"same chip family: {family}"), weights.structure.soc_same
    else:
        text = Text(zh=f"案例未写明芯片系列（所问为 {asked}），已降权", en=f"the case names no chip family (asked for {asked}): discounted")
        worth = weights.soc_unknown
    return (Why(feature="soc", text=text, contribution=worth),)
