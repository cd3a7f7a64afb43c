"""How far the simulator is from published measurements, beside a naive roofline on the same rows.

    python benchmarks/simulator_accuracy.py --shared FOLDER [--out rows.jsonl]

``FOLDER`` holds ``data/hardware`` and ``data/profiles``. One line a data set; the last line is JSON over the rows no
constant was fitted on. Times in it are relative errors (0..1); ``n`` counts rows.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from kb.domain.soc import Soc, Sourced
from kb.profile.simulated.chip import Chip, chip_of
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.graph import FlashAttention, MatMul
from kb.profile.simulated.prediction import flash_attention, matmul, predicted

SOC_FOLDER = Path(__file__).resolve().parents[1] / "recipes" / "catalogue" / "soc"
SAMPLE = Path("data/profiles/ascend/qwen3-0.6b-train-pp2-dp2")
Row = Mapping[str, str]


class Judged(msgspec.Struct, frozen=True):
    """One measured kernel. ``roofline_ns`` = max(work / peak, bytes / nominal bandwidth)."""

    data: str
    kind: Literal["matmul", "attention"]
    fitted: bool
    shape: tuple[int, ...]
    measured_ns: float
    predicted_ns: float
    roofline_ns: float

    @property
    def error(self) -> float:
        """Relative error of the model, signed."""
        return self.predicted_ns / self.measured_ns - 1.0

    @property
    def roofline_error(self) -> float:
        """Relative error of the roofline, signed."""
        return self.roofline_ns / self.measured_ns - 1.0


def catalogue_soc(name: str) -> Soc:
    """A chip of the catalogue."""
    return msgspec.json.decode((SOC_FOLDER / f"{name}.json").read_bytes(), type=Soc)


def altered(soc: Soc, source: str, **values: float) -> Soc:
    """The chip with other figures, as a row's source states or implies them."""
    changes = {field: Sourced(value, getattr(soc, field).unit, source, "medium") for field, value in values.items()}
    return msgspec.structs.replace(soc, **changes)


def judged(shared: Path) -> tuple[Judged, ...]:
    """All rows of all data sets."""
    return tuple(row for read in READERS for row in read(shared))


def _judge(data: str, fitted: bool, operator: MatMul | FlashAttention, soc: Soc, measured_ns: float, *, cold: bool) -> Judged:
    constants = load_constants()
    chip = chip_of(soc, constants)
    shape = (operator.m, operator.k, operator.n) if isinstance(operator, MatMul) else (operator.queries, operator.heads, operator.width)
    kind: Literal["matmul", "attention"] = "matmul" if isinstance(operator, MatMul) else "attention"
    time = predicted(operator, chip, constants, cold=cold)
    return Judged(data, kind, fitted, shape, measured_ns, time.total, _roofline(operator, soc, chip))


def _roofline(operator: MatMul | FlashAttention, soc: Soc, chip: Chip) -> float:
    moved = sum(tensor.bytes for tensor in (*operator.inputs, *operator.outputs))
    return max(operator.flop / (chip.mac_rate * chip.cube_cores), moved / soc.memory_bandwidth.value)


def _rows(shared: Path, name: str) -> Iterator[Row]:
    with (shared / "data" / "hardware" / name).open(encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _gemm(shared: Path) -> Iterator[Judged]:
    for row in _rows(shared, "gemm_a3.csv"):
        operator = matmul(int(row["m"]), int(row["k"]), int(row["n"]), out_dtype="FLOAT")
        yield _judge("gemm_a3", True, operator, catalogue_soc("910c-die"), float(row["time_ms"]) * 1e6, cold=False)


def _torch_matmul(shared: Path) -> Iterator[Judged]:
    for row in _rows(shared, "matmul_910b2.csv"):
        operator = matmul(int(row["m"]), int(row["k"]), int(row["n"]))
        measured = operator.flop / float(row["tflops_read_off"]) / 1e3
        yield _judge(f"matmul_910b2 n={row['n']}", row["n"] == "16384", operator, catalogue_soc("910b2"), measured, cold=False)


def _attention(shared: Path) -> Iterator[Judged]:
    for row in _rows(shared, "flash_attention_910b2.csv"):
        operator = flash_attention(int(row["seq_len"]), int(row["heads"]), int(row["head_dim"]))
        measured = float(row["torch_npu_us"]) * 1e3
        yield _judge("flash_attention_910b2", row["seq_len"] == "1024", operator, catalogue_soc("910b2"), measured, cold=False)


def _decode(shared: Path) -> Iterator[Judged]:
    soc = altered(catalogue_soc("910c-die"), "decode_gemm_a3.csv", clock=1850)
    for row in _rows(shared, "decode_gemm_a3.csv"):
        operator = matmul(int(row["m"]), int(row["k"]), int(row["n"]), dtype="DT_BF16", out_dtype="FLOAT")
        yield _judge("decode_gemm_a3", False, operator, soc, float(row["launch_wall_us"]) * 1e3, cold=True)


def _training(shared: Path) -> Iterator[Judged]:
    """MatMulV3 shapes of a real training step: 20 cores at 1,650 MHz, memory taken for the 800 GB/s part."""
    soc = altered(catalogue_soc("910b4"), "counters and cache behaviour of the sample", clock=1650, l2=192)
    for (inputs, output), durations in sorted(_sample_products(shared).items()):
        m, n = map(int, output.split(","))
        rows, columns = map(int, inputs.split(";")[0].split(","))
        operator = matmul(m, rows * columns // m, n, dtype="DT_BF16", out_dtype="DT_BF16")
        yield _judge("qwen3 MatMulV3", False, operator, soc, statistics.median(durations) * 1e3, cold=False)


def _sample_products(shared: Path) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = {}
    for rank in (0, 2):
        path = shared / SAMPLE / f"rank_{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
        with path.open(encoding="utf-8-sig") as file:
            for row in csv.DictReader(file):
                if row["Type"] == "MatMulV3":
                    shapes = row["Input Shapes"].strip('"'), row["Output Shapes"].strip('"')
                    found.setdefault(shapes, []).append(float(row["Duration(us)"]))
    return found


READERS: tuple[Callable[[Path], Iterator[Judged]], ...] = (_gemm, _torch_matmul, _attention, _decode, _training)


def median_error(rows: Sequence[Judged], *, roofline: bool = False) -> float:
    """Median of the absolute relative errors."""
    return statistics.median(abs(row.roofline_error if roofline else row.error) for row in rows)


def summary(rows: Sequence[Judged]) -> dict[str, float]:
    """The figures of the last line: rows no constant was fitted on."""
    unseen = [row for row in rows if not row.fitted]
    products, attention = ([row for row in unseen if row.kind == kind] for kind in ("matmul", "attention"))
    return {
        "matmul_median": median_error(products),
        "attention_median": median_error(attention),
        "sum_error": sum(row.predicted_ns for row in unseen) / sum(row.measured_ns for row in unseen) - 1.0,
        "naive_matmul_median": median_error(products, roofline=True),
        "naive_attention_median": median_error(attention, roofline=True),
        "n": len(unseen),
    }


def main() -> None:
    """Print one line a data set, then JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, required=True, help="folder that holds data/hardware and data/profiles")
    parser.add_argument("--out", type=Path, help="write every judged row as JSON lines")
    arguments = parser.parse_args()
    rows = judged(arguments.shared)
    for name in dict.fromkeys(row.data for row in rows):
        mine = [row for row in rows if row.data == name]
        fitted = sum(row.fitted for row in mine)
        total = sum(row.predicted_ns for row in mine) / sum(row.measured_ns for row in mine) - 1.0
        errors = f"median {median_error(mine):6.1%} sum {total:+6.1%} naive {median_error(mine, roofline=True):6.1%}"
        print(f"{name:24} n {len(mine):2} fitted {fitted} {errors}")
    if arguments.out:
        arguments.out.write_bytes(b"\n".join(msgspec.json.encode(row) for row in rows) + b"\n")
    print(json.dumps(summary(rows)))


if __name__ == "__main__":
    main()
