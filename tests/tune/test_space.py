"""Search spaces: read, cut with reasons, turned."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.domain.catalogue import Catalogue
from kb.domain.recommendation import Constraints
from kb.errors import KbError, UsageError
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import simulate
from kb.profile.simulated.setup import Setup
from kb.profile.simulated.tiling import Tiling, checked_tiling
from kb.tune.space import AUTO, Knob, cut_space, default_space, impossible, parse_space, turned, value_of


def names(space: tuple[Knob, ...]) -> set[str]:
    return {knob.name for knob in space}


def test_the_articles_space_loses_what_the_buffer_cannot_hold(small: Setup) -> None:
    space = parse_space("tile_size: [128,160,192,224]")
    assert space == (Knob(name="tile", values=("128x128x64", "160x160x64", "192x192x64", "224x224x64")),)
    left, cuts = cut_space(space, small, devices=1)
    assert left == (Knob(name="tile", values=("128x128x64", "160x160x64")),)
    assert [cut.value for cut in cuts] == ["192x192x64", "224x224x64"]
    assert "147,456 B of 131,072 B" in cuts[0].reason.en


def test_the_same_tile_fits_a_chip_with_a_larger_accumulator(small: Setup, shipped: Catalogue) -> None:
    on_310p = msgspec.structs.replace(small, soc=shipped.soc("310p3"))
    _, cuts = cut_space(parse_space("tile_size: [192]"), on_310p, devices=1)
    assert cuts == ()


def test_devices_memory_and_the_model_cut_too(shipped: Catalogue) -> None:
    setup = Setup(model="llama3-8b-decode", soc=shipped.soc("910b4"), options=Options(context=2048))
    _, cuts = cut_space(parse_space("tensor_parallel_degree: [1,2,4]; batch_size: [1,4096]; pipeline_stages: [2]"), setup, devices=2)
    reasons = {(cut.knob, cut.value): cut.reason.en for cut in cuts}
    assert reasons["tensor_parallel", 4] == "needs 4 devices, 2 are there"
    assert "does not fit" in reasons["batch", 4096]
    assert "cannot be split" in reasons["pipeline_parallel", 2]
    assert ("tensor_parallel", 2) not in reasons


def test_chips_without_bf16_cut_it(small: Setup, shipped: Catalogue) -> None:
    setup = msgspec.structs.replace(small, soc=shipped.soc("310p3"), options=Options(precision="bf16"))
    reason = impossible(setup, 1)
    assert reason is not None
    assert "BF16" in reason.en
    assert impossible(msgspec.structs.replace(setup, soc=shipped.soc("910b2")), 1) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tile_size",
        "tile_size: 128",
        "tile_size: []",
        "tile_size: [x]",
        "speed: [1]",
        "batch: [many]",
        "batch: [1] tile",
        "tile_size: [1;2]",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_space(text)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        space = parse_space(text)
    except UsageError:
        return
    assert all(knob.values for knob in space)


edges = st.integers(1, 40).map(lambda size: size * 16)


@given(edges, edges, st.sampled_from([16, 32, 64, 128, 256]))
def test_cutting_agrees_with_the_buffers(small: Setup, m: int, n: int, k: int) -> None:
    """Oracle: the simulator's own check of a tile."""
    setup = small
    value = f"{m}x{n}x{k}"
    reason = impossible(msgspec.structs.replace(setup, options=turned(setup.options, {"tile": value})), 1)
    try:
        checked_tiling(Tiling(tile_m=m, tile_n=n, tile_k=k), setup.soc)
    except KbError:
        assert reason is not None
    else:
        assert reason is None


def test_what_is_left_runs(small: Setup) -> None:
    left, _ = cut_space(default_space(small, Constraints(min_throughput=1.0)), small, devices=1)
    assert {"stream_depth", "tile", "batch"} <= names(left)
    for knob in left:
        for value in (knob.values[0], knob.values[-1]):
            simulate(msgspec.structs.replace(small, options=turned(small.options, {knob.name: value})))


def test_knobs_that_cannot_matter_are_left_out(small: Setup) -> None:
    launched = msgspec.structs.replace(small, options=Options(graph_launch=True))
    assert "stream_depth" not in names(default_space(launched, Constraints()))
    assert "batch" not in names(default_space(small, Constraints()))
    assert "precision" in names(default_space(msgspec.structs.replace(small, options=Options(precision="fp32")), Constraints()))
    kept = default_space(msgspec.structs.replace(small, options=Options(precision="fp32")), Constraints(allow_model_change=False))
    assert "precision" not in names(kept)


def test_a_forbidden_strategy_does_not_come_in_by_its_number(small: Setup) -> None:
    limits = Constraints(target="throughput", forbid=("increase_batch", "retile_kernel"))
    assert not {"batch", "tile"} & names(default_space(small, limits))
    assert names(default_space(small, Constraints(target="throughput", allow=("increase_batch",)))) == {"batch"}


def test_turning_a_knob_and_reading_it_agree() -> None:
    options = turned(Options(), {"tile": "128x256x64", "stream_depth": 8})
    assert (value_of(options, "tile"), value_of(options, "stream_depth")) == ("128x256x64", 8)
    assert turned(options, {"tile": AUTO, "stream_depth": 2}) == Options()
