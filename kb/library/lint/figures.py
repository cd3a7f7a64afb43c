"""Checks of numbers: units that fit the metric, and percentages that follow from the figures beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kb.domain.case import Outcome
from kb.domain.catalogue import Catalogue
from kb.domain.quantity import UNITS, Quantity
from kb.library.lint.document import Document
from kb.library.lint.problem import Problem, problem
from kb.library.schema import Steps

_NUMBER: Final = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
# As people write a change: 620 to 422 ms (-32 %); 7.8 到 3.1 GB（-60 %）; 128 -> 486 images/s, +280 %.
_CHANGE = re.compile(
    rf"(?<![\d.,/-])(?P<before>{_NUMBER})\s?(?P<one>[A-Za-zµ/°]{{0,12}})\s?(?:to|->|→|到|降到|升到|变成)\s?"
    rf"(?P<after>{_NUMBER})\s?(?P<two>[\w/°]{{0,12}})\s?(?:[（(]|,\s|，)(?P<sign>[-+±]?)(?P<percent>{_NUMBER})\s?%"
)


def check_units(document: Document, catalogue: Catalogue) -> Iterator[Problem]:
    """Every quantity has a known unit of the dimension its metric has; both sides of an outcome agree."""
    for at, case in enumerate(document.record.cases):
        for name, quantity in case.context.metrics.items():
            yield from _fit(document, ("cases", at, "context", "metrics", name), name, quantity, catalogue)
        for nth, outcome in enumerate(case.outcomes):
            place: Steps = ("cases", at, "outcomes", nth)
            for side in ("before", "after"):
                quantity = getattr(outcome, side)
                if quantity is not None:
                    yield from _fit(document, (*place, side), outcome.metric, quantity, catalogue)
            yield from _direction(document, place, outcome, catalogue)


def _fit(document: Document, steps: Steps, name: str, quantity: Quantity, catalogue: Catalogue) -> Iterator[Problem]:
    line, unit = document.line_of(steps), quantity.unit
    if unit not in UNITS:
        yield problem(document.file, line, "unit", zh=f"没有单位 {unit!r}", en=f"no unit {unit!r}; allowed: {', '.join(UNITS)}")
        return
    metric = catalogue.metrics.get(name)
    if metric is not None and UNITS[metric.unit][0] != UNITS[unit][0]:
        wanted = UNITS[metric.unit][0]
        yield problem(document.file, line, "unit", zh=f"{name} 要用 {wanted} 的单位，不是 {unit}", en=f"{name} is a {wanted}, not {unit}")


def _direction(document: Document, steps: Steps, outcome: Outcome, catalogue: Catalogue) -> Iterator[Problem]:
    metric = catalogue.metrics.get(outcome.metric)
    if metric is not None and metric.better != "neither" and metric.better != outcome.better:
        yield problem(
            document.file,
            document.line_of(steps),
            "direction",
            zh=f"{outcome.metric} 的方向是 {metric.better}",
            en=f"{outcome.metric} is better {metric.better}, the outcome says {outcome.better}",
        )
    gain = outcome.gain_fraction
    if gain is not None and ((outcome.result == "improved" and gain <= 0) or (outcome.result == "worse" and gain >= 0)):
        yield problem(
            document.file,
            document.line_of(steps),
            "direction",
            zh=f"结果写 {outcome.result}，数字不支持",
            en=f"result {outcome.result}, but the figures say {-100 * gain:+.1f} %",
        )


def check_percentages(document: Document) -> Iterator[Problem]:
    """A percentage right behind "A to B" is the change from A to B, within the rounding of what is printed."""
    body = document.record.body
    for steps, text in (*document.texts(), (("body",), body)):
        for side in (text.zh, text.en):
            for found in _CHANGE.finditer(side):
                if not _follows(found):
                    line = document.line_with(found[0]) if steps == ("body",) else document.line_of(steps)
                    change = _change(found)
                    yield problem(
                        document.file, line, "percentage",
                        zh=f"{found[0]}：算出来是 {change:+.1f} %", en=f"{found[0]}: the figures give {change:+.1f} %",
                    )  # fmt: skip


def _change(found: re.Match[str]) -> float:
    before, after = (float(found[name].replace(",", "")) for name in ("before", "after"))
    return 100.0 * (after - before) / before if before else 0.0


def _follows(found: re.Match[str]) -> bool:
    one, two, after = found["one"], found["two"], float(found["after"].replace(",", ""))
    if not float(found["before"].replace(",", "")) or found["sign"] == "±" or (one and two and one != two):
        return True
    stated, change = float(found["percent"].replace(",", "")), _change(found)
    slack = 2 * 0.5 * 10.0 ** -len(found["percent"].partition(".")[2]) + _rounding(found["after"], after)
    if found["sign"]:
        return abs((-stated if found["sign"] == "-" else stated) - change) <= slack
    return abs(stated - abs(change)) <= slack


def _rounding(printed: str, value: float) -> float:
    """Percent points that half a unit of the last printed digit of ``value`` is worth."""
    return 100.0 * 0.5 * 10.0 ** -len(printed.partition(".")[2]) / value if value else 0.0
