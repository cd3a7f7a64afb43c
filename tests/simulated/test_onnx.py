"""ONNX files: shapes as the format's own library infers them, kernels as the graph says, weights never read."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from simulated.chips import chip_file
from simulated.model_maker import LIGHT, attention, convolutional, floats, model, node

from kb.errors import ContentError, KbError, MalformedInputError, UsageError
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.graph_file import GraphFile, packed
from kb.profile.simulated.imported import operator_coverage, workload_of
from kb.profile.simulated.model_files import read_model
from kb.profile.simulated.onnx.binding import NOTHING, Given, given_from
from kb.profile.simulated.onnx.inference import VIEWS, inferred, translations
from kb.profile.simulated.onnx.lowering import graph_of_onnx
from kb.profile.simulated.onnx.reading import parse_model
from kb.profile.simulated.onnx.shape_rules import RULES
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import Setup, setup_of, simulate
from kb.workflow.diagnose import diagnose_sessions
from kb.workflow.location import shipped_catalogue

CONSTANTS = load_constants()
PACKAGED = Path(onnx.__file__).parent / "backend" / "test" / "data"
BATCH = Given(dims={"batch": 2})
TOKENS = Given(dims={"batch": 2, "tokens": 64})


def shapes_as_the_library_infers(data: bytes) -> dict[str, tuple[int, ...]]:
    """Every fully known shape by value name."""
    made = onnx.shape_inference.infer_shapes(onnx.load_from_string(data), data_prop=True)
    found = {}
    for info in (*made.graph.value_info, *made.graph.output):
        kind = info.type.tensor_type
        if info.type.HasField("tensor_type") and kind.HasField("shape") and all(size.HasField("dim_value") for size in kind.shape.dim):
            found[info.name] = tuple(size.dim_value for size in kind.shape.dim)
    return found


@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_every_light_network_runs_from_the_file_to_a_diagnosis(path: Path) -> None:
    graph = read_model(path)
    costed, total, unknown = operator_coverage(graph, CONSTANTS)
    assert total == len(onnx.load(path, load_external_data=False).graph.node)
    assert costed >= 0.95 * total
    assert unknown == ()
    session, truth = simulate(Setup(model=graph.name, soc=chip_file(), options=Options(batch=graph.batch, steps=3), graph=packed(graph)))
    assert session.self_check() == []
    assert truth.kernels == len(graph.operators)
    diagnosis = diagnose_sessions((session,), shipped_catalogue()).diagnosis
    assert diagnosis.has_books()
    assert diagnosis.sessions[0].origin == "simulated"
    assert diagnosis.all_findings()


def test_shapes_agree_with_the_library_on_every_model_its_package_carries() -> None:
    compared = 0
    for path in sorted(PACKAGED.rglob("*.onnx")):
        data = path.read_bytes()
        try:
            found = inferred(parse_model(data, path.name), data, NOTHING, path.name).values
        except KbError:
            continue
        for name, shape in shapes_as_the_library_infers(data).items():
            if name in found:
                assert found[name].shape == shape, f"{path.parent.name}/{path.name}: {name}"
                compared += 1
    assert compared > 4000


def test_work_is_that_of_the_definition() -> None:
    """FLOP of ResNet-50 at 224 x 224: 4.09 billion multiply-adds in its convolutions and the last product (He et al.)."""
    graph = read_model(next(path for path in LIGHT if "resnet50" in path.name))
    workload = workload_of(graph, Options(), CONSTANTS)
    flop = sum(getattr(operator, "flop", 0) for operator in workload.segment.operators)
    assert flop / 2e9 == pytest.approx(4.09, rel=0.02)
    weights = sum(tensor.elements for tensor in {t.id: t for o in workload.segment.operators for t in o.inputs if t.weight}.values())
    assert weights == pytest.approx(25.5e6, rel=0.01)


def test_batch_normalisation_goes_into_the_convolution_and_views_cost_nothing() -> None:
    graph = graph_of_onnx(convolutional(), "net.onnx", BATCH)
    assert [operator.op_type for operator in graph.operators] == ["Conv2D", "Relu", "AvgPoolV2", "MatMulV3", "SoftmaxV2"]
    assert graph.views == 2
    assert graph.batch == 2


def test_shape_arithmetic_of_exporters_is_worked_out() -> None:
    graph = graph_of_onnx(attention(), "net.onnx", TOKENS)
    kinds = [operator.op_type for operator in graph.operators]
    assert kinds.count("BatchMatMulV3") == 2
    scores = next(operator for operator in graph.operators if operator.op_type == "SoftmaxV2")
    assert {spec.name: spec for spec in graph.tensors}[scores.outputs[0]].shape == (2, 4, 64, 64)


def test_fused_attention_replaces_the_three_kernels() -> None:
    graph = graph_of_onnx(attention(), "net.onnx", TOKENS)
    plain = workload_of(graph, Options(batch=2), CONSTANTS).segment.operators
    fused = workload_of(graph, Options(batch=2, fused_attention=True), CONSTANTS).segment.operators
    assert len(plain) - len(fused) == 3
    kernel = next(operator for operator in fused if operator.op_type == "FlashAttentionScore")
    assert (kernel.heads, kernel.queries, kernel.keys, kernel.width) == (8, 64, 64, 32)  # type: ignore[attr-defined]  # checked by its type


def test_attention_of_onnx_runtime_is_a_product_and_one_kernel() -> None:
    data = model(
        [helper.make_node("Attention", ["x", "w", "b"], ["y"], domain="com.microsoft", num_heads=4)],
        {"x": [2, 16, 64]},
        {"y": None},
        {"w": floats(64, 192), "b": floats(192)},
    )
    product, attention_kernel = workload_of(graph_of_onnx(data, "net.onnx"), Options(batch=2), CONSTANTS).segment.operators
    assert (product.op_type, getattr(product, "n", 0)) == ("MatMulV3", 192)
    assert [getattr(attention_kernel, name) for name in ("heads", "queries", "keys", "width")] == [8, 16, 16, 16]
    assert attention_kernel.outputs[0].shape == (2, 16, 64)


@pytest.mark.parametrize(("precision", "element"), [("", "FLOAT16"), ("fp32", "FLOAT"), ("bf16", "DT_BF16")])
def test_floats_are_compiled_to_the_precision_asked_for(precision: Any, element: str) -> None:
    graph = graph_of_onnx(convolutional(), "net.onnx", BATCH)
    first = workload_of(graph, Options(batch=2, precision=precision), CONSTANTS).segment.operators[0]
    assert first.inputs[0].dtype == element


def test_int8_products_read_narrow_operands() -> None:
    graph = graph_of_onnx(convolutional(), "net.onnx", BATCH)
    operators = workload_of(graph, Options(batch=2, precision="int8"), CONSTANTS).segment.operators
    assert [operator.op_type for operator in operators].count("AscendQuantV2") == 2
    assert next(operator for operator in operators if operator.op_type == "Conv2D").inputs[1].dtype == "INT8"


def test_a_session_carries_its_graph_and_can_be_run_again() -> None:
    graph = graph_of_onnx(convolutional(), "net.onnx", BATCH)
    setup = Setup(model="net", soc=chip_file(), options=Options(batch=2, steps=2), graph=packed(graph), seed=3)
    session, _ = simulate(setup)
    again = setup_of(session, chip_file())
    assert again.graph == setup.graph
    assert simulate(again)[0].tables["kernels"]["duration_ns"].tolist() == session.tables["kernels"]["duration_ns"].tolist()


@pytest.mark.parametrize("size", [16, 64])
def test_recurrent_layers_run_step_by_step(size: int) -> None:
    data = model(
        [node("LSTM", ["x", "w", "r"], ["y", "h", "c"], hidden_size=size)],
        {"x": [5, 1, 8]},
        {"y": None, "h": None},
        {"w": floats(1, 4 * size, 8), "r": floats(1, 4 * size, size)},
    )
    graph = graph_of_onnx(data, "lstm.onnx")
    products = [operator for operator in graph.operators if operator.op_type == "MatMulV3"]
    assert len(products) == 6
    assert products[0].attributes == {"batch": 1, "m": 5, "k": 8, "n": 4 * size}
    assert products[1].attributes == {"batch": 1, "m": 1, "k": size, "n": 4 * size}


def conditional(condition: str) -> bytes:
    branches = {
        name: helper.make_graph(
            [node(op, ["x"], [f"{name}_y"])], name, [], [helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, [4])]
        )
        for name, op in (("then_branch", "Relu"), ("else_branch", "Tanh"))
    }
    nodes = [node("Equal", ["rate", "wanted"], ["same"]), helper.make_node("If", [condition], ["y"], name="choice", **branches)]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [4]),
            helper.make_tensor_value_info("rate", TensorProto.INT64, []),
            helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        [onnx.numpy_helper.from_array(np.array(16000), "wanted")],
    )
    data: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    return data


@pytest.mark.parametrize(("rate", "kernel"), [(16000, "Relu"), (8000, "Tanh")])
def test_a_branch_known_from_a_given_value_is_taken(rate: int, kernel: str) -> None:
    graph = graph_of_onnx(conditional("same"), "net.onnx", Given(values={"rate": (rate,)}))
    assert [operator.op_type for operator in graph.operators] == [kernel]


@pytest.mark.parametrize("condition", ["same", "flag"])
def test_control_flow_on_data_is_refused(condition: str) -> None:
    with pytest.raises(ContentError, match="control flow that depends on data") as caught:
        graph_of_onnx(conditional(condition), "net.onnx")
    assert "If 'choice'" in str(caught.value)
    assert caught.value.do


@pytest.mark.parametrize("kind", ["Loop", "Scan"])
def test_loops_are_refused(kind: str) -> None:
    body = helper.make_graph([node("Identity", ["a"], ["b"])], "body", [], [])
    graph = helper.make_graph(
        [helper.make_node(kind, ["x"], ["y"], name="again", body=body)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [],
    )
    with pytest.raises(ContentError, match=f"{kind} 'again' is control flow"):
        graph_of_onnx(helper.make_model(graph).SerializeToString(), "net.onnx")


RELU = [node("Relu", ["x"], ["y"])]
BAD: dict[str, tuple[bytes, Given, str]] = {
    "symbolic dimension": (model(RELU, {"x": ["batch", 3]}, {"y": None}), NOTHING, "sizes are missing: x"),
    "unnamed dimension": (model(RELU, {"x": [None, 3]}, {"y": None}), NOTHING, "sizes are missing"),  # type: ignore[list-item]  # ONNX's own spelling
    "zero dimension": (model(RELU, {"x": [0, 3]}, {"y": None}), NOTHING, "dimension of 0"),
    "contradicting size": (model(RELU, {"x": [2, 3]}, {"y": None}), Given(shapes={"x": (2, 4)}), "axis 1 of input x is 3"),
    "wrong number of axes": (model(RELU, {"x": [2, 3]}, {"y": None}), Given(shapes={"": (2, 3, 1)}), "has 2 axes"),
    "one symbol, two sizes": (
        model(RELU, {"x": ["n", 3], "z": ["n", 3]}, {"y": None}),
        Given(shapes={"x": (2, 3), "z": (4, 3)}),
        "at the same time",
    ),
    "unknown input": (model(RELU, {"x": [2, 3]}, {"y": None}), Given(shapes={"image": (2, 3)}), "no input 'image'"),
    "unknown dimension": (model(RELU, {"x": ["n", 3]}, {"y": None}), Given(dims={"n": 1, "m": 2}), "no dimension 'm'"),
    "too large": (model(RELU, {"x": ["n"]}, {"y": None}), Given(dims={"n": 1 << 50}), "too large"),
    "unknown operator without shapes": (
        model([node("Mystery", ["x"], ["y"], domain="own")], {"x": [2]}, {"y": None}),
        NOTHING,
        "the shape of 'y' is unknown",
    ),
    "shape from data": (model([node("NonZero", ["x"], ["y"])], {"x": [2]}, {"y": None}), NOTHING, "the shape of 'y' is unknown"),
    "reshape from data": (
        model([node("Cast", ["x"], ["s"], to=7), node("Reshape", ["x", "s"], ["y"])], {"x": [2]}, {"y": None}),
        NOTHING,
        "computed from data",
    ),
    "window that does not fit": (
        model([node("MaxPool", ["x"], ["y"], kernel_shape=[7, 7])], {"x": [1, 3, 4, 4]}, {"y": None}),
        NOTHING,
        "does not fit",
    ),
    "negative result": (
        model([node("Pad", ["x", "p"], ["y"])], {"x": [2]}, {"y": None}, {"p": np.array([-2, -2])}),
        NOTHING,
        r"would give a value of \[-2\]",
    ),
    "cyclic": (
        model([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"])], {"x": [2]}, {"b": None}),
        NOTHING,
        "the graph is cyclic: 2 operators",
    ),
    "value nobody makes": (model([node("Add", ["x", "ghost"], ["y"])], {"x": [2]}, {"y": None}), NOTHING, "which nothing makes"),
    "made twice": (model([*RELU, *RELU], {"x": [2]}, {"y": None}), NOTHING, "made twice"),
    "products that do not fit": (
        model([node("MatMul", ["x", "w"], ["y"])], {"x": [2, 3]}, {"y": None}, {"w": floats(4, 5)}),
        NOTHING,
        "times",
    ),
    "nothing left": (model([node("Shape", ["x"], ["y"])], {"x": [2]}, {"y": None}), NOTHING, "nothing is left to run"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_models_say_what_is_wrong_and_what_to_do(name: str) -> None:
    data, given, message = BAD[name]
    with pytest.raises((ContentError, UsageError), match=message) as caught:
        graph_of_onnx(data, "net.onnx", given)
    assert "net.onnx" in str(caught.value)


def test_operators_in_any_order_are_sorted() -> None:
    nodes = [node("Tanh", ["a"], ["y"]), node("Relu", ["x"], ["a"])]
    graph = graph_of_onnx(model(nodes, {"x": [2]}, {"y": None}), "net.onnx")
    assert [operator.op_type for operator in graph.operators] == ["Relu", "Tanh"]


def test_an_unknown_operator_with_a_declared_shape_is_costed_by_its_bytes() -> None:
    data = model([node("Mystery", ["x"], ["y"], domain="own")], {"x": [64, 64]}, {"y": [64, 64]})
    graph = graph_of_onnx(data, "net.onnx")
    assert operator_coverage(graph, CONSTANTS) == (0, 1, ("Mystery",))
    session, truth = simulate(Setup(model="net", soc=chip_file(), options=Options(batch=64, steps=2), graph=packed(graph)))
    assert truth.unknown_operators == ("Mystery",)
    assert any(gap.what == "cost of Mystery" for gap in session.meta.missing)


def test_weights_outside_the_file_are_never_opened(tmp_path: Path) -> None:
    made = onnx.load_from_string(convolutional())
    for tensor in made.graph.initializer:
        onnx.external_data_helper.set_external_data(tensor, "absent.bin")
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
    path = tmp_path / "net.onnx"
    path.write_bytes(made.SerializeToString())
    assert len(read_model(path, dims={"batch": 1}).operators) == 5


def test_a_huge_weight_is_skipped_without_being_read(tmp_path: Path) -> None:
    """A sparse file of 8 GiB: touching its weight would take long and fill the memory."""
    whole = model([node("MatMul", ["x", "w"], ["y"])], {"x": [1, 1 << 16]}, {"y": None})
    made = onnx.load_from_string(whole)
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT16, dims=[1 << 16, 1 << 16])
    size = 1 << 33

    def field(number: int, length: int) -> bytes:
        from kb.profile.simulated.wire import varint

        return varint(number << 3 | 2) + varint(length)

    head = weight.SerializeToString()
    tensor = head + field(9, size)
    graph = made.graph.SerializeToString()
    inner = field(5, len(tensor) + size) + tensor
    begin = field(7, len(graph) + len(inner) + size) + graph + inner
    rest = b"".join(part.SerializeToString() for part in [onnx.ModelProto(opset_import=made.opset_import)])
    path = tmp_path / "huge.onnx"
    with path.open("wb") as file:
        file.write(begin)
        file.truncate(len(begin) + size)
        file.seek(0, 2)
        file.write(rest)
    graph_file = read_model(path)
    assert graph_file.operators[0].attributes == {"batch": 1, "m": 1, "k": 1 << 16, "n": 1 << 16}


@pytest.mark.parametrize(
    ("shape", "dims", "values", "message"),
    [
        (("1,3,a",), (), (), "whole numbers"),
        (("1,0",), (), (), "impossible input shape"),
        ((), ("batch",), (), "NAME=NUMBER"),
        ((), ("batch=0",), (), "impossible dimension"),
        ((), (), ("sr=x",), "whole numbers"),
    ],
)
def test_wrong_texts_are_refused(shape: tuple[str, ...], dims: tuple[str, ...], values: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        given_from(shape, dims, values)
    assert message in str(caught.value)


def test_shape_texts_are_read() -> None:
    assert given_from(("1,3,224,224",), (), ()) == Given(shapes={"": (1, 3, 224, 224)})
    assert given_from(("x:1,3;y:2x4",), ("n=2",), ("sr=8",)) == Given(shapes={"x": (1, 3), "y": (2, 4)}, dims={"n": 2}, values={"sr": (8,)})


def test_every_translation_has_a_rule_and_a_kind() -> None:
    table = translations()
    assert {entry.shape for entry in table.values()} - {"declared"} == set(RULES)
    running = {name: entry for name, entry in table.items() if entry.shape not in (*VIEWS, "recurrent")}
    unknown = {name for name, entry in running.items() if CONSTANTS.kinetics(entry.ascend).kind == "unknown"}
    assert len(unknown) <= 0.05 * len(running), unknown


def test_hostile_bytes_end_in_our_errors() -> None:
    """2,000 broken models: changed bytes, cut ends, spliced pieces."""
    rng = random.Random(7)
    seeds = [(convolutional(), BATCH), (attention(), TOKENS), (conditional("same"), Given(values={"rate": (16000,)}))]
    survived = 0
    for _ in range(2000):
        seed, given = rng.choice(seeds)
        data = bytearray(seed)
        for _ in range(rng.randint(1, 2)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.3:
            data = data[: rng.randrange(1, len(data))]
        try:
            graph = graph_of_onnx(bytes(data), "net.onnx", given)
        except KbError:
            continue
        assert isinstance(graph, GraphFile)
        survived += 1
    assert survived > 50


@pytest.mark.parametrize("data", [b"", b"\0" * 40, b"\x08\x07", b"not a model at all", b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"])
def test_bytes_that_are_no_model_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedInputError):
        graph_of_onnx(data, "net.onnx")
