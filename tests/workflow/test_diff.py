"""What the diff says: fields, items, units, prose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from workflow.bench import record, with_gain

from kb.domain.case import Case, CaseContext
from kb.domain.quantity import Quantity
from kb.domain.record import Record, Source
from kb.domain.text import Text
from kb.workflow.diff import Change, diff_records


def told(before: Record, after: Record) -> list[tuple[str, str]]:
    return [(change.kind, change.path) for change in diff_records(before, after)]


def context(metric: Quantity | None) -> Record:
    metrics = {} if metric is None else {"latency": metric}
    return record(cases=(Case(cause="unfused_attention", context=CaseContext(metrics=metrics)),))


PATH = "cases[unfused_attention].context.metrics.latency"


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (Quantity(1520, "ms"), Quantity(1.52, "s"), "respelled"),
        (Quantity(41, "%"), Quantity(0.41, "ratio"), "respelled"),
        (Quantity(1520, "ms"), Quantity(1.53, "s"), "changed"),
        (Quantity(10, "ms"), Quantity(10, "GB"), "changed"),
        (None, Quantity(10, "ms"), "added"),
        (Quantity(10, "ms"), None, "removed"),
    ],
)
def test_quantities_are_compared_with_their_units(before: Quantity | None, after: Quantity | None, kind: str) -> None:
    assert told(context(before), context(after)) == [(kind, PATH)]


def test_a_changed_figure_says_by_how_much() -> None:
    (change,) = diff_records(with_gain("a", 100.0, 80.0), with_gain("a", 100.0, 60.0))
    assert change == Change(
        path="cases[unfused_attention].outcomes[use_fused_attention/step_time].after", kind="changed", before="80 ms", after="60 ms (-25 %)"
    )


def test_prose_is_compared_by_line_and_language() -> None:
    before = record(body=Text("甲\n乙\n丙", "one\ntwo\nthree"))
    (change,) = diff_records(before, replace(before, body=Text("甲\n乙\n丙", "one\n2\nthree")))
    assert (change.path, [line for line in change.lines if line[0] in "+-"]) == ("body.en", ["-two", "+2"])


def test_list_items_are_matched_whatever_their_order() -> None:
    before = record(tags=("a", "b", "c"), sources=(Source(title="one", url="https://x"), Source(title="two")))
    after = replace(before, tags=("c", "a", "d"), sources=(Source(title="two"), Source(title="One", url="https://x")))
    assert told(before, after) == [
        ("removed", "tags[b]"),
        ("added", "tags[d]"),
        ("moved", "tags"),
        ("changed", "sources[https://x].title"),
        ("moved", "sources"),
    ]


def test_an_edited_pitfall_is_an_edit_and_another_is_another() -> None:
    before = record(pitfalls=(Text("不要改模型", "do not change the model"), Text("甲", "first")))
    after = replace(before, pitfalls=(Text("不要改模型", "do not change your model"), Text("乙", "something else")))
    assert told(before, after) == [
        ("changed", "pitfalls[do not change the model].en"),
        ("removed", "pitfalls[first]"),
        ("added", "pitfalls[something else]"),
    ]


@given(tags=st.lists(st.sampled_from("abcdef"), unique=True), other=st.lists(st.sampled_from("abcdef"), unique=True))
def test_no_difference_means_equal_and_the_other_way_round(tags: list[str], other: list[str]) -> None:
    first, second = record(tags=tuple(tags)), record(tags=tuple(other))
    assert (diff_records(first, second) == ()) == (first == second)
    there, back = told(first, second), told(second, first)
    assert sum(kind == "added" for kind, _ in there) == sum(kind == "removed" for kind, _ in back)
