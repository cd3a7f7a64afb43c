"""The importer on every real sample: the identities of the exporters hold to the last digit they print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from kb.profile.ascend.oracles import step_differences
from kb.profile.sources import load
from kb.session.session import Session

COMPUTE_NS = 26
COMMUNICATION_NS = 3
STEP_NS = 130
QWEN = "qwen3-0.6b-train-pp2-dp2"
CNN = "cnn-ddp-2rank-text"
ALL = (QWEN, CNN, "formats-2023", "cluster-16rank-pp2")


@pytest.fixture(scope="module")
def samples(shared: Path) -> dict[str, Sequence[Session]]:
    folder = shared / "data" / "profiles" / "ascend"
    return {name: load(folder / name) for name in ALL}


@pytest.fixture
def folder(shared: Path) -> Path:
    return shared / "data" / "profiles" / "ascend"


@pytest.mark.parametrize(("name", "count"), [(QWEN, 2), (CNN, 2)])
def test_kernel_sums_are_the_exporters_totals(samples: dict[str, Sequence[Session]], name: str, count: int) -> None:
    checked = 0
    for session in samples[name]:
        kernels, totals = session.table("kernels"), session.table("step_trace")
        if kernels is None or totals is None:
            continue
        communicating = kernels["core"] == session.code("COMMUNICATION")
        assert abs(int(kernels["duration_ns"][~communicating].sum()) - int(totals["computing_ns"][0])) <= COMPUTE_NS
        assert abs(int(kernels["duration_ns"][communicating].sum()) - int(totals["communication_ns"][0])) <= COMMUNICATION_NS
        checked += 1
    assert checked == count


@pytest.mark.parametrize(("name", "ranks"), [(QWEN, 4), (CNN, 2), ("formats-2023", 2), ("cluster-16rank-pp2", 16)])
def test_each_step_adds_up(samples: dict[str, Sequence[Session]], name: str, ranks: int) -> None:
    assert len(samples[name]) == ranks
    for session in samples[name]:
        totals = session.table("step_trace")
        assert totals is not None
        whole, communication = step_differences(totals).values()
        assert np.all(np.abs(whole) <= STEP_NS)
        assert np.all(np.abs(communication) <= 1)


@pytest.mark.parametrize("name", [QWEN, CNN, "cluster-16rank-pp2"])
def test_sound_samples_contradict_nothing(samples: dict[str, Sequence[Session]], name: str) -> None:
    assert [session.meta.violations for session in samples[name]] == [()] * len(samples[name])


@pytest.mark.parametrize("name", ALL)
def test_every_sample_obeys_the_schema(samples: dict[str, Sequence[Session]], name: str) -> None:
    assert [session.self_check() for session in samples[name]] == [[]] * len(samples[name])


def test_the_training_ranks_know_their_place(samples: dict[str, Sequence[Session]]) -> None:
    metas = [session.meta for session in samples[QWEN]]
    assert [meta.name for meta in metas] == [f"rank_{rank}_ascend_pt" for rank in range(4)]
    assert [(meta.rank, meta.stage, meta.device, meta.world_size) for meta in metas] == [
        (0, 0, 0, 4),
        (1, 0, 1, 4),
        (2, 1, 4, 4),
        (3, 1, 5, 4),
    ]
    assert (metas[0].parallel.pipeline, metas[0].parallel.data, metas[0].parallel.tensor) == (2, 2, 1)
    assert metas[0].software == {"torch_npu": "2.7.1", "cann": "8.3.RC1"}
    assert metas[0].environment["PYTORCH_NPU_ALLOC_CONF"] == "expandable_segments:True"
    assert next(group.ranks for group in metas[3].parallel.groups if group.dimension == "pp") == (1, 3)


def test_ranks_without_kernels_still_have_steps_and_communication(samples: dict[str, Sequence[Session]]) -> None:
    for session in (samples[QWEN][1], samples[QWEN][3]):
        assert set(session.tables) == {"step_trace", "comm_ops", "comm_links", "steps"}
        assert "kernels" in {missing.what for missing in session.meta.missing}


@pytest.mark.parametrize(("name", "cores", "clock"), [(QWEN, 20, 1650.0), (CNN, 24, 1800.0)])
def test_counters_give_cores_and_clock(samples: dict[str, Sequence[Session]], name: str, cores: int, clock: float) -> None:
    for session in samples[name]:
        if session.table("kernels") is not None:
            soc = session.meta.soc
            assert (soc.cores, soc.clock_mhz, soc.id, soc.family, soc.confidence) == (cores, clock, None, "A2", "low")
            assert soc.how.startswith("counters")


def test_timestamps_keep_every_digit(samples: dict[str, Sequence[Session]], folder: Path) -> None:
    kernels = samples[QWEN][0].table("kernels")
    assert kernels is not None
    lines = (folder / QWEN / "rank_0_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").read_text().splitlines()
    for index in (0, 1, 1234, 2462):
        text = next(cell for cell in lines[int(kernels["row"][index]) - 1].split(",") if cell.endswith("\t"))
        assert int(text.strip().replace(".", "")) == int(kernels["start_ns"][index])
    assert int(kernels["row"].min()) == 2
    assert int(kernels["row"].max()) == 2464


def test_communication_counts_no_byte_twice(samples: dict[str, Sequence[Session]]) -> None:
    operators = samples[CNN][0].table("comm_ops")
    assert operators is not None
    first = int(np.argmin(operators["start_ns"]))
    assert operators["bytes"][first] == pytest.approx(28_647_232)
    assert int(operators["duration_ns"][first]) == 79_089_520
    assert int(operators["idle_ns"][first]) == 73_203_703


def test_hand_cut_files_are_confessed(samples: dict[str, Sequence[Session]]) -> None:
    first, second = samples["formats-2023"]
    assert first.meta.capture.dropped_rows == 1
    assert len(first.tables["kernels"]) == 20
    assert {violation.oracle for violation in first.meta.violations} >= {"sum of computing kernels = Computing"}
    ruined = next(missing for missing in second.meta.missing if missing.what == "counters")
    assert "spreadsheet" in ruined.why.en
    assert "memory_record.csv:2:" in ruined.why.en


def test_the_cluster_table_gives_ranks_stages_and_bubbles(samples: dict[str, Sequence[Session]]) -> None:
    sessions = samples["cluster-16rank-pp2"]
    assert [session.meta.rank for session in sessions] == list(range(16))
    assert [session.meta.stage for session in sessions] == [0] * 8 + [1] * 8
    assert {session.meta.world_size for session in sessions} == {16}
    assert {session.meta.capture.dropped_rows for session in sessions} == {0}
    bubbles = [int(session.tables["step_trace"]["bubble_ns"][0]) for session in sessions]
    assert bubbles[:8] == [0] * 8
    assert min(bubbles[8:]) > 178_000_000
    assert [int(session.tables["step_trace"]["row"][0]) for session in sessions] == list(range(2, 18))


def test_the_rank_folder_and_its_output_give_the_same_session_as_the_cluster(samples: dict[str, Sequence[Session]], folder: Path) -> None:
    rank = folder / QWEN / "rank_2_ascend_pt"
    for path, prefix in ((rank, ""), (rank / "ASCEND_PROFILER_OUTPUT", "../")):
        (session,) = load(path)
        whole = samples[QWEN][2]
        assert (session.meta.name, session.meta.rank, session.meta.stage) == (whole.meta.name, 2, 1)
        assert np.array_equal(session.tables["kernels"]["start_ns"], whole.tables["kernels"]["start_ns"])
        assert f"{prefix}profiler_info_2.json" in session.meta.capture.files
