from __future__ import annotations

from typing import Any

import pytest
from diagnose.factories import MS, TRACE_FILE, Kernel, made, view_of
from hypothesis import given
from hypothesis import strategies as st

from kb.diagnose.rules.pipeline_imbalance import pipeline_imbalance
from kb.diagnose.thresholds import load_thresholds
from kb.diagnose.view import cluster_view
from kb.domain.finding import Finding, Healthy, Judgement, NotJudged
from kb.session.meta import Group, Model, Parallel
from kb.session.session import Session

THRESHOLDS = load_thresholds()


def rank(number: int, stage: int | None, compute: int, *, waiting: int, exchanges: int = 0, **more: Any) -> Session:
    """A rank of an 800 ms step; ``exchanges`` batched send-receives share the waiting."""
    row = {"computing_ns": compute, "comm_not_overlapped_ns": waiting, "free_ns": 800 * MS - compute - waiting}
    names = [f"hcom_batchSendRecv__{place}" for place in range(exchanges)]
    described = {"world_size": 4, "parallel": Parallel(pipeline=2), **more}
    return made(
        name=f"rank_{number}", rank=number, stage=stage, trace=[row], exchanges=names, exchange_ns=waiting // max(exchanges, 1), **described
    )


def pair(light: int, heavy: int, *, waiting: int = 300 * MS, exchanges: int = 3, **more: Any) -> list[Session]:
    return [
        rank(0, 0, light, waiting=waiting, exchanges=exchanges, **more),
        rank(1, 1, heavy, waiting=60 * MS, exchanges=exchanges, **more),
    ]


HEAD = (("Exp", 200, 150), ("Cast", 350, 49), ("Abs", 399, 1))
"""What only the last stage runs: type, start and duration in ms."""


def staged(place: int, kernels: list[Kernel]) -> Session:
    """A rank whose 800 ms step computes 200 ms a stage number more than 200 ms, with its kernels."""
    compute = (200 + 200 * place) * MS
    totals = {"computing_ns": compute, "comm_not_overlapped_ns": 300 * MS, "free_ns": 500 * MS - compute}
    return made(rank=place, stage=place, kernels=kernels, trace=[totals], exchanges=["hcom_batchSendRecv"] * 3, exchange_ns=100 * MS)


def judged(sessions: list[Session]) -> Judgement:
    (judgement,) = pipeline_imbalance(cluster_view([view_of(session) for session in sessions]), THRESHOLDS)
    return judgement


def finding_of(sessions: list[Session]) -> Finding:
    judgement = judged(sessions)
    assert isinstance(judgement, Finding)
    return judgement


def test_the_bound_is_what_the_replay_saves_and_not_the_wait() -> None:
    finding = finding_of(pair(200 * MS, 400 * MS))
    # Two microbatches: 100 + 2 x 200 against 3 x 150 ms a step.
    assert finding.gain_bound_ns == 50 * MS
    assert finding.observed["microbatches"] == 2.0
    assert finding.observed["stage_compute_ratio"] == pytest.approx(2.0)
    # Idle of the light stage: 500 - 200 ms as it is, 450 - 300 ms with equal stages.
    assert finding.exposed_ns == 150 * MS
    assert finding.share == pytest.approx(150 / 800)
    assert (finding.priority, finding.scope, finding.where.stages) == ("P0", "cluster", (1,))


def test_neither_exposed_time_nor_bound_exceeds_the_waiting_seen() -> None:
    finding = finding_of(pair(200 * MS, 400 * MS, waiting=30 * MS))
    assert (finding.exposed_ns, finding.gain_bound_ns) == (30 * MS, 30 * MS)


def test_without_a_microbatch_count_the_limit_is_used_and_said() -> None:
    known, unknown = finding_of(pair(200 * MS, 400 * MS)), finding_of(pair(200 * MS, 400 * MS, exchanges=0))
    assert unknown.gain_bound_ns == 100 * MS
    assert unknown.confidence < known.confidence
    assert any("largest minus mean" in note.en for note in unknown.notes)
    assert any("cannot be told apart" in note.en for note in unknown.notes)


def test_separate_receives_count_the_microbatches_too() -> None:
    sessions = pair(200 * MS, 400 * MS, exchanges=0)
    names = ["hcom_receive_a", "hcom_send_a", "hcom_receive_b", "hcom_send_b"]
    totals = {"computing_ns": 200 * MS, "comm_not_overlapped_ns": 300 * MS, "free_ns": 300 * MS}
    first = made(name="rank_0", rank=0, stage=0, trace=[totals], exchanges=names, exchange_ns=75 * MS)
    assert finding_of([first, sessions[1]]).observed["microbatches"] == 2.0


def test_with_context_parallelism_exchanges_do_not_count_microbatches() -> None:
    finding = finding_of(pair(200 * MS, 400 * MS, parallel=Parallel(pipeline=2, context=2)))
    assert "microbatches" not in finding.observed


def test_a_heavy_first_stage_says_that_the_split_is_assumed() -> None:
    sessions = [rank(0, 0, 400 * MS, waiting=60 * MS, exchanges=4), rank(1, 1, 200 * MS, waiting=300 * MS, exchanges=4)]
    assert any("split between forward and backward" in note.en for note in finding_of(sessions).notes)
    assert not any("split between forward and backward" in note.en for note in finding_of(pair(200 * MS, 400 * MS)).notes)


def test_inference_pipelines_have_no_backward_pass() -> None:
    sessions = [
        rank(number, number, compute, waiting=300 * MS, exchanges=4, model=Model(phase="inference"))
        for number, compute in ((0, 400 * MS), (1, 200 * MS))
    ]
    assert not any("split" in note.en for note in finding_of(sessions).notes)


def test_ranks_are_compared_by_the_median_of_their_stage() -> None:
    extra = [rank(2, 0, 202 * MS, waiting=300 * MS, exchanges=3), rank(3, 1, 402 * MS, waiting=60 * MS, exchanges=3)]
    finding = finding_of([*pair(200 * MS, 400 * MS), *extra])
    assert finding.observed["stage_0_compute_ns"] == 201 * MS
    assert finding.where.ranks == (0, 1, 2, 3)


def test_evidence_cites_the_step_totals_of_every_rank_used() -> None:
    cited = finding_of(pair(200 * MS, 400 * MS)).evidence
    assert [(row.file, row.row, row.value, row.unit) for row in cited] == [
        (TRACE_FILE, 2, 200_000.0, "us"),
        (TRACE_FILE, 2, 400_000.0, "us"),
    ]


def test_the_gap_is_explained_by_the_kernels_of_the_heavy_stage() -> None:
    common = Kernel(op_type="MatMulV3", core="AI_CORE", start=0, duration=200 * MS, step="1")
    head = [Kernel(op_type=name, start=start * MS, duration=size * MS, step="1") for name, start, size in HEAD]
    with_kernels = [staged(0, [common]), staged(1, [common, *head])]
    finding = finding_of(with_kernels)
    assert finding.where.operators == ("Exp", "Cast")
    assert [(row.row, row.value) for row in finding.evidence[2:]] == [(3, 150_000.0), (4, 49_000.0)]


def test_uneven_stages_that_cost_nothing_are_healthy() -> None:
    # With the heavy stage first and two microbatches the schedule hides the difference.
    sessions = [rank(0, 0, 300 * MS, waiting=100 * MS, exchanges=3), rank(1, 1, 200 * MS, waiting=300 * MS, exchanges=3)]
    check = {"forward_share_low": 0.25, "forward_share_usual": 0.25, "forward_share_high": 0.25}
    (judgement,) = pipeline_imbalance(cluster_view([view_of(session) for session in sessions]), THRESHOLDS.overridden(check))
    assert isinstance(judgement, Healthy)
    assert "saves nothing" in judgement.message.en


def test_equal_stages_are_healthy_whatever_the_bubble() -> None:
    judgement = judged(pair(390 * MS, 400 * MS))
    assert isinstance(judgement, Healthy)
    assert judgement.value == pytest.approx(400 / 395)
    assert len(judgement.evidence) == 2


@pytest.mark.parametrize(
    ("sessions", "phrase"),
    [
        ([rank(0, 0, 200 * MS, waiting=0)], "only one stage was captured"),
        ([rank(0, None, 200 * MS, waiting=0), rank(1, None, 200 * MS, waiting=0)], "stage of the ranks is unknown"),
        ([rank(0, 0, 200 * MS, waiting=0, parallel=Parallel(pipeline=1))], "no pipeline parallelism"),
    ],
)
def test_fewer_than_two_stages_are_not_judged_and_the_captured_ranks_are_named(sessions: list[Session], phrase: str) -> None:
    judgement = judged(sessions)
    assert isinstance(judgement, NotJudged)
    assert phrase in judgement.reason.en
    assert "captured ranks: 0" in judgement.reason.en
    assert "(of 4)" in judgement.reason.en


def test_missing_stages_are_said_and_lower_the_confidence() -> None:
    part, whole = (finding_of(pair(200 * MS, 400 * MS, parallel=Parallel(pipeline=stages))) for stages in (4, 2))
    assert part.confidence < whole.confidence
    assert any("stages: 0, 1 (of 4)" in note.en for note in part.notes)
    assert "microbatches" not in part.observed


def test_a_rank_in_a_pipeline_group_knows_its_stage() -> None:
    group = Group(name="pp0", dimension="pp", ranks=(0, 2))
    sessions = [
        rank(number, None, compute, waiting=300 * MS, exchanges=3, parallel=Parallel(pipeline=2, groups=(group,)))
        for number, compute in ((0, 200 * MS), (2, 400 * MS))
    ]
    assert finding_of(sessions).where.stages == (1,)


def test_ranks_whose_books_do_not_balance_are_left_out() -> None:
    broken = made(rank=1, stage=1, trace=[{"computing_ns": 400 * MS, "stage_ns": 900 * MS}])
    assert isinstance(judged([rank(0, 0, 200 * MS, waiting=0), broken]), NotJudged)


@given(
    st.lists(st.integers(1, 700), min_size=2, max_size=5),
    st.integers(0, 100),
    st.integers(0, 12),
)
def test_the_bound_never_exceeds_exposed_time_and_that_never_the_waiting(computes: list[int], waiting: int, exchanges: int) -> None:
    sessions = [
        rank(place, place, compute * MS, waiting=waiting * MS, exchanges=exchanges, parallel=Parallel(pipeline=len(computes)))
        for place, compute in enumerate(computes)
    ]
    judgement = judged(sessions)
    if isinstance(judgement, Finding):
        assert 0 <= judgement.gain_bound_ns <= judgement.exposed_ns <= waiting * MS
        assert judgement.share <= 1.0


def test_a_job_on_one_device_has_no_pipeline() -> None:
    alone = judged([rank(0, None, 200 * MS, waiting=0, world_size=1, parallel=Parallel())])
    assert isinstance(alone, NotJudged)
    assert "no pipeline" in alone.reason.en
    assert alone.capture.en == ""
