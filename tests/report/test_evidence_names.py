"""Evidence is named in the reader's language, whatever rule cites it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report.samples import CATALOGUE

from kb.report.evidence_names import evidence_name, observed_name
from kb.report.labels import labels
from kb.report.story.names import metric_name


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("idle before this task", "此任务之前的空闲"),
        ("Duration of MatMulV3", "MatMulV3 的时长"),
        ("Duration of Cast, longest of 9 on rank 3; together 9.9 us more than on the lightest stage",
         "Cast 的时长（rank 3 上 9 个中最长；合计比最轻的阶段多 9.9 us）"),
        ("rate of link 0-3 over the median of its transport", "链路 0-3 的速率与同类链路中位数之比"),
        ("something a rule of tomorrow cites", "something a rule of tomorrow cites"),
    ],
)  # fmt: skip
def test_cited_cells(english: str, chinese: str) -> None:
    assert evidence_name(english, "en") == english
    assert evidence_name(english, "zh") == chinese


def test_the_unit_of_the_id_is_no_part_of_the_name() -> None:
    assert metric_name("waiting_ns", CATALOGUE, labels("en")) == "waiting"
    assert metric_name("waiting_ns", CATALOGUE, labels("zh")) == "等待时间"
    assert observed_name("stage_1_compute_ns", "zh") == "阶段 1 的计算时间"


@given(st.text(max_size=80))
def test_any_name_gives_a_name(metric: str) -> None:
    assert evidence_name(metric, "en") == metric
    assert isinstance(evidence_name(f"Duration of {metric}", "zh"), str)
    assert isinstance(observed_name(metric, "zh"), str)
