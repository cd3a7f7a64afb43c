"""The JSON form: round trips, its schema, and what is wrong in a file."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cli.program import Run, runner
from hypothesis import given
from hypothesis import strategies as st
from simulated.chips import chip_file

from kb.errors import ContentError, MalformedInputError, UsageError
from kb.profile.simulated.chip import chip_of
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.cost import kernel_times
from kb.profile.simulated.graph_file import GraphFile, OperatorSpec, TensorSpec, graph_bytes, graph_from, packed, unpacked
from kb.profile.simulated.imported import graph_of, workload_of
from kb.profile.simulated.layout import Seat
from kb.profile.simulated.models.names import MODELS
from kb.profile.simulated.options import Options
from kb.profile.sources import load

CONSTANTS = load_constants()
FOLDER = Path(__file__).resolve().parents[2] / "kb" / "profile" / "simulated"
EXAMPLE = FOLDER / "graph_file.example.json"


@pytest.fixture
def kb(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys)


@pytest.mark.parametrize("name", ["bert-base", "sdxl-unet", "resnet50-train", "yolov8n", "llama3-8b-decode", "mixtral-8x7b-prefill"])
def test_a_built_in_model_survives_the_file(name: str) -> None:
    entry, options = MODELS[name], Options()
    workload = entry.build(options, Seat(0, 0, 0, 0, 0))
    graph = graph_from(graph_bytes(graph_of(workload, name=name, family=entry.type, batch=1)), name)
    again = workload_of(graph, options, CONSTANTS)
    chip = chip_of(chip_file(), CONSTANTS)
    times, own = (kernel_times(made.segment, chip, CONSTANTS) for made in (again, workload))
    assert [time.total for time in times] == pytest.approx([time.total for time in own])
    assert (again.repeats, again.phase, again.input_bytes, again.host_work) == (
        workload.repeats, workload.phase, workload.input_bytes, workload.host_work,
    )  # fmt: skip


def test_communication_is_no_graph_file() -> None:
    options = Options(tensor_parallel=2)
    workload = MODELS["qwen3-0.6b-prefill"].build(options, Seat(0, 0, 0, 0, 0))
    with pytest.raises(UsageError, match="one rank"):
        graph_of(workload, name="x", family="llm", batch=1)


names = st.text(st.characters(min_codepoint=33, max_codepoint=0x4FFF), min_size=1, max_size=8)


@given(st.lists(st.tuples(names, st.lists(st.integers(1, 9), max_size=4)), min_size=2, max_size=8, unique_by=lambda entry: entry[0]))
def test_any_graph_survives_json_and_packing(entries: list[tuple[str, list[int]]]) -> None:
    tensors = tuple(TensorSpec(name, tuple(shape)) for name, shape in entries)
    operators = tuple(OperatorSpec("Relu", (a.name,), (b.name,)) for a, b in pairwise(tensors))
    graph = GraphFile(format="kb-graph/1", name="made", tensors=tensors, operators=operators)
    assert graph_from(graph_bytes(graph), "x") == graph
    assert unpacked(packed(graph), "x") == graph


def example() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    return made


def wrong(**changes: Any) -> bytes:
    return json.dumps(example() | changes).encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{}", "is not a graph"),
        (b"[1", "is not a graph"),
        (b"\xff\xfe", "is not a graph"),
        (wrong(format="other"), "is not a graph"),
        (wrong(colour="red"), "is not a graph"),
        (wrong(operators=[]), "no operators"),
        (wrong(batch=0), "impossible"),
        (wrong(tensors=[{"name": "x", "shape": [0]}]), "dimension 0"),
        (wrong(tensors=[{"name": "x", "shape": [-3]}]), "dimension -3"),
        (wrong(tensors=[{"name": "x", "shape": [1 << 41]}]), "elements"),
        (wrong(tensors=[*example()["tensors"], example()["tensors"][0]]), "two tensors are named"),
        (wrong(operators=[{"op_type": "Relu", "inputs": ["ghost"], "outputs": ["x"]}]), "which is no tensor"),
        (wrong(operators=list(reversed(example()["operators"]))), "the order is wrong or the graph is cyclic"),
        (wrong(tensors=[*example()["tensors"], {"name": "v", "shape": [1], "storage": "ghost"}]), "no tensor of its own"),
    ],
)
def test_wrong_files_name_the_place(data: bytes, message: str) -> None:
    with pytest.raises(ContentError, match=message) as caught:
        graph_from(data, "net.json")
    assert "net.json" in str(caught.value)


@pytest.mark.parametrize("shapes", [((2, 3), (4, 5), (2, 5)), ((1, 3, 8, 8), (4, 2, 3, 3), (1, 4, 8, 8))], ids=["product", "convolution"])
def test_products_whose_shapes_do_not_belong_together_are_refused(shapes: tuple[tuple[int, ...], ...]) -> None:
    kind = "MatMulV3" if len(shapes[0]) == 2 else "Conv2D"
    tensors = tuple(TensorSpec(name, shape) for name, shape in zip("abc", shapes, strict=True))
    graph = GraphFile(format="kb-graph/1", name="net", tensors=tensors, operators=(OperatorSpec(kind, ("a", "b"), ("c",), "layer1"),))
    with pytest.raises(ContentError, match=r"operator 0 \(layer1\)"):
        workload_of(graph, Options(), CONSTANTS)


def test_an_unknown_element_type_and_another_batch_are_refused() -> None:
    graph = GraphFile(
        format="kb-graph/1", name="net", tensors=(TensorSpec("a", (2,), "TERNARY"),), operators=(OperatorSpec("Relu", ("a",), ("a",)),)
    )
    with pytest.raises(ContentError, match="TERNARY"):
        workload_of(graph, Options(), CONSTANTS)
    with pytest.raises(UsageError, match="has batch 1, not 8"):
        workload_of(graph, Options(batch=8), CONSTANTS)


@pytest.mark.parametrize("text", ["", "!!", "c-muNVM&C"])
def test_a_damaged_packed_graph_is_malformed(text: str) -> None:
    with pytest.raises((MalformedInputError, ContentError)):
        unpacked(text, "x.prof")


def test_the_schema_beside_the_code_is_the_one_of_the_types(request: pytest.FixtureRequest) -> None:
    path = FOLDER / "graph_file.schema.json"
    if request.config.getoption("--remake-golden"):
        path.write_bytes(msgspec.json.format(msgspec.json.encode(msgspec.json.schema(GraphFile)), indent=2) + b"\n")
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert stored == json.loads(msgspec.json.encode(msgspec.json.schema(GraphFile)))


def test_the_example_is_a_graph() -> None:
    graph = graph_from(EXAMPLE.read_bytes(), "example")
    assert workload_of(graph, Options(batch=graph.batch), CONSTANTS).segment.operators


@pytest.mark.parametrize("suffix", ["json", "om"])
def test_the_command_writes_graphs_that_collect_reads(kb: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path, suffix: str) -> None:
    target, capture = tmp_path / f"bert.{suffix}", tmp_path / "bert.prof"
    made = kb("simulate", "model", "bert-base", "-o", str(target), "--sequence", "64", "--json")
    assert made.status == 0
    profiler = runner(capsys, "profiler")
    assert profiler("collect", "--model", str(target), "--output", str(capture), "--set", "graph_launch=true").status == 0
    direct = kb(
        "simulate", "model", "bert-base", "--sequence", "64", "--output", str(tmp_path / "direct.prof"), "--set", "graph_launch=true"
    )
    assert direct.status == 0
    spent = [int(load(path)[0].tables["kernels"]["duration_ns"].sum()) for path in (capture, tmp_path / "direct.prof")]
    assert spent[0] == pytest.approx(spent[1], rel=0.06)


def test_the_list_names_models_pipelines_and_chips(kb: Run) -> None:
    listed = kb("simulate", "list", "--json").json()
    assert {entry["name"] for entry in listed["models"]} == set(MODELS)
    assert "multilingual_gen" in listed["pipelines"]
    assert "910b2" in listed["socs"]
    assert "sd3" in kb("simulate", "list", "--lang", "zh").out
