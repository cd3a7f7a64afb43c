"""The published profiles: known numbers, known causes, evidence that can be looked up."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from diagnose.factories import SHIPPED

from kb.compare.comparison import compare
from kb.diagnose.diagnosis import diagnose
from kb.domain.accounting import TOLERANCE
from kb.domain.diagnosis import Diagnosis, SessionDiagnosis
from kb.domain.finding import Evidence, Finding
from kb.profile.sources import load

MS = 1_000_000


@pytest.fixture(scope="module")
def ascend(shared: Path) -> Path:
    return shared / "data" / "profiles" / "ascend"


@pytest.fixture(scope="module")
def qwen3(ascend: Path) -> Path:
    return ascend / "qwen3-0.6b-train-pp2-dp2"


@pytest.fixture(scope="module")
def diagnosis(qwen3: Path) -> Diagnosis:
    return diagnose(load(qwen3), SHIPPED)


def totals(root: Path, session: SessionDiagnosis) -> dict[str, float]:
    """The exporter's own row of a rank, us."""
    (path,) = root.glob(f"*rank*{session.rank}_ascend_pt/ASCEND_PROFILER_OUTPUT/step_trace_time.csv")
    (row,) = csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines())
    return {name: float(value) for name, value in row.items() if value and name != "Step"}


def check_books(root: Path, session: SessionDiagnosis) -> None:
    row, books = totals(root, session), session.accounting
    step = (row["Stage"] + row["Bubble"]) * 1e3
    assert abs(sum(books.parts.values()) - step) <= TOLERANCE * step
    assert books.imbalance_ns == 0
    assert books.parts["compute"] == pytest.approx(row["Computing"] * 1e3, abs=1)
    assert books.parts["comm_exposed"] == pytest.approx((row["Communication(Not Overlapped)"] - row["Bubble"]) * 1e3, abs=1)
    assert books.preparing_ns == pytest.approx(row["Preparing"] * 1e3, abs=1)


def cell(root: Path, cited: Evidence, column: str) -> float:
    assert isinstance(cited.row, int)
    rows = list(csv.reader((root / cited.file).read_text(encoding="utf-8-sig").splitlines()))
    return float(rows[cited.row - 1][rows[0].index(column)])


def test_the_books_of_all_four_ranks_are_the_exporters(qwen3: Path, diagnosis: Diagnosis) -> None:
    assert [(session.rank, session.stage) for session in diagnosis.sessions] == [(0, 0), (1, 0), (2, 1), (3, 1)]
    for session in diagnosis.sessions:
        check_books(qwen3, session)


def imbalance(diagnosis: Diagnosis) -> Finding:
    (finding,) = [finding for finding in diagnosis.cluster.findings if finding.cause == "pipeline_imbalance"]
    return finding


def test_the_second_stage_computes_1_73_times_the_first_and_balance_saves_tens_of_milliseconds(diagnosis: Diagnosis) -> None:
    finding = imbalance(diagnosis)
    assert finding.observed["stage_compute_ratio"] == pytest.approx(1.73, abs=0.01)
    assert finding.observed["microbatches"] == 2.0
    assert finding.observed["exchange_waiting_ns"] > 300 * MS
    assert 20 * MS <= finding.gain_bound_ns <= 60 * MS
    # By hand: a quarter of the difference between the stages' medians.
    assert finding.gain_bound_ns == pytest.approx((400.790 - 231.097) / 4 * MS, rel=1e-4)
    assert (finding.priority, finding.where.stages, finding.where.ranks) == ("P0", (1,), (0, 1, 2, 3))
    assert "1.73" in finding.message.zh
    assert "1.73" in finding.message.en


def test_the_gap_is_explained_by_the_head_and_the_loss(diagnosis: Diagnosis) -> None:
    assert set(imbalance(diagnosis).where.operators) == {"MatMulV3", "Cast", "Exp", "Sub", "RealDiv", "Mul"}


def test_every_cited_row_holds_the_cited_value(qwen3: Path, diagnosis: Diagnosis) -> None:
    healthy = [note for session in diagnosis.sessions for note in session.healthy if note.cause == "unfused_attention"]
    cited = [*imbalance(diagnosis).evidence, *(row for note in healthy for row in note.evidence)]
    assert len(cited) == 12
    for row in cited:
        column = "Computing" if row.file.endswith("step_trace_time.csv") else "Duration(us)"
        assert cell(qwen3, row, column) == pytest.approx(float(row.value), abs=1e-3), row


def test_fused_attention_is_healthy_where_kernels_were_captured_and_not_judged_elsewhere(diagnosis: Diagnosis) -> None:
    for session in diagnosis.sessions:
        healthy, skipped = ([note.cause for note in notes] for notes in (session.healthy, session.not_judged))
        seen = "unfused_attention" in healthy, "unfused_attention" in skipped
        assert seen == (session.rank in (0, 2), session.rank not in (0, 2))
    assert [note.value for note in diagnosis.sessions[0].healthy if note.cause == "unfused_attention"] == [56.0]
    assert not diagnosis.has_fault()


def test_two_ranks_of_one_stage_do_the_same_work_within_noise(qwen3: Path) -> None:
    sessions = load(qwen3)
    assert compare(sessions[0], sessions[1]).verdict == "no_change"
    assert compare(sessions[0], sessions[2]).operators[0].name == "MatMulV3"


def test_sixteen_ranks_compute_evenly_though_the_second_stage_waits_in_the_bubble(ascend: Path) -> None:
    diagnosis = diagnose(load(ascend / "cluster-16rank-pp2"), SHIPPED)
    assert len(diagnosis.sessions) == 16
    (bubble,) = diagnosis.cluster.findings
    assert (bubble.cause, bubble.priority, bubble.where.stages) == ("microbatch_count", "P0", (1,))
    assert 178 * MS <= bubble.gain_bound_ns <= bubble.exposed_ns <= 196 * MS
    (even,) = [note for note in diagnosis.cluster.healthy if note.cause == "pipeline_imbalance"]
    assert even.value is not None
    assert 1.0 <= even.value < 1.05
    for session in diagnosis.sessions:
        books = session.accounting
        assert abs(books.imbalance_ns) <= TOLERANCE * books.step_ns
        assert books.parts["idle_bubble"] == 0 if session.stage == 0 else 178 * MS <= books.parts["idle_bubble"] <= 196 * MS


def test_two_of_eight_data_parallel_ranks_are_accounted_and_their_stage_is_not_guessed(ascend: Path) -> None:
    root = ascend / "cnn-ddp-2rank-text"
    diagnosis = diagnose(load(root), SHIPPED)
    for session in diagnosis.sessions:
        check_books(root, session)
        assert "unfused_attention" in [note.cause for note in session.not_judged]
    (note,) = [note for note in diagnosis.cluster.not_judged if note.cause == "pipeline_imbalance"]
    assert "captured ranks: 0, 1" in note.reason.en
