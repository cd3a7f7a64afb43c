"""``kb simulate model``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.profile.simulated.graph_file import graph_bytes
from kb.profile.simulated.om.writing import om_bytes
from kb.profile.simulated.options import Options as Settings
from kb.session.codec import to_bytes
from kb.session.session import Session
from kb.workflow.collect import Wanted, collect_model, is_model_file
from kb.workflow.location import shipped_catalogue
from kb.workflow.simulate import DEFAULT_SOC, chip, model_graph, model_names, options_from, simulated_sessions
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """A model, a chip, settings, and where the sessions go."""

    model: Annotated[
        str, Argument("Built-in model, as sd3, bert-large, llama3-8b-decode (a wrong name lists all), or a model file.", "MODEL")
    ]
    output: Annotated[
        Path | None,
        Flag(
            "--output",
            "The new .prof file (ranks add -rankN), or .json or .om for the model's graph; default MODEL-SOC.prof here.",
            "FILE",
            short="-o",
        ),
    ] = None
    soc: Annotated[str, Flag("--soc", "Chip: a name, CORESxMHZ, or a JSON file of your own.", "SOC")] = DEFAULT_SOC
    seed: Annotated[int, Flag("--seed", "Seed of the noise.", "N", least=0)] = 1
    batch: Annotated[int, Flag("--batch", "Batch size (of a microbatch in training).", "N")] = 1
    sequence: Annotated[int | None, Flag("--sequence", "Tokens; default the model's own.", "N")] = None
    steps: Annotated[int, Flag("--steps", "Steps in the profile, the first a warm-up.", "N")] = 5
    fused_attention: Annotated[bool, Flag("--fused-attention", "One kernel for product, softmax, product.")] = False
    fused_elementwise: Annotated[bool, Flag("--fused-elementwise", "One kernel for chains of elementwise ones.")] = False
    graph_launch: Annotated[bool, Flag("--graph-launch", "One launch submits the whole graph.")] = False
    stream_depth: Annotated[int, Flag("--stream-depth", "Launches that may be unfinished before the host waits.", "N")] = 2
    tensor_parallel: Annotated[int, Flag("--tensor-parallel", "Ranks that share each layer.", "N")] = 1
    pipeline_parallel: Annotated[int, Flag("--pipeline-parallel", "Pipeline stages.", "N")] = 1
    data_parallel: Annotated[int, Flag("--data-parallel", "Replicas.", "N")] = 1
    expert_parallel: Annotated[int, Flag("--expert-parallel", "Ranks that share the experts.", "N")] = 1
    microbatches: Annotated[int, Flag("--microbatches", "Microbatches of a training step.", "N")] = 4
    set: Annotated[tuple[str, ...], Flag("--set", "Any other option of the simulator; may be given often.", "NAME=VALUE")] = ()
    force: Annotated[bool, Flag("--force", "Overwrite the output file.")] = False


_OWN = (
    "batch", "sequence", "steps", "fused_attention", "fused_elementwise", "graph_launch", "stream_depth", "tensor_parallel",
    "pipeline_parallel", "data_parallel", "expert_parallel", "microbatches",
)  # fmt: skip


def run(options: Options, console: Console) -> int:
    """Simulate and write the sessions, a file for each rank."""
    settings = options_from(options.set, {name: getattr(options, name) for name in _OWN})
    if options.output is not None and options.output.suffix in (".json", ".om"):
        return _graph_written(options, options.output, settings, console)
    name = f"{options.model}-{Path(options.soc).stem}"
    if is_model_file(options.model):
        name = f"{Path(options.model).stem}-{Path(options.soc).stem}"
    sessions = _simulated(options, settings, name)
    paths = _paths(options.output or Path(f"{name}.prof"), sessions)
    for path, session in zip(paths, sessions, strict=True):
        write_new(path, to_bytes(session), force=options.force)
    first = sessions[0].meta
    if console.as_json:
        files = [str(path) for path in paths]
        console.json({"file": files[0], "files": files, "origin": first.origin, "simulator": first.simulator})
    else:
        listed = ", ".join(map(str, paths))
        console.say(f"已写入 {listed}（仿真）", f"wrote {listed} (simulated)")
    return ExitCode.DONE


def _simulated(options: Options, settings: Settings, name: str) -> tuple[Session, ...]:
    """The sessions of all ranks of a built-in model, or the one of a model file."""
    catalogue = shipped_catalogue()
    if is_model_file(options.model):
        wanted = Wanted(model=options.model, seed=options.seed, options=settings)
        return (collect_model(wanted, chip(catalogue, options.soc)).session,)
    return simulated_sessions(catalogue, options.model, soc=options.soc, seed=options.seed, options=settings, name=name)


def _graph_written(options: Options, output: Path, settings: Settings, console: Console) -> int:
    """The model's graph instead of a run of it."""
    graph = model_graph(options.model, settings)
    content = graph_bytes(graph) if output.suffix == ".json" else om_bytes(graph)
    write_new(output, content, force=options.force)
    if console.as_json:
        console.json({"file": str(output), "files": [str(output)], "operators": len(graph.operators), "tensors": len(graph.tensors)})
    else:
        count = len(graph.operators)
        console.say(f"已写入 {output}：{count} 个算子的计算图（仿真）", f"wrote {output}: a graph of {count} operators (simulated)")
    return ExitCode.DONE


def _paths(output: Path, sessions: tuple[Session, ...]) -> tuple[Path, ...]:
    if len(sessions) == 1:
        return (output,)
    return tuple(output.with_name(f"{output.stem}-rank{session.meta.rank}{output.suffix}") for session in sessions)


COMMAND = Command(
    f"Make a session on the simulated backend. Models: {', '.join(model_names())}.",
    Options,
    run,
    (
        "kb simulate model sd3 --output sd3.prof",
        "kb simulate model bert-large --soc 910b4 --graph-launch",
        "kb simulate model yolov8n -o yolov8n.json",
        "kb simulate model qwen3-0.6b-train --pipeline-parallel 2 --data-parallel 2 --set stage_shift=4",
        "kb simulate model qwen2.5-7b-decode --batch 8 --set context=4096 --set kv_policy=paged --fused-attention",
    ),
)
