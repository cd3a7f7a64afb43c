"""Drawings are well-formed whatever they are asked to draw."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report.test_archive import HOSTILE

from kb.report.figures import (
    Bar,
    BeforeAfter,
    Bin,
    Breakdown,
    Bubble,
    Chart,
    Curves,
    Dot,
    FlameGraph,
    Frame,
    HeatMap,
    Lane,
    Node,
    Pair,
    Reliability,
    Roofline,
    Segment,
    Series,
    Timeline,
    Tree,
)
from kb.report.labels import labels
from kb.report.svg.axes import Scale, decades, ticks
from kb.report.svg.canvas import advance, fitted
from kb.report.svg.drawing import draw
from kb.report.wording import chart_in_words


def _charts(text: str) -> list[Chart]:
    lane = Lane(text, (0, 50, 900), (40, 1, 100), (0, 0, 0), (0, 0, 0), (1, 1, 1))
    return [
        Breakdown((Bar(text, 100, (Segment(text, "cube", 60), Segment("b", "idle", 40))),)),
        Breakdown((Bar(text, 0, ()), Bar("b", 10, (Segment(text, "idle", 10),)))),
        FlameGraph(Frame(text, 100, "accent", 3, (Frame(text, 60, "cube", 2), Frame(text, 40, "idle")))),
        FlameGraph(Frame(text, 0, "accent")),
        Timeline(1000, (text,), ("cube",), (lane,), (Bubble(100, 50, text, text, text),), 3),
        HeatMap((text,), (text, "b"), ((0.5, None),), ((text, "-"),)),
        Curves("ms", text, (Series(text, "cube", (0.0, 1.0), (1.0, 3.0)),), filled=True),
        Curves("ms", "MiB", ()),
        Tree((text, text), (Node(text, text, "bad", 0.5, (Node(text), Node(text, children=(Node(text),)))),)),
        Tree((), ()),
        Roofline(3e14, 1.6e12, (Dot(text, 60.0, 7e13, 0.15), Dot("b", 0.01, 1e9, 0.01)), text),
        BeforeAfter(text, "b", (Pair(text, 10, 8, (7, 9)), Pair("b", 0, 0))),
        Reliability((Bin(0.7, 0.6, 10),), 0.1),
        Reliability((), 0.0),
    ]


@pytest.mark.parametrize("text", ["name", HOSTILE, "", "中文" * 200, "😀" * 50])
def test_every_chart_is_well_formed_and_named(text: str) -> None:
    for chart in _charts(text):
        root = ElementTree.fromstring(draw(chart, text))
        assert root.tag.endswith("svg")
        assert {element.tag.split("}")[1] for element in root.iter()} <= {"svg", "rect", "text", "title", "line", "path", "circle"}


@pytest.mark.parametrize("text", ["name", HOSTILE])
def test_every_chart_has_its_content_in_words(text: str) -> None:
    for chart in _charts(text):
        assert all(type(block).__name__ in ("TableBlock", "Bullets") for block in chart_in_words(chart, labels("en")))


def test_marks_carry_the_whole_value_on_hover() -> None:
    drawn = draw(FlameGraph(Frame("step", 2_000_000, "accent", 3, (Frame("Softmax", 500_000, "vector", 2),))), "flame")
    assert "Softmax: 500.0 us = 25.0 % · 2x" in drawn


@given(st.text(max_size=50), st.floats(0, 500), st.floats(8, 20))
def test_fitted_text_fits(text: str, room: float, size: float) -> None:
    assert advance(fitted(text, room, size)) * size <= room + 1e-6


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e9))
def test_ticks_lie_inside_and_are_few(low: float, span: float) -> None:
    found = ticks(low, low + span)
    assert 1 <= len(found) <= 7
    assert all(low - span * 1e-6 <= value <= low + span * (1 + 1e-6) for value in found)


def test_a_logarithmic_scale_puts_decades_at_equal_distances() -> None:
    scale = Scale(1, 1000, 0, 300, log=True)
    assert [round(scale(value)) for value in decades(1, 1000)] == [0, 100, 200, 300]
