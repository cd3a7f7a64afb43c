"""The memory scheduler: invariants of peak, held memory, fragmentation and allocator calls."""

from __future__ import annotations

import math
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.domain.catalogue import Catalogue
from kb.errors import UsageError
from kb.profile.simulated.graph import Elementwise, Graph, tensor
from kb.profile.simulated.memory import lifetimes, place_blocks
from kb.profile.simulated.options import Options
from kb.profile.simulated.setup import Setup
from kb.profile.simulated.twins import TWINS
from kb.tune.allocators import moved_bytes, pooled
from kb.tune.entries import graph_of
from kb.tune.memory import TECHNIQUES, schedule, usage_of
from kb.tune.recomputation import checkpointed

POOL = 512_000_000


@pytest.fixture(scope="module")
def wasteful(small: Setup) -> Setup:
    return msgspec.structs.replace(small, options=Options(batch=8, planner="none", steps=2))


def test_techniques_only_take_memory_away(wasteful: Setup) -> None:
    done = schedule(wasteful, tuple(TECHNIQUES), pool_b=POOL)
    used = [done.before, *(row.after for row in done.rows if row.after is not None)]
    assert len(used) >= 3
    for earlier, later in pairwise(used):
        assert later.peak_b <= earlier.peak_b
        assert later.reserved_b <= max(earlier.reserved_b, later.peak_b)
    assert done.after.reserved_b < 0.5 * done.before.reserved_b
    assert done.after.allocations < 0.1 * done.before.allocations


def test_no_reuse_asks_once_a_value_and_holds_all_of_them(wasteful: Setup) -> None:
    alive = lifetimes(graph_of(wasteful))
    usage = usage_of(wasteful, POOL)
    assert usage.allocations == len(alive)
    assert usage.reserved_b - usage.weight_b >= sum(size for _, _, size in alive)


def test_what_does_not_apply_is_said(wasteful: Setup) -> None:
    rows = {row.technique: row for row in schedule(wasteful, tuple(TECHNIQUES), pool_b=POOL).rows}
    assert rows["gradient_checkpointing"].after is None
    assert "inference" in rows["gradient_checkpointing"].why.en


def test_recomputation_trades_time_for_memory(shipped: Catalogue) -> None:
    options = Options(batch=8, steps=2, planner="best_fit")
    setup = Setup(model="resnet50-train", soc=shipped.soc("910a"), options=options)
    done = schedule(setup, ("gradient_checkpointing",), pool_b=POOL)
    assert done.rows[0].after is not None
    activations = done.before.peak_b - done.before.weight_b, done.after.peak_b - done.after.weight_b
    assert activations[1] < 0.7 * activations[0]
    # The forward pass is about a third of a training step; making it again costs no more than that.
    assert done.before.step_ns < done.after.step_ns < 1.45 * done.before.step_ns


@settings(max_examples=30)
@given(st.integers(16, 120), st.integers(1, 6))
def test_recomputation_of_a_plain_chain_needs_the_root_of_its_length(layers: int, width: int) -> None:
    """Oracle: a chain of n layers whose every result is read again in reverse order."""
    values = [tensor(place, (width, 512), "FLOAT16") for place in range(layers + 1)]
    operators = [Elementwise("Relu", (values[place],), (values[place + 1],)) for place in range(layers)]
    for place in reversed(range(layers)):
        grad = tensor(1000 + place + 1, (width, 512), "FLOAT16")
        operators.append(Elementwise("ReluGrad", (grad, values[place + 1]), (tensor(1000 + place, (width, 512), "FLOAT16"),)))
    graph = Graph(tuple(operators))
    kept, again = checkpointed(graph)
    size = width * 512 * 2
    before, after = largest(lifetimes(graph)), largest(kept)
    assert after <= before
    assert after <= (2 * math.isqrt(layers) + 6) * size
    assert all(0 <= place < layers for place in again)


def test_defragmentation_holds_the_peak_and_pays_for_moves(small: Setup) -> None:
    options = Options(batch=8, planner="first_fit", inplace=True, steps=2)
    fragmented = usage_of(msgspec.structs.replace(small, options=options), POOL)
    moved = usage_of(msgspec.structs.replace(small, options=msgspec.structs.replace(options, defragment=True)), POOL)
    assert (moved.reserved_b, moved.fragmentation) == (moved.peak_b, 0.0)
    assert (moved.moved_b > 0) == (fragmented.fragmentation > 0)
    assert moved.step_ns >= fragmented.step_ns


def test_every_technique_is_a_strategy_with_a_twin() -> None:
    for technique in TECHNIQUES.values():
        assert TWINS[technique.strategy].option in (technique.change or {"recompute": "full"})


def test_unknown_techniques_are_refused(small: Setup) -> None:
    with pytest.raises(UsageError, match="no technique 'magic'"):
        schedule(small, ("magic",), pool_b=POOL)


spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10), st.integers(1, 100_000)), min_size=1, max_size=25).map(
    lambda items: sorted((first, first + length, size) for first, length, size in items)
)


def largest(alive: list[tuple[int, int, int]]) -> int:
    places = {first for first, _, _ in alive}
    return max(sum(size for first, last, size in alive if first <= place <= last) for place in places)


@given(spans)
def test_a_pool_never_holds_less_than_what_is_alive(alive: list[tuple[int, int, int]]) -> None:
    held, calls = pooled(alive, 1 << 40)
    unlimited, without = pooled(alive, 0)
    assert held >= largest(alive)
    assert unlimited >= largest(alive)
    assert calls <= without == len(alive)


@given(spans)
def test_an_unlimited_pool_is_the_simulators_pool(alive: list[tuple[int, int, int]]) -> None:
    blocks = place_blocks(alive, "pool")
    held, calls = pooled(alive, 1 << 40)
    assert held == max(block.offset + (1 << max(9, (block.size - 1).bit_length())) for block in blocks)
    assert calls == len({block.offset for block in blocks})


@given(spans)
def test_compaction_always_finds_room_in_what_is_needed_at_once(alive: list[tuple[int, int, int]]) -> None:
    aligned = [(first, last, -(-size // 512) * 512) for first, last, size in alive]
    assert moved_bytes(aligned, largest(aligned)) >= 0
    assert moved_bytes(aligned, sum(size for _, _, size in aligned)) == 0
