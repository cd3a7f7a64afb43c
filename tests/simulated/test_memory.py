"""Lifetimes, allocators, and heat."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated.chips import chip_file, ran

from kb.errors import UsageError
from kb.profile.simulated.chip import chip_of
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.graph import Elementwise, Graph, tensor
from kb.profile.simulated.memory import lifetimes, memory_plan, peak_bytes, place_blocks
from kb.profile.simulated.options import Options, Planner
from kb.profile.simulated.thermal import Activity, power, settled, temperature, thermals_of
from kb.profile.simulated.tiling import Tiling, checked_tiling

CONSTANTS = load_constants()
THERMALS = thermals_of("A2", CONSTANTS)
PLANNERS: tuple[Planner, ...] = ("none", "first_fit", "best_fit", "pool")
values = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 15), st.integers(1, 10**6)), min_size=1, max_size=40)
shares = st.floats(0.0, 1.0)


def alive(rows: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    return sorted((first, first + length, size) for first, length, size in rows)


@given(values, st.sampled_from(PLANNERS))
def test_values_alive_together_never_overlap(rows: list[tuple[int, int, int]], planner: Planner) -> None:
    blocks = place_blocks(alive(rows), planner)
    for number, one in enumerate(blocks):
        for other in blocks[:number]:
            if one.first <= other.last and other.first <= one.last:
                assert one.offset >= other.offset + other.size or other.offset >= one.offset + one.size


@given(values, st.sampled_from(PLANNERS))
def test_the_arena_holds_at_least_the_largest_live_set(rows: list[tuple[int, int, int]], planner: Planner) -> None:
    blocks = place_blocks(alive(rows), planner)
    largest = max(sum(size for first, last, size in alive(rows) if first <= at <= last) for at in range(47))
    assert max(block.offset + block.size for block in blocks) >= largest


@given(values)
def test_reuse_never_needs_more_than_no_reuse(rows: list[tuple[int, int, int]]) -> None:
    ends = {name: max(block.offset + block.size for block in place_blocks(alive(rows), name)) for name in ("none", "first_fit", "best_fit")}
    assert max(ends["first_fit"], ends["best_fit"]) <= ends["none"]


def chain(length: int, elements: int = 1000) -> Graph:
    made = [tensor(number, (elements,), "FLOAT16") for number in range(length + 1)]
    return Graph(tuple(Elementwise("Relu", (made[number],), (made[number + 1],)) for number in range(length)))


def test_a_chain_needs_two_values_and_in_place_one() -> None:
    assert peak_bytes(chain(10)) == 2 * 2000
    assert max(size for _, _, size in lifetimes(chain(10), inplace=True)) == 2000
    assert memory_plan(chain(10), Options(inplace=True)).live_bytes == 2000


def test_expandable_segments_and_defragmentation_remove_fragmentation() -> None:
    graph = chain(6, 10**7)
    loose, expandable, packed = (
        memory_plan(graph, Options(planner="none", **changes))  # type: ignore[arg-type]
        for changes in ({}, {"expandable": True}, {"defragment": True})
    )
    assert loose.fragmentation > 0.2
    assert expandable.arena_bytes < loose.arena_bytes
    assert packed.fragmentation == 0.0
    assert loose.peak_bytes == packed.peak_bytes


def test_the_allocation_table_tells_the_peak() -> None:
    session, truth = ran("bert-base", options=Options(steps=2, planner="best_fit"))
    table = session.tables["allocations"]
    edges = sorted(
        [(start, size) for start, size in zip(table["start_ns"].tolist(), table["bytes"].tolist(), strict=True)]
        + [(end, -size) for end, size in zip(table["end_ns"].tolist(), table["bytes"].tolist(), strict=True) if end >= 0]
    )
    live = peak = 0.0
    for _, change in edges:
        live += change
        peak = max(peak, live)
    assert peak == pytest.approx(truth.peak_bytes, rel=0.02)
    assert truth.reserved_bytes >= truth.peak_bytes


@given(shares, shares, shares, st.floats(0.1, 4.0), st.floats(1.0, 3.0))
def test_better_cooling_never_lowers_the_clock(cube: float, vector: float, memory: float, cooling: float, better: float) -> None:
    activity = Activity(cube, vector, memory)
    plain, cooled = (settled(activity, Options(cooling=share), THERMALS, CONSTANTS) for share in (cooling, cooling * better))
    assert cooled.clock >= plain.clock


@given(shares, shares, shares, st.floats(0.5, 1.0))
def test_power_falls_with_the_clock_and_stays_within_the_budget(cube: float, vector: float, memory: float, clock: float) -> None:
    activity = Activity(cube, vector, memory)
    assert power(activity, clock, THERMALS, CONSTANTS) <= power(activity, 1.0, THERMALS, CONSTANTS) <= THERMALS.budget_w * (1 + 1e-9)


def test_temperature_moves_towards_the_steady_state() -> None:
    heat = settled(Activity(1.0, 1.0, 1.0), Options(), THERMALS, CONSTANTS)
    path = [temperature(35.0, heat, seconds * 1e9, THERMALS) for seconds in (0, 10, 60, 600)]
    assert path == sorted(path)
    assert path[0] == 35.0
    assert path[-1] == pytest.approx(heat.celsius, abs=0.01)


def test_a_hot_chip_slows_compute_and_leaves_memory_alone() -> None:
    hot = Options(steps=1, denoise_steps=1, noise=0.0, cooling=0.2, stream_depth=64)
    session, truth = ran("sd3", options=hot)
    assert truth.clock_share < 1.0
    clock = session.tables["counters"]["value"][session.tables["counters"]["name"] == session.code("AI Core Freq [MHz]")]
    assert clock[0] == pytest.approx(1800 * truth.clock_share)
    assert session.meta.soc.clock_mhz == pytest.approx(1800 * truth.clock_share)
    slow = chip_of(chip_file(), CONSTANTS)
    assert slow.hbm_rate == chip_of(chip_file(), CONSTANTS).hbm_rate


# A 192 x 192 FP32 accumulator takes 147,456 B: too much for L0C of A2, not of the first generation.
@pytest.mark.parametrize(("soc", "fits"), [("910b2", False), ("910a", True), ("310p3", True)])
def test_a_tile_must_fit_the_accumulator(soc: str, fits: bool) -> None:
    tiling = Tiling(tile_m=192, tile_n=192, tile_k=64)
    if fits:
        assert checked_tiling(tiling, chip_file(soc)) == tiling
    else:
        with pytest.raises(UsageError, match="overflows L0C"):
            checked_tiling(tiling, chip_file(soc))


@pytest.mark.parametrize(
    ("m", "n", "k", "message"),
    [
        (512, 16, 64, "overflows L0A"),
        (16, 512, 64, "overflows L0B"),
        (100, 64, 64, "impossible tile"),
        (64, 0, 64, "both edges"),
    ],
)
def test_other_buffers_and_odd_tiles_are_checked(m: int, n: int, k: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        checked_tiling(Tiling(tile_m=m, tile_n=n, tile_k=k), chip_file())
