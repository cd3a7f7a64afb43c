"""Offline models: both tables, real field numbers, hostile bytes, and what the writer makes read back."""

from __future__ import annotations

import random
import struct

import msgspec
import pytest
from simulated.chips import chip_file

from kb.errors import ContentError, KbError, MalformedInputError, UsageError
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.graph_file import GraphFile, OperatorSpec, TensorSpec, packed
from kb.profile.simulated.imported import graph_of, workload_of
from kb.profile.simulated.layout import Seat
from kb.profile.simulated.models.names import MODELS
from kb.profile.simulated.om.layout import HEADER_BYTES, MAGIC, MARK, MODEL_DEF, WEIGHTS, Header, Table, header_bytes, table_bytes
from kb.profile.simulated.om.model_def import Descriptor, StoredGraph, StoredModel, StoredOperator, model_def_bytes
from kb.profile.simulated.om.reading import read_om
from kb.profile.simulated.om.writing import marked, om_bytes
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import Setup, simulate
from kb.workflow.diagnose import diagnose_sessions
from kb.workflow.location import shipped_catalogue

CONSTANTS = load_constants()
LAYOUTS: tuple[Table, ...] = ("new", "old")
FUZZED = 3000


def by_hand(layout: Table, operators: tuple[StoredOperator, ...], *, extra: bytes = b"") -> bytes:
    """A file as the format's description says, written here field by field."""
    content = model_def_bytes(StoredModel("net", (StoredGraph("net", operators),))) + extra
    parts = [(MODEL_DEF, content), (WEIGHTS, b"\0" * 64)]
    table = table_bytes(layout, parts)
    size = len(table) + len(content) + 64
    header = Header(name="net", length=size if layout == "old" else 0, model_length=size if layout == "new" else 0)
    return header_bytes(header) + table + content + b"\0" * 64


def convolution_model() -> tuple[StoredOperator, ...]:
    """Data, a convolution with a weight of its own, an activation on another stream, the output."""
    image = Descriptor(shape=(1, 3, 64, 64), dtype="FLOAT16", layout="NCHW")
    weight = Descriptor(shape=(32, 3, 3, 3), dtype="FLOAT16", layout="NCHW")
    mapped = Descriptor(shape=(1, 32, 64, 64), dtype="FLOAT16", layout="NCHW")
    return (
        StoredOperator(name="x", type="Data", output_descriptors=(image,)),
        StoredOperator(name="w", type="Const", output_descriptors=(weight,)),
        StoredOperator(
            name="conv",
            type="Conv2D",
            inputs=("x:0", "w:0"),
            stream=0,
            constants=(False, True),
            input_descriptors=(image, weight),
            output_descriptors=(mapped,),
            workspace_bytes=(1024,),
        ),
        StoredOperator(name="relu", type="Relu", inputs=("conv:0",), stream=1, input_descriptors=(mapped,), output_descriptors=(mapped,)),
        StoredOperator(name="out", type="NetOutput", inputs=("relu:0",), input_descriptors=(mapped,)),
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_hand_made_file_runs_to_a_diagnosis(layout: Table) -> None:
    model = read_om(by_hand(layout, convolution_model()), "net.om")
    assert model.header.table == layout
    assert [part.type for part in model.partitions] == [MODEL_DEF, WEIGHTS]
    assert model.streams == (0, 1)
    assert model.operators[2].workspace_bytes == (1024,)
    graph = model.graph
    assert graph.streams == 2
    assert [operator.op_type for operator in graph.operators] == ["Conv2D", "Relu"]
    (convolution, _) = workload_of(graph, Options(), CONSTANTS).segment.operators
    assert getattr(convolution, "flop", 0) == 2 * 64 * 64 * 32 * 27
    session, _ = simulate(Setup(model="net", soc=chip_file(), options=Options(steps=3), graph=packed(graph)))
    diagnosis = diagnose_sessions((session,), shipped_catalogue()).diagnosis
    assert diagnosis.has_books()
    assert diagnosis.sessions[0].origin == "simulated"


def test_the_header_lies_where_the_description_says() -> None:
    data = by_hand("new", convolution_model())
    assert data[:4] == MAGIC
    assert int.from_bytes(data[:4], "little") == 0x444F4D49
    assert struct.unpack_from("<I", data, 4) == (256,)
    assert struct.unpack_from("<I", data, 76) == (0,)
    assert data[84:87] == b"net"
    assert struct.unpack_from("<Q", data, 184)[0] == len(data) - HEADER_BYTES
    old = by_hand("old", convolution_model())
    assert struct.unpack_from("<I", old, 76)[0] == len(old) - HEADER_BYTES
    assert struct.unpack_from("<III", old, 260) == (MODEL_DEF, 0, len(old) - HEADER_BYTES - 4 - 24 - 64)


def test_layers_keep_the_names_the_model_gives_them() -> None:
    """In the session, and through a file written here."""
    graph = read_om(by_hand("new", convolution_model()), "net.om").graph
    again = read_om(om_bytes(graph), "net.om").graph
    assert [operator.name for operator in again.operators] == ["conv", "relu"]
    session, _ = simulate(Setup(model="net", soc=chip_file(), options=Options(steps=2), graph=packed(graph)))
    kernels = session.tables["kernels"]
    assert {session.strings[code] for code in kernels["name"]} == {"conv", "relu"}
    bare = msgspec.structs.replace(graph, operators=tuple(msgspec.structs.replace(operator, name="") for operator in graph.operators))
    assert {operator.name for operator in read_om(om_bytes(bare), "net.om").graph.operators} == {""}


def test_fields_this_reader_does_not_know_are_skipped() -> None:
    plain = read_om(by_hand("new", convolution_model()), "net.om")
    more = read_om(by_hand("new", convolution_model(), extra=b"\xfa\x7f\x03abc" + b"\xa0\x06\x05"), "net.om")
    assert more.models == plain.models


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["resnet50", "bert-base", "yolov8n", "llama3-8b-prefill"])
def test_what_is_written_reads_back_and_costs_the_same(name: str, layout: Table) -> None:
    entry = MODELS[name]
    workload = entry.build(Options(), Seat(0, 0, 0, 0, 0))
    graph = graph_of(workload, name=name, family=entry.type, batch=1)
    data = om_bytes(graph, layout=layout, info="atc")
    model = read_om(data, f"{name}.om")
    assert marked(model.header)
    assert model.header.info == f"{MARK}:{entry.type} atc"
    assert model.graph.type == entry.type
    foreign = read_om(data.replace(MARK.encode(), b"made-with-it", 1), f"{name}.om")
    assert foreign.graph.type in ("cnn", "unknown"), "what a file of somebody else calls itself is not believed"
    assert len(model.graph.operators) == len(graph.operators)
    again = workload_of(model.graph, Options(), CONSTANTS)
    assert sum(getattr(operator, "flop", 0) for operator in again.segment.operators) == sum(
        getattr(operator, "flop", 0) for operator in workload.segment.operators
    )
    assert again.segment.weight_bytes() == workload.segment.weight_bytes()


def test_a_repeated_graph_is_no_offline_model() -> None:
    entry = MODELS["sd3"]
    graph = graph_of(entry.build(Options(), Seat(0, 0, 0, 0, 0)), name="sd3", family=entry.type, batch=1)
    with pytest.raises(UsageError, match="repeats its graph"):
        om_bytes(graph)


def test_a_flow_model_holds_models() -> None:
    inner = by_hand("new", convolution_model())
    table = table_bytes("new", [(7, inner)])
    outer = header_bytes(Header(name="flow", model_length=len(table) + len(inner), model_type=3)) + table + inner
    assert len(read_om(outer, "flow.om").graph.operators) == 2


def test_a_called_graph_is_walked() -> None:
    image = Descriptor(shape=(4, 8), dtype="FLOAT16")
    call = StoredOperator(name="call", type="PartitionedCall", subgraphs=("inner",))
    relu = StoredOperator(name="relu", type="Relu", input_descriptors=(image,), output_descriptors=(image,))
    content = model_def_bytes(StoredModel("net", (StoredGraph("root", (call,)), StoredGraph("inner", (relu,)))))
    table = table_bytes("new", [(MODEL_DEF, content)])
    data = header_bytes(Header(name="net", model_length=len(table) + len(content))) + table + content
    assert [operator.op_type for operator in read_om(data, "net.om").graph.operators] == ["Relu"]


def changed(number: int, **changes: object) -> tuple[StoredOperator, ...]:
    operators = list(convolution_model())
    operators[number] = msgspec.structs.replace(operators[number], **changes)
    return tuple(operators)


DYNAMIC = Descriptor(shape=(-1, 3, 64, 64), dtype="FLOAT16")
BAD = {
    "control flow": (changed(3, type="While"), "control flow that depends on data"),
    "dynamic shape": (changed(0, output_descriptors=(DYNAMIC,)), "only known at run time"),
    "cyclic": (changed(2, inputs=("relu:0", "w:0")), "the graph is cyclic"),
    "no kernels": ((convolution_model()[0],), "no operator of this model runs"),
    "calls itself": ((StoredOperator(name="a", type="PartitionedCall", subgraphs=("net",)),), "no operator of this model runs"),
}


@pytest.mark.parametrize("name", BAD)
def test_models_that_cannot_run_say_why(name: str) -> None:
    operators, message = BAD[name]
    with pytest.raises(ContentError, match=message):
        _ = read_om(by_hand("new", operators), "net.om").graph


def broken(place: int, value: bytes, layout: Table = "new") -> bytes:
    data = bytearray(by_hand(layout, convolution_model()))
    data[place : place + len(value)] = value
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "are no offline model"),
        (b"IMOD" + b"\0" * 100, "are no offline model"),
        (broken(0, b"JUNK"), "no offline model"),
        (broken(4, b"\0\0\0\0"), "no offline model"),
        (broken(80, b"\1"), "is encrypted"),
        (broken(256, b"\xff\xff\xff\xff"), "does not fit"),
        (broken(256 + 8 + 8, b"\xff" * 8), "outside the file"),
        (broken(256 + 8 + 16, b"\xff" * 8), "outside the file"),
        (by_hand("new", convolution_model())[:320], "outside the file"),
        (by_hand("new", convolution_model())[:258], "no partition table"),
    ],
)
def test_offsets_and_sizes_are_hostile(data: bytes, message: str) -> None:
    with pytest.raises(MalformedInputError, match=message):
        read_om(data, "net.om")


def test_three_thousand_broken_files_end_in_our_errors() -> None:
    rng = random.Random(11)
    seeds = [by_hand(layout, convolution_model()) for layout in LAYOUTS]
    survived = refused = 0
    for _ in range(FUZZED):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 4)):
            if rng.random() < 0.7:
                data[rng.randrange(len(data))] = rng.randrange(256)
            else:
                place = rng.randrange(len(data))
                data[place : place + rng.randrange(9)] = rng.randbytes(rng.randrange(9))
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
        try:
            graph = read_om(bytes(data), "net.om").graph
            workload_of(graph, Options(batch=graph.batch), CONSTANTS)
            survived += 1
        except KbError:
            refused += 1
    assert survived + refused == FUZZED
    assert min(survived, refused) > FUZZED / 20


def test_weights_are_sizes_only() -> None:
    spec = GraphFile(
        format="kb-graph/1",
        name="wide",
        tensors=(TensorSpec("x", (1, 4096)), TensorSpec("w", (4096, 4096), weight=True), TensorSpec("y", (1, 4096))),
        operators=(OperatorSpec("MatMulV3", ("x", "w"), ("y",)),),
    )
    assert len(om_bytes(spec)) < 4096
