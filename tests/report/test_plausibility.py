"""A saved diagnosis is believed only when its numbers can be true."""

from __future__ import annotations

import json
from typing import Any

import pytest
from report.samples import diagnosis

from kb.errors import MalformedInputError
from kb.report.payload import diagnosis_payload
from kb.report.plausibility import impossibilities
from kb.report.reading import diagnosis_in


def saved() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(diagnosis_payload(diagnosis())))
    return made


def numbers(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    """Every number of a document with its place."""
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in numbers(item, (*path, key))]
    if isinstance(value, list):
        return [found for place, item in enumerate(value) for found in numbers(item, (*path, place))]
    return [(path, value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


def put(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> None:
    target: Any = document
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value


SIGNED = {"observed", "healthy", "value"}
"""Metrics and cells may be below zero; only what is a time, a share or an index may not."""


def test_ours_has_nothing_impossible() -> None:
    assert list(impossibilities(diagnosis())) == []


def test_each_number_alone_below_zero_is_noticed() -> None:
    places = [path for path, _ in numbers(saved()) if not SIGNED & set(path[1:][-2:])]
    assert len(places) > 10
    for path in places:
        document = saved()
        put(document, path, -1)
        with pytest.raises(MalformedInputError, match=r"true|saved diagnosis"):
            diagnosis_in(document, source=str(path))


@pytest.mark.parametrize("key", ["share", "confidence"])
def test_shares_stay_within_one(key: str) -> None:
    places = [path for path, _ in numbers(saved()) if path[-1] == key]
    assert places
    for path in places:
        document = saved()
        put(document, path, 1.5)
        with pytest.raises(MalformedInputError, match=r"within 0\.\.1"):
            diagnosis_in(document, source="d.json")


def test_parts_that_do_not_add_up_need_the_diagnosis_to_say_so() -> None:
    document = saved()
    session = next(item for item in document["sessions"] if item["step_ns"])
    session["accounting_ns"]["idle_unknown"] += session["step_ns"]
    with pytest.raises(MalformedInputError, match="add up"):
        diagnosis_in(document, source="d.json")
    session["violations"] = ["the parts are 100 % off"]
    assert diagnosis_in(document, source="d.json").sessions[0].violations == ("the parts are 100 % off",)
