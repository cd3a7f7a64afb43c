"""What an expert reads out of the published profiles, cause by cause."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from diagnose.factories import SHIPPED

from kb.compare.comparison import compare_sets
from kb.diagnose.diagnosis import diagnose
from kb.domain.comparison import Comparison
from kb.domain.diagnosis import Diagnosis
from kb.domain.finding import Finding
from kb.profile.sources import load

MS = 1_000_000


@cache
def diagnosed(path: Path) -> Diagnosis:
    return diagnose(load(path), SHIPPED)


@pytest.fixture
def profiles(shared: Path) -> Path:
    return shared / "data" / "profiles"


def by_cause(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    return {finding.cause: finding for finding in findings}


def compared(before: Path, after: Path) -> Comparison:
    (first,), (second,) = load(before), load(after)
    return compare_sets([first], [second], diagnoses=(diagnosed(before).sessions[0], diagnosed(after).sessions[0]))


def test_qwen3_has_an_unequal_pipeline_few_microbatches_exposed_collectives_and_a_slow_host(profiles: Path) -> None:
    diagnosis = diagnosed(profiles / "ascend" / "qwen3-0.6b-train-pp2-dp2")
    across = by_cause(diagnosis.cluster.findings)
    assert set(across) == {"pipeline_imbalance", "microbatch_count", "comm_not_overlapped"}
    assert across["pipeline_imbalance"].gain_bound_ns <= 60 * MS
    assert across["microbatch_count"].observed["microbatches"] == 2.0
    collectives = across["comm_not_overlapped"]
    assert 80 * MS <= collectives.exposed_ns <= 120 * MS
    assert collectives.observed["overlapped_ns"] == 0.0
    assert "overlapped 0.0 ms" in collectives.message.en
    for session in diagnosis.sessions:
        if session.rank in (0, 2):
            assert "host_bound_launch" in by_cause(session.findings)


def test_qwen3_says_that_blame_changes_within_the_step_and_raises_no_packets(profiles: Path) -> None:
    cluster = diagnosed(profiles / "ascend" / "qwen3-0.6b-train-pp2-dp2").cluster
    (nobody,) = [item for item in cluster.healthy if item.cause == "slow_link_or_rank"]
    assert "changes during the step" in nobody.message.en
    assert "comm_volume_excess" in [item.cause for item in cluster.healthy]


def test_gains_of_qwen3_stay_within_what_each_rank_loses(profiles: Path) -> None:
    diagnosis = diagnosed(profiles / "ascend" / "qwen3-0.6b-train-pp2-dp2")
    across = sum(finding.gain_bound_ns for finding in diagnosis.cluster.findings)
    for session in diagnosis.sessions:
        assert sum(finding.gain_bound_ns for finding in session.findings) <= session.accounting.step_ns
    assert across <= max(session.accounting.parts["comm_exposed"] for session in diagnosis.sessions)


@pytest.mark.parametrize(
    ("name", "longest", "total", "peer"), [("cnn-ddp-2rank-text", 101.8, 106.0, 5), ("cnn-ddp-2rank-db", 97.7, 102.1, 6)]
)
def test_the_convolution_net_waits_for_a_rank_that_was_not_captured(
    profiles: Path, name: str, longest: float, total: float, peer: int
) -> None:
    diagnosis = diagnosed(profiles / "ascend" / name)
    across = by_cause(diagnosis.cluster.findings)
    assert set(across) == {"slow_link_or_rank"}
    late = across["slow_link_or_rank"]
    assert late.observed["waiting_ns"] == pytest.approx(longest * MS, abs=0.1 * MS)
    assert late.observed["communication_ns"] == pytest.approx(total * MS, abs=0.1 * MS)
    for phrase in (f"{longest} ms of {total} ms", f"group rank {peer} (not captured)", "2 of 8 ranks captured"):
        assert phrase in late.message.en
    assert late.gain_bound_ns <= late.exposed_ns <= late.observed["waiting_ns"]
    assert late.confidence <= 0.7
    (parts,) = {session.accounting.splits["comm"]["wait_longest_plane"] for session in diagnosis.sessions[:1]}
    assert parts == pytest.approx(longest * MS, abs=0.1 * MS)


@pytest.mark.parametrize("name", ["cnn-ddp-2rank-text", "cnn-ddp-2rank-db"])
def test_the_convolution_net_shows_no_dynamic_shapes_and_its_communication_could_not_be_hidden(profiles: Path, name: str) -> None:
    diagnosis = diagnosed(profiles / "ascend" / name)
    assert "comm_not_overlapped" in [item.cause for item in diagnosis.cluster.healthy]
    for session in diagnosis.sessions:
        assert "dynamic_shape_recompile" not in by_cause(session.findings)


def test_text_and_database_of_one_model_give_the_same_causes(profiles: Path) -> None:
    text, database = (diagnosed(profiles / "ascend" / f"cnn-ddp-2rank-{kind}") for kind in ("text", "db"))
    for one, other in zip(text.sessions, database.sessions, strict=True):
        assert set(by_cause(one.findings)) == set(by_cause(other.findings))
    assert set(by_cause(text.cluster.findings)) == set(by_cause(database.cluster.findings))


def test_without_workers_the_loader_is_the_cause_and_with_them_the_next_one_is_named(profiles: Path) -> None:
    paths = [profiles / "kineto" / f"resnet50_v100_num_workers_{count}.pt.trace.json.gz" for count in (0, 4)]
    before, after = (diagnosed(path).sessions[0] for path in paths)
    assert before.findings[0].cause == "dataloader_bound"
    assert before.findings[0].gain_bound_ns <= before.accounting.parts["idle_input"]
    assert "dataloader_bound" not in by_cause(after.findings)
    assert after.findings[0].cause == "host_bound_launch"
    result = compared(*paths)
    assert result.verdict == "improved"
    assert "dataloader_bound" in result.resolved_causes
    assert any("single capture" in reason.en for reason in result.reasons)


def test_another_chip_is_refused(profiles: Path) -> None:
    result = compared(*(profiles / "kineto" / f"diff_{name}.pt.trace.json.gz" for name in ("a100_control", "v100_test")))
    assert result.verdict == "not_comparable"
    assert {reason.en.split(":")[0] for reason in result.reasons} >= {"different number of cores", "different world size"}


@pytest.mark.parametrize("name", ["v100_busy98_ns_timestamps", "vllm_decode_full_graph_busy99"])
def test_a_busy_device_has_no_idle_finding(profiles: Path, name: str) -> None:
    (session,) = diagnosed(profiles / "kineto" / f"{name}.pt.trace.json.gz").sessions
    idle = ("dataloader_bound", "host_bound_launch", "synchronization_stall", "gc_pause", "io_checkpoint", "stream_bubbles", "h2d_copy")
    assert not set(idle) & set(by_cause(session.findings))
    assert session.accounting.share("compute") >= 0.97


def test_a_capture_without_a_device_is_not_judged(profiles: Path) -> None:
    (session,) = diagnosed(profiles / "kineto" / "cpu_only.pt.trace.json.gz").sessions
    assert not session.findings
    assert not session.healthy
    assert session.not_judged


def test_an_eager_device_that_idles_is_bound_by_launches(profiles: Path) -> None:
    (session,) = diagnosed(profiles / "kineto" / "b200_eager_busy14.pt.trace.json.gz").sessions
    assert (session.findings[0].cause, session.findings[0].priority) == ("host_bound_launch", "P0")


def test_fusing_nodes_gave_fewer_of_them_and_no_proven_gain(profiles: Path) -> None:
    names = ("unfused_opt_disabled", "fused_opt_all")
    result = compared(*(profiles / "onnxruntime" / f"bertlike6L_{name}.json.gz" for name in names))
    assert result.verdict == "inconclusive"
    assert any("re-run interleaved" in reason.en for reason in result.reasons)
    counts = [sum(getattr(delta, f"{side}_count") for delta in result.operators) for side in ("before", "after")]
    assert counts[0] > 1.5 * counts[1]


def test_structure_is_named_where_only_structure_is_known(profiles: Path) -> None:
    labelled = profiles / "labelled"
    (unfused,) = diagnosed(labelled / "test03_attention_fused_vs_unfused" / "trace2.json").sessions
    assert "unfused_attention" in by_cause(unfused.findings)
    (transposed,) = diagnosed(labelled / "test04_gemm_mm_vs_linear" / "trace1.json").sessions
    assert "format_conversion" in by_cause(transposed.findings)
