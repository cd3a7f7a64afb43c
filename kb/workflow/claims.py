"""Whether a record's cases can be used: known ids, figures that fit each other, both languages."""

from __future__ import annotations

from collections.abc import Iterator

from kb.domain.case import Case, Outcome
from kb.domain.catalogue import Catalogue
from kb.domain.quantity import Quantity, dimension
from kb.domain.record import Record
from kb.errors import ContentError, KbError


def checked_claims(record: Record, catalogue: Catalogue) -> Record:
    """``record`` itself, or ContentError naming every fault: an unusable case would break each command that reads it."""
    faults = [*_language_faults(record)]
    for place, case in enumerate(record.cases):
        faults += [f"cases[{place}]: {fault}" for fault in _case_faults(case, catalogue)]
    if faults:
        allowed = "catalogue ids, quantities of one dimension above zero, a result that fits its figures, text in both languages"
        raise ContentError(
            f"record {record.slug}: {'; '.join(faults)}", allowed=allowed, do="correct the record; kb lint FILE names the lines"
        )
    return record


def _language_faults(record: Record) -> Iterator[str]:
    for name in ("title", "summary"):
        text = getattr(record, name)
        if not (text.zh.strip() and text.en.strip()):
            yield f"{name} lacks {'Chinese' if not text.zh.strip() else 'English'}"


def _case_faults(case: Case, catalogue: Catalogue) -> Iterator[str]:
    if case.cause not in catalogue.causes:
        yield f"unknown cause {case.cause!r}"
    for name, quantity in case.context.metrics.items():
        yield from _unit_faults(name, quantity)
    for outcome in case.outcomes:
        if outcome.strategy not in catalogue.strategies:
            yield f"unknown strategy {outcome.strategy!r}"
        yield from (f"{outcome.strategy}: {fault}" for fault in _outcome_faults(outcome))


def _outcome_faults(outcome: Outcome) -> Iterator[str]:
    sides = [quantity for quantity in (outcome.before, outcome.after) if quantity is not None]
    broken = [fault for quantity in sides for fault in _unit_faults(outcome.metric, quantity)]
    yield from broken
    if broken:
        return
    if len({dimension(quantity.unit)[0] for quantity in sides}) > 1:
        yield f"before is in {sides[0].unit}, after in {sides[1].unit}"
    if any(quantity.value < 0 for quantity in sides):
        yield "a figure below zero"
    gain = outcome.gain_fraction
    if gain is not None and ((outcome.result == "improved" and gain < 0) or (outcome.result == "worse" and gain > 0)):
        yield f"result {outcome.result!r}, but {outcome.metric} goes from {outcome.before} to {outcome.after}"
    if outcome.share is not None and not 0 <= outcome.share <= 1:
        yield f"share {outcome.share} is not within 0..1"


def _unit_faults(name: str, quantity: Quantity) -> Iterator[str]:
    try:
        dimension(quantity.unit)
    except KbError as error:
        yield f"{name}: {error.what}"
