"""Measured kernels become the operators they were."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from simulated.chips import NAMES, chip_file

from kb.profile.simulated.chip import chip_of
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.graph import Conv2D, FlashAttention, MatMul
from kb.profile.simulated.prediction import predicted_row
from kb.profile.simulated.recognition import operator_of
from kb.profile.simulated.rows import KernelRow, Shape

CONSTANTS = load_constants()


def row(op_type: str, *shapes: Shape, dtype: str = "FLOAT16", blocks: int = 0) -> KernelRow:
    return KernelRow("910b2", op_type, shapes, (dtype,) * len(shapes), blocks, 1e3)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (((4096, 1024), (1024, 6144)), (1, 4096, 1024, 6144, False)),
        (((4096, 1024), (6144, 1024)), (1, 4096, 1024, 6144, False)),
        (((4096, 6144), (4096, 1024)), (1, 6144, 4096, 1024, True)),
        (((8, 128, 64), (8, 64, 256)), (8, 128, 64, 256, False)),
        (((2, 128, 64), (64, 256)), (1, 256, 64, 256, False)),
        (((48, 256, 16, 16), (192, 48, 16, 16)), (1, 4096, 768, 3072, False)),
        (((4, 12, 4, 8, 16, 16), (4, 12, 8, 4, 16, 16)), (48, 128, 64, 128, False)),
    ],
)
def test_products_are_read_in_either_layout(shapes: tuple[Shape, Shape], expected: tuple[int, int, int, int, bool]) -> None:
    found = operator_of(row("MatMulV2", *shapes), CONSTANTS)
    assert isinstance(found, MatMul)
    assert (found.batch, found.m, found.k, found.n, found.transposed) == expected


def test_a_convolution_and_its_gradients_do_the_same_work() -> None:
    image, out, weight = (32, 24, 13, 13, 8), (32, 48, 13, 13, 8), (216, 24, 16, 8)
    kernels = [
        row("Conv2D", image, weight, (384,), dtype="FLOAT"),
        row("Conv2DBackpropInput", (4,), weight, out, dtype="FLOAT"),
        row("Conv2DBackpropFilter", image, (4,), out, dtype="FLOAT"),
    ]
    found = [operator_of(kernel, CONSTANTS) for kernel in kernels]
    for operator in found:
        assert isinstance(operator, Conv2D)
        assert operator.flop == 2 * 32 * 13 * 13 * 192 * 384 * 9


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((2, 16, 4096, 128), (32, 4096, 128)),
        ((2, 4096, 16, 128), (32, 4096, 128)),
        ((4096, 1, 2048), (16, 4096, 128)),
        ((1, 4096, 2048), (16, 4096, 128)),
        ((4096, 16, 128), (16, 4096, 128)),
    ],
)
def test_attention_is_read_in_every_layout(shape: Shape, expected: tuple[int, int, int]) -> None:
    found = operator_of(row("FlashAttentionScore", shape, shape, shape), CONSTANTS)
    assert isinstance(found, FlashAttention)
    assert (found.heads, found.queries, found.width) == expected
    assert not found.causal


def test_a_compressed_mask_means_causal_and_a_gradient_does_more() -> None:
    shape = (4096, 1, 2048)
    plain, causal = (operator_of(row("FlashAttentionScore", shape, shape, shape, *mask), CONSTANTS) for mask in ((), ((2048, 2048),)))
    gradient = operator_of(row("FlashAttentionScoreGrad", shape, shape, shape, shape), CONSTANTS)
    assert isinstance(plain, FlashAttention)
    assert isinstance(causal, FlashAttention)
    assert isinstance(gradient, FlashAttention)
    assert causal.flop == plain.flop / 2
    assert gradient.flop == 2.5 * plain.flop


KINDS = {
    "FusionOp_MatMul_GeLUGrad": "matmul",
    "FusionOp_BatchMatMul_FusedMulAdd": "matmul",
    "LayerNormXBackpropV2": "row_gradient",
    "LambApplyOptimizerAssign": "optimizer",
    "DropOutDoMask": "dropout",
    "TransData": "format",
    "StridedSliceD": "slice",
    "SoftmaxV2": "row",
    "MaxPoolGradWithArgmax": "pool",
    "ReduceSumD": "reduction",
    "AtomicAddrClean": "fill",
    "Conv2DBackpropFilterD": "convolution",
    "FusedInferAttentionScore": "attention",
    "ApplyRotaryPosEmb": "rotary",
    "Nonsense": "unknown",
}


@pytest.mark.parametrize(("op_type", "kind"), sorted(KINDS.items()))
def test_operator_types_of_all_generations_have_a_kind(op_type: str, kind: str) -> None:
    assert CONSTANTS.kinetics(op_type).kind == kind


@given(
    st.sampled_from([*KINDS, "Cast", "Add", "ConcatD", "GatherV2", "ForeachAddList", "IncreFlashAttention"]),
    st.lists(st.lists(st.integers(0, 3000), max_size=6).map(tuple), max_size=5),
    st.sampled_from(["FLOAT16", "DT_BF16", "FLOAT", "INT64", "BOOL"]),
    st.integers(0, 300),
    st.sampled_from(NAMES),
)
@example("Conv2DBackpropFilterD", [(0, 1, 0, 0)], "FLOAT16", 0, "310b1")
@example("Conv2D", [(1, 16, 8, 8), (0, 1, 16, 16)], "FLOAT16", 0, "910b2")
def test_any_row_is_costed_with_a_positive_finite_time(op_type: str, shapes: list[Shape], dtype: str, blocks: int, soc: str) -> None:
    kernel = KernelRow(soc, op_type, tuple(shapes), (dtype,) * len(shapes), blocks, 1.0)
    time = predicted_row(kernel, chip_of(chip_file(soc), CONSTANTS), CONSTANTS)
    assert 0 < time.total < float("inf")
