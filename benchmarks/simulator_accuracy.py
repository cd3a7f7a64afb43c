"""How far the simulator is from measured kernels, beside two rooflines on the same rows.

    python benchmarks/simulator_accuracy.py [--shared FOLDER] [--rows FILE.csv ...] [--out rows.jsonl]

Without ``--rows`` the built-in rows are judged: the tables of ``FOLDER/data/hardware`` and the kernels of the real
samples in ``FOLDER/data/profiles`` (default: a folder ``shared`` beside the checkout). Rows that served to fit constants
are shown but never counted. With ``--rows`` the rows of the CSV files are judged instead; columns ``soc, op_type,
input_shapes, input_dtypes, block_dim, duration_us``. ``soc`` is a name of the catalogue or ``CORES x MHZ``; the bare
"910B" is read from the rows (see ``kb.profile.simulated.socs``); an unknown one is taken for the nearest and said.

Progress goes to standard error. The last line is JSON; medians and ``sum_error`` are relative (0..1), null without rows.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.simulator_rows import Sample, builtin_samples
from kb.domain.soc import Soc
from kb.errors import NotFoundError
from kb.profile.simulated.chip import Chip, chip_of
from kb.profile.simulated.constants import Constants, load_constants
from kb.profile.simulated.cube import rate_factor
from kb.profile.simulated.graph import CubeOperator, FlashAttention, Operator
from kb.profile.simulated.prediction import isolated, predicted_row
from kb.profile.simulated.recognition import is_fractal, operator_of
from kb.profile.simulated.rows import KernelRow, read_rows, with_first_generation_types
from kb.profile.simulated.socs import find_soc, is_old_910b, which_910b

ROOT = Path(__file__).resolve().parents[1]
SOC_FOLDER = ROOT / "recipes" / "catalogue" / "soc"
SHARED = ROOT.parent / "shared"
CUBE_SHARE, MEMORY_SHARE = 0.7, 0.6
"""Efficiencies of the roofline others ship (Ascend/msmodeling)."""


class Judged(msgspec.Struct, frozen=True):
    """One measured kernel. ``naive_ns`` = max(work / peak, bytes / nominal bandwidth); ``roofline76_ns`` with efficiencies."""

    data: str
    soc: str
    op_type: str
    kind: str
    operator_class: str
    fitted: bool
    input_shapes: str
    blocks: int
    measured_ns: float
    predicted_ns: float
    naive_ns: float
    roofline76_ns: float

    def error(self, which: str = "predicted_ns") -> float:
        """Relative error, signed."""
        return float(getattr(self, which)) / self.measured_ns - 1.0


def catalogue() -> dict[str, Soc]:
    """The chips of the catalogue by id."""
    chips = (msgspec.json.decode(path.read_bytes(), type=Soc) for path in sorted(SOC_FOLDER.glob("*.json")))
    return {chip.id: chip for chip in chips}


def judge(sample: Sample, socs: Mapping[str, Soc], constants: Constants) -> tuple[Judged, ...]:
    """All rows of a sample; equal kernels are computed once."""
    rows = _typed(sample, constants)
    chips = {name: sample.soc or _resolved(name, rows, socs) for name in dict.fromkeys(row.soc for row in rows)}
    known: dict[tuple[object, ...], tuple[float, float, float, str, str]] = {}
    found = []
    for row, fitted in zip(rows, sample.fitted or (False,) * len(rows), strict=True):
        key = (row.soc, row.op_type, row.shapes, row.dtypes, row.blocks)
        if key not in known:
            known[key] = _figures(row, chips[row.soc], constants)
        predicted, naive, roofline76, kind, group = known[key]
        shapes = ";".join(",".join(map(str, shape)) for shape in row.shapes)
        found.append(
            Judged(
                sample.name,
                chips[row.soc].id,
                row.op_type,
                kind,
                group,
                fitted,
                shapes,
                row.blocks,
                row.duration_ns,
                predicted,
                naive,
                roofline76,
            )
        )
    return tuple(found)


def _typed(sample: Sample, constants: Constants) -> tuple[KernelRow, ...]:
    """Rows with the element types of first-generation exports put right, chip by chip."""
    groups: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(sample.rows):
        groups[row.soc].append(place)
    rows = list(sample.rows)
    for places in groups.values():
        mine = [rows[place] for place in places]
        if not _first_generation(mine):
            continue
        cube = [constants.kinetics(row.op_type).cost == "cube" for row in mine]
        for place, row in zip(places, with_first_generation_types(mine, cube), strict=True):
            rows[place] = row
    return tuple(rows)


def _first_generation(rows: Sequence[KernelRow]) -> bool:
    name = rows[0].soc
    if is_old_910b(name):
        return which_910b(max(row.blocks for row in rows), _blocks_format(rows)) == "910b-gen1"
    try:
        return find_soc(name, catalogue()).vector_cores.value == 0
    except NotFoundError:
        return False


def _blocks_format(rows: Iterable[KernelRow]) -> bool:
    products = [row for row in rows if "MatMul" in row.op_type and row.shapes]
    return sum(is_fractal(row.shapes[0]) for row in products) > len(products) / 2


def _resolved(name: str, rows: Sequence[KernelRow], socs: Mapping[str, Soc]) -> Soc:
    if is_old_910b(name):
        mine = [row for row in rows if row.soc == name]
        return socs[which_910b(max(row.blocks for row in mine), _blocks_format(mine))]
    try:
        return find_soc(name, socs)
    except NotFoundError as error:
        nearest = (error.allowed or "").removeprefix("nearest: ").split(",")[0].split(";")[0]
        print(f"unknown SoC {name!r}: judged as {nearest}", file=sys.stderr)
        return socs[nearest]


def _figures(row: KernelRow, soc: Soc, constants: Constants) -> tuple[float, float, float, str, str]:
    chip = chip_of(soc, constants)
    operator = operator_of(row, constants)
    kind = constants.kinetics(row.op_type).kind
    work, moved = _bounds(operator, soc, chip, constants)
    roofline76 = max(work / CUBE_SHARE, moved / MEMORY_SHARE)
    return predicted_row(row, chip, constants).total, max(work, moved), roofline76, kind, _class(operator, kind)


def _class(operator: Operator, kind: str) -> str:
    if isinstance(operator, FlashAttention):
        return "attention"
    if isinstance(operator, CubeOperator):
        return "convolution" if kind == "convolution" else "matmul"
    return "vector"


def _bounds(operator: Operator, soc: Soc, chip: Chip, constants: Constants) -> tuple[float, float]:
    """(ns of work at the peak, ns of bytes at the nominal device memory rate)."""
    traffic = isolated(operator, chip, constants)
    moved = (traffic.read + traffic.written) / soc.memory_bandwidth.value
    peak = chip.mac_rate * chip.cube_cores
    if isinstance(operator, CubeOperator):
        return operator.flop / (peak * rate_factor(operator, chip, constants)), moved
    if isinstance(operator, FlashAttention):
        return operator.flop / peak, moved
    return max((tensor.elements for tensor in operator.outputs), default=0) / chip.vector_pass_rate, moved


def median_error(rows: Sequence[Judged], which: str = "predicted_ns") -> float | None:
    """Median of the absolute relative errors; None without rows."""
    return statistics.median(abs(row.error(which)) for row in rows) if rows else None


def summary(rows: Sequence[Judged]) -> dict[str, float | int | None]:
    """The figures of the last line, over the rows no constant was fitted on."""
    unseen = [row for row in rows if not row.fitted]
    of = {name: [row for row in unseen if row.operator_class == name] for name in ("matmul", "attention", "vector")}
    measured = sum(row.measured_ns for row in unseen)
    return {
        "matmul_median": median_error(of["matmul"]),
        "attention_median": median_error(of["attention"]),
        "vector_median": median_error(of["vector"]),
        "sum_error": sum(row.predicted_ns for row in unseen) / measured - 1.0 if measured else None,
        "naive_matmul_median": median_error(of["matmul"], "naive_ns"),
        "naive_vector_median": median_error(of["vector"], "naive_ns"),
        "roofline76_matmul_median": median_error(of["matmul"], "roofline76_ns"),
        "roofline76_vector_median": median_error(of["vector"], "roofline76_ns"),
        "n": len(unseen),
    }


def report(rows: Sequence[Judged]) -> Iterable[str]:
    """A line a data set and operator class: n, median, P90, sum, rooflines."""
    for key in dict.fromkeys((row.data, row.fitted, row.operator_class) for row in rows):
        mine = [row for row in rows if (row.data, row.fitted, row.operator_class) == key]
        yield _line(f"{key[0]} {'fitted' if key[1] else 'unseen'} {key[2]}", mine)
    unseen = [row for row in rows if not row.fitted]
    for group in dict.fromkeys(row.operator_class for row in unseen):
        yield _line(f"all unseen {group}", [row for row in unseen if row.operator_class == group])
    unknown = Counter(row.op_type for row in unseen if row.kind == "unknown")
    if unknown:
        nearest = load_constants().nearest
        listed = ", ".join(f"{name} ({count}, nearest known {nearest(name)})" for name, count in unknown.most_common())
        yield f"unknown operators, costed by the bytes they move: {listed}"


def _line(name: str, rows: Sequence[Judged]) -> str:
    errors = sorted(abs(row.error()) for row in rows)
    total = sum(row.predicted_ns for row in rows) / sum(row.measured_ns for row in rows) - 1.0
    others = f"naive {median_error(rows, 'naive_ns'):6.1%} roofline76 {median_error(rows, 'roofline76_ns'):6.1%}"
    p90 = errors[min(len(errors) - 1, int(0.9 * len(errors)))]
    return f"{name:48} n {len(rows):5} median {median_error(rows):6.1%} p90 {p90:6.1%} sum {total:+6.1%} {others}"


def main() -> None:
    """Print a line a data set and class, then JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder that holds data/hardware and data/profiles")
    parser.add_argument("--rows", type=Path, nargs="+", default=[], action="extend", help="CSV files of measured kernels to judge instead")
    parser.add_argument("--out", type=Path, help="write every judged row as JSON lines")
    arguments = parser.parse_args()
    samples = list(builtin_samples(arguments.shared)) if not arguments.rows else []
    for path in arguments.rows:
        rows, left_out = read_rows(path)
        samples.append(Sample(path.name, rows))
        for line in left_out[:5]:
            print(f"{path.name}: left out {line}", file=sys.stderr)
        if left_out:
            print(f"{path.name}: {len(left_out)} rows left out of {len(left_out) + len(rows)}", file=sys.stderr)
    socs, constants = catalogue(), load_constants()
    judged = [row for sample in samples for row in judge(sample, socs, constants)]
    for line in report(judged):
        print(line, file=sys.stderr)
    if arguments.out:
        arguments.out.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in judged))
    print(json.dumps(summary(judged)))


if __name__ == "__main__":
    main()
