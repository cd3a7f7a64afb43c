"""The measured kernels the accuracy report has built in, and which of them served to fit constants.

Fitted on: ``gemm_a3.csv``, the rows of ``matmul_910b2.csv`` with n = 16384, flash attention at 1,024 tokens, rank 0 of the
Qwen3-0.6B sample (attention, vector kernels and products with a transposed left operand), and the half of the CNN sample
whose kernels have an even checksum. Everything else is unseen, but a kernel seen in a fitted part stays fitted.
"""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kb.domain.soc import Soc, Sourced
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.graph import CubeOperator
from kb.profile.simulated.recognition import operator_of
from kb.profile.simulated.rows import KernelRow, row_of

SOC_FOLDER = Path(__file__).resolve().parents[1] / "recipes" / "catalogue" / "soc"
SAMPLES = Path("data/profiles/ascend")
ASCEND = "ASCEND_PROFILER_OUTPUT/kernel_details.csv"
NOT_KERNELS = ("AI_CPU", "DSA_SQE", "HCCL", "COMMUNICATION", "N/A")


class Sample(msgspec.Struct, frozen=True):
    """Rows of one source. ``fitted`` has an entry a row, or none when nothing was fitted; ``soc`` overrides the rows' own."""

    name: str
    rows: tuple[KernelRow, ...]
    fitted: tuple[bool, ...] = ()
    soc: Soc | None = None


def builtin_samples(shared: Path) -> Iterator[Sample]:
    """Every built-in source under ``shared``."""
    hardware = shared / "data" / "hardware"
    yield _gemm(_csv(hardware / "gemm_a3.csv"))
    yield _torch_matmul(_csv(hardware / "matmul_910b2.csv"))
    yield _flash_attention(_csv(hardware / "flash_attention_910b2.csv"))
    yield _decode(_csv(hardware / "decode_gemm_a3.csv"))
    yield from _training(shared)
    yield from _convolutions(shared)
    for rank in (0, 1):
        rows = _kernels(shared / SAMPLES / "formats-2023" / f"torch_npu_rank{rank}" / ASCEND, "910b2")
        yield Sample(f"formats-2023 rank {rank}", rows)


def _csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def _chip(name: str, source: str, **figures: float) -> Soc:
    soc = msgspec.json.decode((SOC_FOLDER / f"{name}.json").read_bytes(), type=Soc)
    changes = {field: Sourced(value, getattr(soc, field).unit, source, "medium") for field, value in figures.items()}
    return msgspec.structs.replace(soc, **changes)


def _product(soc: str, m: int, k: int, n: int, dtype: str, blocks: int, ns: float) -> KernelRow:
    return KernelRow(soc, "MatMulV3", ((m, k), (k, n)), (dtype, dtype), blocks, ns)


def _gemm(rows: Sequence[Mapping[str, str]]) -> Sample:
    made = [_product("910c-die", int(row["m"]), int(row["k"]), int(row["n"]), "FLOAT16", 0, float(row["time_ms"]) * 1e6) for row in rows]
    return Sample("gemm_a3", tuple(made), (True,) * len(made))


def _torch_matmul(rows: Sequence[Mapping[str, str]]) -> Sample:
    made = []
    for row in rows:
        m, k, n = int(row["m"]), int(row["k"]), int(row["n"])
        made.append(_product("910b2", m, k, n, "FLOAT16", 0, 2e-3 * m * k * n / float(row["tflops_read_off"])))
    return Sample("matmul_910b2", tuple(made), tuple(row["n"] == "16384" for row in rows))


def _flash_attention(rows: Sequence[Mapping[str, str]]) -> Sample:
    made = []
    for row in rows:
        shape = (1, int(row["heads"]), int(row["seq_len"]), int(row["head_dim"]))
        made.append(KernelRow("910b2", "FlashAttentionScore", (shape,) * 3, ("FLOAT16",) * 3, 0, float(row["torch_npu_us"]) * 1e3))
    return Sample("flash_attention_910b2", tuple(made), tuple(row["seq_len"] == "1024" for row in rows))


def _decode(rows: Sequence[Mapping[str, str]]) -> Sample:
    made = []
    for row in rows:
        time = float(row["launch_wall_us"]) * 1e3
        made.append(_product("910c-die", int(row["m"]), int(row["k"]), int(row["n"]), "DT_BF16", int(row["blocks"]), time))
    return Sample("decode_gemm_a3", tuple(made), soc=_chip("910c-die", "decode_gemm_a3.csv", clock=1850))


def _training(shared: Path) -> Iterator[Sample]:
    """A real training step. Products whose left operand is read along its rows took no part in any fit."""
    constants = load_constants()
    rows = {
        rank: _kernels(shared / SAMPLES / "qwen3-0.6b-train-pp2-dp2" / f"rank_{rank}_ascend_pt" / ASCEND, "a2-20c-1650") for rank in (0, 2)
    }
    seen = {_key(row) for row in rows[0]}

    def served(row: KernelRow) -> bool:
        operator = operator_of(row, constants)
        return _key(row) in seen and not (isinstance(operator, CubeOperator) and not operator.transposed)

    yield Sample("qwen3 rank 0", rows[0], tuple(map(served, rows[0])))
    yield Sample("qwen3 rank 2", rows[2], tuple(map(served, rows[2])))


def _convolutions(shared: Path) -> Iterator[Sample]:
    for rank in (0, 1):
        rows = _kernels(shared / SAMPLES / "cnn-ddp-2rank-text" / f"rank{rank}_ascend_pt" / ASCEND, "910b2")
        yield Sample(f"cnn rank {rank}", rows, tuple(zlib.crc32(_key(row).encode()) % 2 == 0 for row in rows))


def _key(row: KernelRow) -> str:
    shapes = ";".join(",".join(map(str, shape)) for shape in row.shapes)
    return f"{row.op_type}|{shapes}|{';'.join(row.dtypes)}"


def _kernels(path: Path, soc: str) -> tuple[KernelRow, ...]:
    found = []
    for row in _csv(path):
        if row["Accelerator Core"] in NOT_KERNELS or row["Type"].isdigit():
            continue
        cells = (
            soc,
            row["Type"],
            row["Input Shapes"] or "",
            row["Input Data Types"] or "",
            row["Block Dim"] or "",
            row["Duration(us)"] or "",
        )
        try:
            found.append(row_of(cells))
        except ValueError:
            continue
    return tuple(found)
