"""The model against published measurements; fitted and unseen rows are judged apart."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.simulator_accuracy import Judged, catalogue, judge, median_error, summary
from benchmarks.simulator_rows import Sample, builtin_samples
from kb.errors import MalformedInputError, NotFoundError
from kb.profile.simulated.chip import chip_of
from kb.profile.simulated.constants import UNKNOWN, load_constants
from kb.profile.simulated.cost import kernel_time
from kb.profile.simulated.prediction import matmul
from kb.profile.simulated.residency import Traffic
from kb.profile.simulated.rows import KernelRow, dtypes_of, read_rows, shapes_of
from kb.profile.simulated.socs import find_soc, is_old_910b, which_910b
from kb.profile.simulated.tiling import Tiling

CONSTANTS = load_constants()
SOCS = catalogue()


@pytest.fixture(scope="module")
def rows(shared: Path) -> tuple[Judged, ...]:
    return tuple(row for sample in builtin_samples(shared) for row in judge(sample, SOCS, CONSTANTS))


def unseen(rows: Sequence[Judged], group: str) -> list[Judged]:
    return [row for row in rows if not row.fitted and row.operator_class == group]


# Operator class and the bar for the median error of rows no constant was fitted on.
@pytest.mark.parametrize(("group", "bar"), [("matmul", 0.15), ("attention", 0.20), ("vector", 0.30)])
def test_unseen_rows_meet_the_bar(rows: tuple[Judged, ...], group: str, bar: float) -> None:
    assert len(unseen(rows, group)) >= 8
    error = median_error(unseen(rows, group))
    assert error is not None
    assert error <= bar


@pytest.mark.parametrize("group", ["matmul", "attention", "vector"])
def test_the_error_is_at_most_half_of_the_better_roofline(rows: tuple[Judged, ...], group: str) -> None:
    mine = unseen(rows, group)
    ours = statistics.median(abs(row.error()) for row in mine)
    others = [statistics.median(abs(row.error(which)) for row in mine) for which in ("naive_ns", "roofline76_ns")]
    assert ours <= 0.5 * min(others)


def test_the_summary_has_exactly_the_named_keys_and_counts_repeats(rows: tuple[Judged, ...]) -> None:
    figures = summary(rows)
    assert list(figures) == [
        "matmul_median",
        "attention_median",
        "vector_median",
        "sum_error",
        "naive_matmul_median",
        "naive_vector_median",
        "roofline76_matmul_median",
        "roofline76_vector_median",
        "n",
    ]
    assert figures["n"] == sum(not row.fitted for row in rows)
    assert abs(figures["sum_error"] or 0) <= 0.20


def test_a_summary_without_rows_of_a_class_says_nothing_about_it() -> None:
    row = KernelRow("910b2", "Add", ((1024, 1024), (1024, 1024)), ("FLOAT16", "FLOAT16"), 48, 9e3)
    figures = summary(judge(Sample("one", (row,)), SOCS, CONSTANTS))
    assert (figures["matmul_median"], figures["attention_median"], figures["n"]) == (None, None, 1)


# Published L2 hit rates of FP16 products on a 910B2: size, tile rows walked together (1 = row by row), rate.
@pytest.mark.parametrize(("size", "band", "published"), [(4096, 0, 0.979), (16384, 1, 0.309), (16384, 12, 0.937)])
def test_l2_hit_rates_are_within_five_points_of_the_published_ones(size: int, band: int, published: float) -> None:
    operator = matmul(size, size, size)
    cold = tuple(float(operand.bytes) for operand in operator.inputs)
    traffic = Traffic(cold, int(sum(cold)), operator.outputs[0].bytes, 0.0)
    tiling = Tiling(tile_m=128, tile_n=256, swizzle=band)
    assert kernel_time(operator, traffic, chip_of(SOCS["910b2"], CONSTANTS), CONSTANTS, tiling=tiling).l2_hit == pytest.approx(
        published, abs=0.05
    )


# First generation: published ranges of BERT and ViT products (TFLOPS), by blocks started on 30 cores.
@pytest.mark.parametrize(("blocks", "low", "high"), [(30, 100, 160), (32, 45, 90)])
def test_first_generation_products_lie_in_the_published_ranges(blocks: int, low: float, high: float) -> None:
    shapes = ((768 // 16, 4096 // 16, 16, 16), (3072 // 16, 768 // 16, 16, 16))
    row = KernelRow("910b-gen1", "FusionOp_MatMul_AddN", shapes, ("FLOAT16", "FLOAT16"), blocks, 1.0)
    (judged,) = judge(Sample("one", (row,)), SOCS, CONSTANTS)
    assert judged.operator_class == "matmul"
    assert low <= 2 * 4096 * 768 * 3072 / judged.predicted_ns / 1e3 <= high


def test_shifted_element_types_of_first_generation_exports_are_put_right() -> None:
    product = KernelRow("910A", "MatMul", ((64, 64, 16, 16), (64, 64, 16, 16)), ("FLOAT", "FLOAT"), 32, 1e5)
    vector = KernelRow("910A", "Mul", ((4096, 4096), (4096, 4096)), ("FLOAT16", "FLOAT16"), 32, 1e5)
    shifted = judge(Sample("shifted", (product, vector)), SOCS, CONSTANTS)
    plain = judge(
        Sample(
            "plain",
            tuple(KernelRow(r.soc, r.op_type, r.shapes, (t, t), r.blocks, 1e5) for r, t in ((product, "FLOAT16"), (vector, "FLOAT"))),
        ),
        SOCS,
        CONSTANTS,
    )
    assert [row.predicted_ns for row in shifted] == [row.predicted_ns for row in plain]


@pytest.mark.parametrize(
    ("text", "chip", "clock"),
    [
        ("Ascend910B2", "910b2", 1800),
        ("910b4", "910b4", 1500),
        ("20x1650", "a2-20c-1650", 1650),
        ("20 cores @ 1800 MHz", "910b3", 1800),
        ("24c x 1700", "910b2", 1700),
        ("910_9382", "910b2", 1800),
        ("Ascend 910A", "910a", 1000),
    ],
)
def test_chips_are_found_by_name_and_by_cores_and_clock(text: str, chip: str, clock: float) -> None:
    found = find_soc(text, SOCS)
    assert (found.id, found.clock.value) == (chip, clock)


def test_an_unknown_chip_names_the_nearest() -> None:
    with pytest.raises(NotFoundError, match="no SoC named") as caught:
        find_soc("910b5", SOCS)
    assert caught.value.allowed is not None
    assert "910b" in caught.value.allowed


def test_the_bare_910b_is_read_from_the_rows() -> None:
    assert is_old_910b("Ascend910B")
    assert which_910b(32, block_formats=False) == "910b-gen1"
    assert which_910b(48, block_formats=True) == "910b-gen1"
    assert which_910b(48, block_formats=False) == "910b2"
    assert which_910b(40, block_formats=False) == "910b3"


def test_cells_of_every_spelling_are_read() -> None:
    assert shapes_of('"2,3;;4"') == ((2, 3), (), (4,))
    assert shapes_of("N/A") == ()
    assert shapes_of("[2, 3];[4]") == ((2, 3), (4,))
    assert dtypes_of("DT_BF16;fp32;DT_UNDEFINED") == ("DT_BF16", "FLOAT", "FLOAT")


def test_a_file_of_rows_is_read_and_bad_rows_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["soc", "op_type", "input_shapes", "input_dtypes", "block_dim", "duration_us"])
        writer.writerow(["910B3", "MatMulV3", '"4096,1024;1024,4096"', "DT_BF16;DT_BF16", "20", "160.5"])
        writer.writerow(["910B3", "Frobnicate", "1024,1024", "FLOAT16", "40", "7.5"])
        writer.writerow(["910B3", "Add", "8;8", "FLOAT;FLOAT", "1", "N/A"])
        writer.writerow(["910B3", "hcom_allReduce_", "8", "FLOAT", "1", "3"])
    found, left_out = read_rows(path)
    assert [row.op_type for row in found] == ["MatMulV3", "Frobnicate"]
    assert len(left_out) == 2
    judged = judge(Sample("file", found), SOCS, CONSTANTS)
    assert [row.kind for row in judged] == ["matmul", UNKNOWN]
    assert judged[1].predicted_ns > 0


def test_a_file_without_a_column_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("soc,op_type\n910b2,Add\n", encoding="utf-8")
    with pytest.raises(MalformedInputError, match="input_shapes"):
        read_rows(path)
