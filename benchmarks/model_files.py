"""What the simulator makes of real model files and pipelines, and how fast.

    python benchmarks/model_files.py [--models DIR ..] [--seed N] [--out rows.jsonl]

Reads the ``light_*`` networks of the ``onnx`` package and every .onnx file under each DIR (sizes of known models stand in
``data/model_inputs.json``; unpack a wheel such as silero-vad or rapidocr-onnxruntime to measure its models), simulates each to
a full session and diagnoses it. Then a made network of 500 operators, and ten nodes of a pipeline over ten minutes.

CPU times in ms, the best of three. The last line is JSON: ``models``, ``operators``, ``costed_share``, ``worst_share``,
``refused``, ``cpu_500_ms`` (file to session), ``cpu_pipeline_s``, ``pipeline_requests``, ``t0_cpu_s`` (importing numpy).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import msgspec

from kb.domain.pipeline import ArrivalSpec, NodeSpec, PipelineSpec, Route, ServiceTime
from kb.domain.soc import Soc
from kb.errors import KbError
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.graph_file import packed
from kb.profile.simulated.imported import operator_coverage
from kb.profile.simulated.model_files import read_model
from kb.profile.simulated.onnx.binding import Given, given_from
from kb.profile.simulated.onnx.lowering import graph_of_onnx
from kb.profile.simulated.options import Options
from kb.profile.simulated.pipelines.engine import run_pipeline
from kb.profile.simulated.pipelines.figures import figures
from kb.profile.simulated.run import Setup, simulate
from kb.workflow.diagnose import diagnose_sessions
from kb.workflow.location import shipped_catalogue

ROOT = Path(__file__).resolve().parent
SOC = ROOT.parent / "recipes" / "catalogue" / "soc" / "910b2.json"
REPEATS = 3


class Sizes(msgspec.Struct, frozen=True):
    """What a model's inputs are given."""

    input_shape: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


class Row(msgspec.Struct, frozen=True):
    """One model file; ``error`` empty when it ran."""

    model: str
    operators: int = 0
    costed: int = 0
    kernels: int = 0
    by_bytes: tuple[str, ...] = ()
    cpu_ms: float = 0.0
    step_ms: float = 0.0
    findings: tuple[str, ...] = ()
    error: str = ""


def main() -> None:
    """Measure everything, then print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    soc = msgspec.json.decode(SOC.read_bytes(), type=Soc)
    sizes = msgspec.json.decode((ROOT / "data" / "model_inputs.json").read_bytes(), type=dict[str, Sizes])
    rows = [_measured(path, sizes.get(path.stem, Sizes()), soc, arguments.seed) for path in _paths(arguments.models)]
    if arguments.out:
        arguments.out.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    ran = [row for row in rows if not row.error]
    made = _chain(500)
    spec = _pipeline()
    flow = run_pipeline(spec, 600.0, arguments.seed)
    print(
        json.dumps(
            {
                "models": len(ran),
                "operators": sum(row.operators for row in ran),
                "costed_share": sum(row.costed for row in ran) / max(1, sum(row.operators for row in ran)),
                "worst_share": min((row.costed / row.operators for row in ran), default=0.0),
                "refused": [row.model for row in rows if row.error],
                "cpu_500_ms": _best(lambda: _session(made, soc, arguments.seed)) * 1e3,
                "cpu_pipeline_s": _best(lambda: figures(spec, run_pipeline(spec, 600.0, arguments.seed))),
                "pipeline_requests": len(flow.arrived),
                "t0_cpu_s": _t0(),
            }
        )
    )


def _paths(folders: list[Path]) -> Iterator[Path]:
    import onnx

    yield from sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("light_*.onnx"))
    for folder in folders:
        yield from sorted(folder.rglob("*.onnx"))


def _measured(path: Path, sizes: Sizes, soc: Soc, seed: int) -> Row:
    given = given_from(sizes.input_shape, sizes.dims, sizes.values)
    try:
        graph = read_model(path, shapes=given.shapes, dims=given.dims, values=given.values)
    except KbError as error:
        print(f"{path.stem:34} {error.what}", file=sys.stderr)
        return Row(path.stem, error=error.what)
    costed, total, unknown = operator_coverage(graph, load_constants())
    setup = Setup(model=graph.name, soc=soc, seed=seed, options=Options(batch=graph.batch), graph=packed(graph))
    session, truth = simulate(setup)
    diagnosis = diagnose_sessions((session,), shipped_catalogue()).diagnosis
    spent = _best(lambda: _from_file(path, given, soc, seed))
    row = Row(
        path.stem, total, costed, truth.kernels, unknown, spent * 1e3, truth.steps[-1].step_ns / 1e6,
        tuple(finding.cause for finding in diagnosis.all_findings()),
    )  # fmt: skip
    print(
        f"{row.model:34} {row.costed:5}/{row.operators:<5} operators {row.kernels:5} kernels {row.cpu_ms:7.1f} ms CPU "
        f"{row.step_ms:8.3f} ms a step  {', '.join(row.findings[:3])}",
        file=sys.stderr,
    )
    return row


def _from_file(path: Path, given: Given, soc: Soc, seed: int) -> None:
    graph = read_model(path, shapes=given.shapes, dims=given.dims, values=given.values)
    simulate(Setup(model=graph.name, soc=soc, seed=seed, options=Options(batch=graph.batch), graph=packed(graph)))


def _session(data: bytes, soc: Soc, seed: int) -> None:
    graph = graph_of_onnx(data, "made.onnx")
    simulate(Setup(model="made", soc=soc, seed=seed, options=Options(batch=graph.batch), graph=packed(graph)))


def _best(work: Callable[[], object]) -> float:
    """CPU seconds of the fastest of a few calls."""
    spent = []
    for _ in range(REPEATS):
        begin = time.process_time()
        work()
        spent.append(time.process_time() - begin)
    return min(spent)


def _chain(count: int) -> bytes:
    """Convolutions, activations and sums in turn: ``count`` operators, none of which folds away."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    nodes, value = [], "x"
    for number in range(count):
        kind = ("Conv", "Relu", "Add")[number % 3]
        settings: dict[str, Any] = {"pads": [1, 1, 1, 1]} if kind == "Conv" else {}
        inputs = {"Conv": [value, "w"], "Relu": [value], "Add": [value, "x"]}[kind]
        nodes.append(helper.make_node(kind, inputs, [f"v{number}"], **settings))
        value = f"v{number}"
    shape = [1, 32, 56, 56]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.zeros((32, 32, 3, 3), np.float32), "w")],
    )
    data: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    return data


def _pipeline() -> PipelineSpec:
    """Ten nodes at the rate the article names, every second with a buffer of its own."""
    nodes = tuple(
        NodeSpec(
            name=f"n{number}",
            service=ServiceTime("gamma", 40.0 + number, 0.5),
            concurrency=4,
            buffer=8 if number % 2 else None,
            routes=(Route(f"n{number + 1}"),) if number < 9 else (),
        )
        for number in range(10)
    )
    return PipelineSpec(format="kb-pipeline/1", name="ten", entry="n0", arrivals=ArrivalSpec(rate=63.0), nodes=nodes)


def _t0() -> float:
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "import numpy"], check=True)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
