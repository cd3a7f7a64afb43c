"""Write an offline model in the documented layout, as the simulated toolchain makes them. No vendor tool can run it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kb.errors import UsageError
from kb.profile.simulated.graph_file import GraphFile, TensorSpec
from kb.profile.simulated.om.layout import MARK, MODEL_DEF, TASK_INFO, UNNAMED, WEIGHTS, Header, Table, header_bytes, table_bytes
from kb.profile.simulated.om.model_def import Descriptor, StoredGraph, StoredModel, StoredOperator, model_def_bytes

__all__ = ["MARK", "marked", "om_bytes"]


def om_bytes(graph: GraphFile, *, layout: Table = "new", info: str = "") -> bytes:
    """The file. ``info`` follows the mark and the model's family in the user-info field (31 bytes in all). Weights are
    sizes only, never data.

    Raises UsageError for a graph whose step repeats: an offline model is one pass.
    """
    if graph.repeats > 1:
        raise UsageError(
            f"{graph.name} repeats its graph {graph.repeats} times a step; an offline model is one pass",
            do="write it as .json, or set denoise_steps=1",
        )
    model = StoredModel(graph.name, (StoredGraph(graph.name, _operators(graph)),))
    parts = [(MODEL_DEF, model_def_bytes(model)), (WEIGHTS, b""), (TASK_INFO, b"")]
    table = table_bytes(layout, parts)
    size = len(table) + sum(len(content) for _, content in parts)
    header = Header(
        length=size if layout == "old" else 0,
        model_length=size if layout == "new" else 0,
        name=graph.name,
        operators=len(model.graphs[0].operators),
        info=f"{MARK}{'' if graph.type == 'unknown' else f':{graph.type}'} {info}".strip(),
        platform="simulated",
    )
    return header_bytes(header) + table + b"".join(content for _, content in parts)


def marked(header: Header) -> bool:
    """Whether this program wrote the model."""
    return header.info.startswith(MARK)


def _operators(graph: GraphFile) -> tuple[StoredOperator, ...]:
    """Inputs and weights first, then the kernels, then what the model puts out."""
    specs = {spec.name: spec for spec in graph.tensors}
    made: dict[str, str] = {}
    kernels = []
    spoken = Counter(operator.name for operator in graph.operators)
    for number, operator in enumerate(graph.operators):
        name = operator.name if operator.name and spoken[operator.name] == 1 else f"{UNNAMED}{number}"
        kernels.append((name, number, dict(made)))
        made.update({output: f"{name}:{place}" for place, output in enumerate(operator.outputs)})
    outputs = {output for operator in graph.operators for output in operator.outputs}
    fed = [spec for spec in graph.tensors if not spec.storage and spec.name not in outputs]
    sources = {spec.name: f"{'const' if spec.weight else 'data'}_{number}" for number, spec in enumerate(fed)}
    stored = [
        StoredOperator(name=sources[spec.name], type="Const" if spec.weight else "Data", output_descriptors=(_descriptor(spec),))
        for spec in fed
    ]
    for name, number, before in kernels:
        operator = graph.operators[number]
        makers = tuple(_maker(specs[operand], before, sources) for operand in operator.inputs)
        stored.append(
            StoredOperator(
                name=name,
                type=operator.op_type,
                inputs=makers,
                attributes=operator.attributes,
                stream=0,
                constants=tuple(specs[operand].weight for operand in operator.inputs),
                input_descriptors=tuple(_descriptor(specs[operand]) for operand in operator.inputs),
                output_descriptors=tuple(_descriptor(specs[output]) for output in operator.outputs),
            )
        )
    stored.append(StoredOperator(name="Node_Output", type="NetOutput", inputs=(f"{kernels[-1][0]}:0",)))
    return tuple(stored)


def _maker(spec: TensorSpec, made: Mapping[str, str], sources: Mapping[str, str]) -> str:
    """Who makes an operand: a kernel before it, the owner of the memory it is a view of, or an input."""
    for name in (spec.name, spec.storage):
        if name and name in made:
            return made[name]
    owner = spec.storage or spec.name
    return f"{sources[owner]}:0" if owner in sources else "missing:-1"


def _descriptor(spec: TensorSpec) -> Descriptor:
    return Descriptor(shape=spec.shape, dtype=spec.dtype, layout="ND")
