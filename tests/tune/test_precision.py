"""What number formats do to results."""

from __future__ import annotations

import msgspec

from kb.profile.simulated.options import Options
from kb.profile.simulated.setup import Setup
from kb.tune.precision import emulated, precision_loss, precision_of


def with_options(setup: Setup, **options: object) -> Setup:
    return msgspec.structs.replace(setup, options=msgspec.structs.replace(setup.options, **options))


def test_errors_follow_the_bits_of_the_format() -> None:
    errors = {name: emulated(name, name, 6).relative_error for name in ("fp32", "fp16", "bf16")} | {
        "int8": emulated("int8", "fp16", 6).relative_error
    }
    assert errors["fp32"] < 1e-6
    # fp16 has 11 significant bits, bf16 8: a factor of eight.
    assert 4 < errors["bf16"] / errors["fp16"] < 16
    assert errors["int8"] > errors["bf16"]


def test_errors_grow_with_depth_and_are_repeatable() -> None:
    assert emulated("fp16", "fp16", 12).relative_error > emulated("fp16", "fp16", 2).relative_error
    assert emulated("bf16", "fp32", 4) == emulated("bf16", "fp32", 4)


def test_the_format_comes_from_the_graph(small: Setup) -> None:
    assert precision_of(small).format == "fp16"
    assert precision_of(with_options(small, precision="int8")).format == "int8"
    fused = precision_of(with_options(small, precision="int8", fused_attention=True))
    assert (fused.format, fused.scores) == ("int8", "fp32")


def test_only_what_changes_a_format_costs_precision(small: Setup) -> None:
    assert precision_loss(small, with_options(small, stream_depth=64, graph_launch=True)) == 0.0
    assert precision_loss(small, with_options(small, precision="int8")) > 0.005
    assert precision_loss(small, with_options(small, precision="fp32")) == 0.0


def test_quantised_communication_costs_only_where_ranks_talk(small: Setup) -> None:
    assert precision_loss(small, with_options(small, quantized_comm=True)) == 0.0
    job = msgspec.structs.replace(small, model="qwen3-0.6b-decode", options=Options(tensor_parallel=2))
    assert precision_loss(job, with_options(job, quantized_comm=True)) > 0.001
