"""Several ranks: they meet, wait for each other, and their sessions agree."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from simulated.chips import chip_file

from kb.domain.soc import Soc
from kb.errors import UsageError
from kb.profile.ascend.oracles import violations
from kb.profile.simulated.collectives import link_rate, transfer_ns
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.graph import Collective, tensor
from kb.profile.simulated.layout import Layout
from kb.profile.simulated.options import Options
from kb.profile.simulated.plan import IDLE_CAUSES
from kb.profile.simulated.run import Setup, setup_of, simulate, simulate_ranks
from kb.profile.simulated.truth import Truth
from kb.session.builder import Strings
from kb.session.session import Session

CONSTANTS = load_constants()
SHORT = {"steps": 2, "sequence": 128, "fused_attention": True, "fused_elementwise": True, "stream_depth": 1000, "noise": 0.0}
JOBS = (
    {"pipeline_parallel": 2, "microbatches": 3},
    {"tensor_parallel": 2, "microbatches": 1},
    {"data_parallel": 2, "microbatches": 1, "overlap_comm": True},
    {"pipeline_parallel": 2, "data_parallel": 2, "tensor_parallel": 2, "microbatches": 1},
)


@cache
def job(model: str = "qwen3-0.6b-train", **settings: object) -> tuple[tuple[Session, Truth], ...]:
    options = Options(**{**SHORT, **settings})  # type: ignore[arg-type]
    return simulate_ranks(Setup(model=model, soc=chip_file(), options=options))


@pytest.mark.parametrize("settings", JOBS)
def test_every_rank_is_sound_and_its_step_is_accounted_for(settings: dict[str, int]) -> None:
    for number, (session, truth) in enumerate(job(**settings)):
        assert session.self_check() == []
        assert (session.meta.rank, session.meta.world_size) == (number, len(job(**settings)))
        strings = Strings()
        strings.codes(session.strings)
        assert violations(session.tables["kernels"], session.tables["step_trace"], strings) == ()
        for step in truth.steps:
            assert step.step_ns == step.computing_ns + step.comm_exposed_ns + sum(step.idle_ns.values())
        idle = truth.idle
        for number_of_cause, cause in enumerate(IDLE_CAUSES):
            mine = idle.cause == number_of_cause
            assert (idle.end_ns - idle.start_ns)[mine].sum() == sum(step.idle_ns[cause] for step in truth.steps)


def test_members_of_a_collective_leave_it_together() -> None:
    ends = []
    for session, _ in job(tensor_parallel=2, microbatches=1):
        table = session.tables["comm_ops"]
        ends.append((table["start_ns"] + table["duration_ns"]).tolist())
    assert ends[0] == ends[1]


def test_communication_parts_add_up_to_the_operator() -> None:
    for session, truth in job(data_parallel=2, microbatches=1, overlap_comm=True, slow_rank_share=0.7):
        table = session.tables["comm_ops"]
        np.testing.assert_array_equal(table["wait_ns"] + table["transit_ns"], table["duration_ns"])
        assert table["wait_ns"].sum() == sum(step.comm_wait_ns for step in truth.steps)


def test_the_fast_rank_waits_for_the_slow_one() -> None:
    fast, slow = (truth.steps[-1] for _, truth in job(data_parallel=2, microbatches=1, slow_rank_share=0.6))
    assert fast.comm_wait_ns > 10 * slow.comm_wait_ns
    assert slow.computing_ns > 1.5 * fast.computing_ns


def test_a_pipeline_waits_in_receives_and_calls_it_a_bubble() -> None:
    sessions = job(pipeline_parallel=2, microbatches=3)
    for session, _ in sessions:
        trace = session.tables["step_trace"]
        assert (trace["bubble_ns"] > 0).all()
        assert (trace["bubble_ns"] <= trace["comm_not_overlapped_ns"]).all()
    assert [session.meta.stage for session, _ in sessions] == [0, 1]


def test_more_microbatches_shrink_the_share_of_the_bubble() -> None:
    def share(count: int) -> float:
        trace = job(pipeline_parallel=2, microbatches=count)[0][0].tables["step_trace"]
        return float(trace["bubble_ns"][-1] / (trace["stage_ns"] + trace["bubble_ns"])[-1])

    assert share(4) < share(2)


def test_overlap_hides_reductions_behind_the_backward_pass() -> None:
    hidden, shown = (job(data_parallel=2, microbatches=1, overlap_comm=on)[0][1].steps[-1] for on in (True, False))
    assert hidden.comm_exposed_ns < shown.comm_exposed_ns
    assert hidden.step_ns < shown.step_ns


def test_quantized_reductions_move_fewer_bytes() -> None:
    def moved(on: bool) -> float:
        return float(job(data_parallel=2, microbatches=1, quantized_comm=on)[0][0].tables["comm_ops"]["bytes"].sum())

    assert moved(True) < 0.3 * moved(False)


def test_experts_spread_over_ranks_exchange_tokens_and_the_busy_one_is_late() -> None:
    settings = {"data_parallel": 2, "expert_parallel": 2, "batch": 64, "graph_launch": True}
    even = job("qwen3-30b-a3b-decode", **settings)
    skewed = job("qwen3-30b-a3b-decode", **settings, expert_skew=3.0)
    assert {"ep"} == {group.dimension for group in even[0][0].meta.parallel.groups if group.dimension == "ep"}
    assert skewed[0][1].steps[-1].comm_wait_ns > even[0][1].steps[-1].comm_wait_ns


def test_a_job_is_simulated_again_from_one_rank() -> None:
    session, _ = job(pipeline_parallel=2, microbatches=3)[1]
    setup = setup_of(session, chip_file())
    assert setup.options.pipeline_parallel == 2
    assert simulate(setup)[0].meta.name == job(pipeline_parallel=2, microbatches=3)[0][0].meta.name


def test_bytes_per_rank_are_those_of_its_share() -> None:
    whole, half = (job(tensor_parallel=split, microbatches=1)[0][1] for split in (1, 2))
    assert 0.4 * whole.peak_bytes < half.peak_bytes < 0.8 * whole.peak_bytes


def reduce(size: int, action: str = "allReduce") -> Collective:
    value = tensor(0, (size // 4,), "FLOAT")
    return Collective(f"hcom_{action}_", (value,), (value,), action, "dp", "x")


# Published volume over time on 910B cards, GB/s (collectives_910b.csv): two of three rows took no part in the fit.
@pytest.mark.parametrize(
    ("action", "cards", "published"),
    [("allGather", 2, 38), ("allReduce", 2, 18), ("allGather", 4, 64), ("allReduce", 4, 30), ("allGather", 8, 149), ("allReduce", 8, 72)],
)
def test_collectives_reach_the_published_rates(action: str, cards: int, published: float) -> None:
    size = 1 << 30
    assert size / transfer_ns(reduce(size, action), cards, chip_file(), CONSTANTS) == pytest.approx(published, rel=0.25)


def test_a_second_box_pays_for_the_network_and_a_slow_link_for_everything() -> None:
    size = 1 << 28
    eight, sixteen = (transfer_ns(reduce(size), cards, chip_file(), CONSTANTS) for cards in (8, 16))
    assert sixteen > 1.4 * eight
    assert transfer_ns(reduce(size), 8, chip_file(), CONSTANTS, link_share=0.5) > 1.9 * eight
    without: Soc = chip_file("910a")
    assert link_rate(without, CONSTANTS) < link_rate(chip_file(), CONSTANTS)


def test_every_rank_has_one_seat_and_every_group_is_shared() -> None:
    layout = Layout(2, 3, 4, 2)
    seats = [layout.seat(rank) for rank in range(layout.world)]
    assert [layout.rank(seat.tensor, seat.data, seat.stage) for seat in seats] == list(range(24))
    for seat in seats:
        for dimension in ("tp", "pp", "dp", "ep"):
            members = layout.members(seat, dimension)
            assert seat.rank in members
            assert all(layout.members(seats[other], dimension) == members for other in members)


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        ("qwen3-0.6b-train", {"tensor_parallel": 3}, "does not divide 16 heads"),
        ("qwen3-0.6b-train", {"pipeline_parallel": 29}, "exceeds the layers"),
        ("qwen3-0.6b-train", {"expert_parallel": 2, "data_parallel": 2}, "does not divide 0 experts"),
        ("qwen3-30b-a3b-train", {"expert_parallel": 2}, "does not divide data_parallel"),
        ("bert-base", {"tensor_parallel": 2}, "cannot be split"),
        ("llama3-8b-decode", {"pipeline_parallel": 2}, "cannot be split"),
        ("qwen3-0.6b-train", {"data_parallel": 128}, "too many to simulate"),
    ],
)
def test_impossible_parallel_degrees_are_refused(model: str, settings: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        simulate(Setup(model=model, soc=chip_file(), options=Options(**settings)))  # type: ignore[arg-type]


def test_an_unknown_rank_is_refused() -> None:
    with pytest.raises(UsageError, match="no rank 3"):
        simulate_ranks(Setup(model="bert-base", soc=chip_file()), (3,))
