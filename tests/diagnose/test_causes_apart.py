"""Two causes that look alike: each session names the right one and not the other."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from diagnose.cases import collective, expert_ranks, hosted, one, staged
from diagnose.factories import SHIPPED
from diagnose.scenes import Scene, busy, product

from kb.diagnose.confidence import load_calibration
from kb.diagnose.diagnosis import diagnose
from kb.diagnose.ruleset import RULES
from kb.domain.diagnosis import Diagnosis
from kb.domain.soc import SocRef
from kb.session.session import Session


def causes(sessions: tuple[Session, ...]) -> dict[str, int]:
    """Cause -> exposed us."""
    return {finding.cause: round(finding.exposed_ns / 1e3) for finding in found(sessions).all_findings()}


def found(sessions: tuple[Session, ...]) -> Diagnosis:
    return diagnose(sessions, SHIPPED)


def short_attention(duration: float, *, pipe: float, block: int = 12) -> Scene:
    scene = busy(count=4)
    for _ in range(12):
        scene.kernel("FlashAttentionScore", duration, core="MIX_AIC", block=block, aic_mac_ratio=pipe, aic_mte2_ratio=pipe / 6)
    return scene


def test_the_fixed_cost_of_short_attention_is_neither_tiling_nor_a_stall() -> None:
    assert not {"suboptimal_tiling", "intra_kernel_stall"} & set(causes(one(short_attention(46.0, pipe=0.03))))
    assert "intra_kernel_stall" not in causes(one(short_attention(46.0, pipe=0.03, block=24)))
    long = causes(one(short_attention(400.0, pipe=0.3, block=24)))
    assert long["intra_kernel_stall"] == pytest.approx(12 * (400.0 * (1 - 0.3 / 0.8) - 50.0), rel=0.02)


def test_pipes_that_take_turns_are_a_stall_and_pipes_that_overlap_are_a_tile_problem() -> None:
    turns, small = busy(count=2), busy(count=2)
    for _ in range(10):
        product(turns, 400.0, aic_mac_ratio=0.3, aic_mte2_ratio=0.6)
        product(small, 400.0, aic_mac_ratio=0.3, aic_mte2_ratio=0.97)
    assert causes(one(turns)) == {"intra_kernel_stall": pytest.approx(10 * (400.0 * 0.4 - 15.0), rel=0.02)}
    assert "suboptimal_tiling" in causes(one(small))
    assert "intra_kernel_stall" not in causes(one(small))


def test_cores_left_idle_by_a_kernel_at_the_memorys_limit_cost_nothing() -> None:
    """14 of 24 cores, but the bytes counted keep the memory at its reachable rate: more cores would wait with them."""
    scene = busy(count=2)
    for _ in range(10):
        product(scene, 100.0, block=14, aic_mac_ratio=0.3, aic_mte2_ratio=0.95, hbm_read_bytes=120e6, hbm_write_bytes=1e6)
    assert "suboptimal_tiling" not in causes(one(scene))


def test_without_types_tiles_are_not_judged() -> None:
    scene = Scene()
    for _ in range(20):
        scene.kernel(None, 400.0, name="aclnnMatmul", core="AI_CORE", block=25)  # Level0 names none
    notes = {note.cause: note for note in found(one(scene)).sessions[0].not_judged}
    assert "Level0" in notes["suboptimal_tiling"].reason.en


def test_waiting_that_uneven_experts_explain_is_not_a_slow_rank() -> None:
    uneven = tuple(waiting(session_us, at) for session_us, at in ((400.0, 0), (1200.0, 1)))
    answer = causes(uneven)
    assert "moe_imbalance" in answer
    assert "slow_link_or_rank" not in answer


def waiting(expert: float, rank: int) -> Session:
    scene = busy(count=10)
    scene.kernel("GroupedMatmul", expert, core="AI_CORE")
    begin = scene.clock
    collective(scene, "hcom_allReduce__1_0_1", begin, 1000.0 + 1200.0 + 100.0 - begin)
    return scene.made(rank=rank, world_size=2)


def computing(duration: float, rank: int, world: int) -> Session:
    scene = busy(count=10, duration=duration)
    begin = scene.clock
    collective(scene, "hcom_allReduce__1_0_1", begin, 1600.0 - begin)
    return scene.made(rank=rank, world_size=world)


def test_a_rank_that_computes_longer_is_named_even_when_ranks_are_missing() -> None:
    ranks = tuple(computing(140.0 if rank == 2 else 100.0, rank, 8) for rank in range(3))
    finding = next(one for one in found(ranks).cluster.findings if one.cause == "slow_link_or_rank")
    assert finding.where.ranks == (2,)
    assert finding.exposed_ns == pytest.approx(400_000, rel=0.01)
    even = tuple(computing(105.0 if rank == 2 else 100.0, rank, 8) for rank in range(3))
    assert "slow_link_or_rank" not in causes(even)


def test_a_copy_beside_gaps_between_kernels_held_nothing_up() -> None:
    idle = Scene()
    for place in range(20):
        idle.launched("MatMulV3", 20.0, launch_at=place * 100.0, core="AI_CORE")
    beside = idle.copy("h2d", 40.0, 900.0)
    assert "h2d_copy" not in causes(one(beside))
    before = Scene().copy("h2d", 0.0, 900.0)
    for place in range(20):
        before.launched("MatMulV3", 20.0, launch_at=place * 6.0, core="AI_CORE")
    before.step(0.0, before.clock)
    assert causes(one(before))["h2d_copy"] == pytest.approx(900, rel=0.05)


def test_a_collective_that_ends_before_the_next_launch_is_the_hosts_loss() -> None:
    """The kernels behind it are launched 300 us after it has ended."""
    scene = hosted(10)
    begin = scene.clock
    collective(scene, "hcom_allReduce__1_0_1", begin, 400.0)
    for place in range(10):
        scene.launched("MatMulV3", 100.0, launch_at=begin + 700.0 + place * 6.0, core="AI_CORE")
    assert "comm_not_overlapped" not in causes((scene.made(rank=0, world_size=1),))


def test_casts_beside_the_loss_are_needed_and_others_are_not() -> None:
    loss, loose = busy(), busy()
    loss.kernel("Cast", 200.0).kernel("SoftmaxCrossEntropyWithLogits", 50.0).kernel("Cast", 200.0)
    loose.kernel("Cast", 200.0).kernel("Add", 50.0).kernel("Cast", 200.0)
    assert "excess_cast" not in causes(one(loss))
    assert causes(one(loose))["excess_cast"] == 400


def test_single_precision_is_no_excess_on_a_cpu() -> None:
    scene = Scene()
    for _ in range(20):
        product(scene, 100.0, input_dtypes="FLOAT;FLOAT")
    assert "excess_cast" in causes(one(scene))
    assert "excess_cast" not in causes(one(scene, soc=SocRef(family="cpu")))


def test_operands_read_once_are_no_pressure_on_the_memory() -> None:
    once, again = busy(count=2), busy(count=2)
    for scene, moved in ((once, 40e6), (again, 150e6)):
        for _ in range(10):
            product(scene, 100.0, aic_mac_ratio=0.3, aic_mte2_ratio=0.97, hbm_read_bytes=moved, hbm_write_bytes=0.0)
    assert "memory_bandwidth_pressure" not in causes(one(once))
    assert "memory_bandwidth_pressure" in causes(one(again))


def test_confidence_grows_with_the_margin_and_never_reaches_certainty() -> None:
    made = load_calibration()
    assert set(made.causes) <= {cause for entry in RULES for cause in entry.causes}
    for cause in ("gc_pause", "suboptimal_tiling"):
        values = [made.probability(cause, margin) for margin in (1.0, 1.2, 2.0, 4.0, 10.0)]
        assert all(0.0 < value <= made.highest < 1.0 for value in values)
    assert made.probability("never_planted", None) <= made.highest


def test_uneven_experts_alone_are_still_found() -> None:
    assert "moe_imbalance" in causes(expert_ranks(400.0, 1200.0))


def test_tiles_that_only_the_slow_rank_shows_are_its_slowness() -> None:
    def rank(number: int, product_us: float) -> Session:
        scene = Scene()
        for _ in range(10):
            product(scene, product_us)
        collective(scene, "hcom_allReduce__1_0_1", scene.clock, 3200.0 - scene.clock)
        return scene.made(rank=number, world_size=2)

    sessions = found((rank(0, 100.0), rank(1, 300.0)))
    assert "slow_link_or_rank" in {finding.cause for finding in sessions.cluster.findings}
    assert "suboptimal_tiling" not in {finding.cause for finding in sessions.all_findings()}
    alone = found((rank(1, 300.0),))
    assert "suboptimal_tiling" in {finding.cause for finding in alone.all_findings()}


def test_an_interleaved_schedule_is_recognised_and_not_replayed() -> None:
    plain = staged(8, 100.0, 150.0)
    chunked = tuple(
        replace(rank, meta=msgspec.structs.replace(rank.meta, parallel=msgspec.structs.replace(rank.meta.parallel, virtual=2)))
        for rank in plain
    )
    first, second = (
        next(one for one in found(sessions).cluster.findings if one.cause == "pipeline_imbalance") for sessions in (plain, chunked)
    )
    assert "microbatches" in first.observed
    assert "microbatches" not in second.observed
    assert any("interleaved" in note.en for note in second.notes)


def gapped(*, behind_long: bool) -> tuple[Session, ...]:
    """No host events; every fourth kernel runs ten times as long as a launch takes."""
    scene = Scene()
    for place in range(80):
        after_long = place % 4 == 1
        scene.kernel("Add", 100.0 if place % 4 == 0 else 5.0, gap=8.0 if behind_long or not after_long else 0.0)
    return one(scene)


def test_without_host_events_gaps_behind_long_kernels_are_not_laid_on_the_host() -> None:
    assert "host_bound_launch" in causes(gapped(behind_long=False))
    notes = {note.cause: note for note in found(gapped(behind_long=True)).sessions[0].not_judged}
    assert "shallow queue" in notes["host_bound_launch"].reason.en


def test_waits_of_ranks_that_take_turns_in_being_late_blame_nobody() -> None:
    def rank(number: int) -> Session:
        scene = Scene()
        for place in range(10):
            product(scene, 150.0 if place % 2 == number else 50.0)
            name, begin = f"hcom_allReduce__1_{place}_1", scene.clock
            end = 250.0 * place + 200.0
            collective(scene, name, begin, end - begin)
            wait = max(0.0, end - 40.0 - begin) * 1000
            scene.add(
                "comm_tasks", op=name, kind="Notify_Wait", plane=1, start_ns=begin * 1000, duration_ns=wait, src_rank=number, dst_rank=1
            )
            scene.clock = 250.0 * (place + 1)
        return scene.made(rank=number, world_size=2)

    assert "slow_link_or_rank" not in causes((rank(0), rank(1)))
