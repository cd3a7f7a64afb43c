"""``profiler collect``"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from kb.domain.text import Text
from kb.errors import ExitCode, KbError, NotFoundError, UsageError
from kb.session.codec import to_bytes
from kb.session.session import Session
from kb.workflow.collect import Collected, Wanted, collect_model, measure_command
from kb.workflow.location import shipped_catalogue
from kb.workflow.recent import remember
from kb.workflow.simulate import DEFAULT_SOC, chip, options_from
from kb.workflow.subject import named_or_last
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import free_name, write_new

_YES_NO = ("true", "false")


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """A model to simulate, or a command to measure, and what to record."""

    command: Annotated[tuple[str, ...], Argument("After --: a command to run under msprof on this Ascend host.", "CMD")] = ()
    model: Annotated[str, Flag("--model", "Model file (.onnx, .om, .json graph) or built-in model; default the one used last.", "FILE")] = (
        ""
    )
    output: Annotated[Path | None, Flag("--output", "New FILE.prof, or a new folder; default <model>.prof here.", "PATH", short="-o")] = (
        None
    )
    backend: Annotated[
        str, Flag("--backend", "auto: commands are measured, models simulated.", choices=("auto", "simulated", "msprof"))
    ] = "auto"
    input_shape: Annotated[
        tuple[str, ...], Flag("--input_shape", 'Sizes of inputs, as "1,3,224,224" or "x:1,3,224,224;y:1,8".', "SHAPES")
    ] = ()
    dim: Annotated[tuple[str, ...], Flag("--dim", "Size of a symbolic dimension; may be given often.", "NAME=SIZE")] = ()
    value: Annotated[tuple[str, ...], Flag("--value", "Value of an input that steers the model.", "NAME=NUMBER")] = ()
    data_types: Annotated[
        str, Flag("--data_types", "What to record: operator, memory, stream, l2_cache, cube_util, power, event; default all.", "LIST")
    ] = ""
    duration: Annotated[str, Flag("--duration", "How long to record, as 60s.", "TIME")] = ""
    focus: Annotated[str, Flag("--focus", "Hardware counters only of matching operators, as attention_block.", "WORD")] = ""
    trace_level: Annotated[str, Flag("--trace_level", "fine: operators with counters; coarse: without.", choices=("fine", "coarse"))] = (
        "fine"
    )
    enable_ai_core_metrics: Annotated[str, Flag("--enable_ai_core_metrics", "Record AI Core counters (default true).", choices=_YES_NO)] = (
        "true"
    )
    mode: Annotated[
        str, Flag("--mode", "lightweight: least overhead, no host calls or memory blocks.", choices=("full", "lightweight"))
    ] = "full"
    local: Annotated[bool, Flag("--local", "On this machine (the default; nothing is ever sent).")] = False
    quick_mode: Annotated[str, Flag("--quick_mode", "true: two steps, lightweight, into <model>_quick.prof.", choices=_YES_NO)] = "false"
    soc: Annotated[str, Flag("--soc", "Chip: a name, CORESxMHZ, or a JSON file of your own.", "SOC", short="--soc_version")] = DEFAULT_SOC
    steps: Annotated[int, Flag("--steps", "Steps in the capture, the first a warm-up.", "N")] = 5
    seed: Annotated[int, Flag("--seed", "Seed of the noise.", "N", least=0)] = 1
    set: Annotated[tuple[str, ...], Flag("--set", "Any other option of the simulator; may be given often.", "NAME=VALUE")] = ()
    force: Annotated[bool, Flag("--force", "Overwrite the output file.")] = False


def run(options: Options, console: Console) -> int:
    """Collect and say what was collected, how, and from where."""
    if options.command:
        return _measured(options, console)
    if options.backend == "msprof":
        raise UsageError(
            "msprof profiles a running program, not a model file",
            allowed="profiler collect [options] -- CMD ..",
            do="give the command that runs the model after --, or use --backend simulated",
        )
    named = named_or_last(options.model, (), workspace())
    model = named.model
    if named.remark.en:
        console.remark(named.remark.zh, named.remark.en)
    quick = options.quick_mode == "true"
    lightweight = quick or options.mode == "lightweight"
    wanted = Wanted(
        model=model,
        input_shape=options.input_shape,
        dims=options.dim,
        values=options.value,
        data_types=options.data_types or ("operator, l2_cache, cube_util, power" if lightweight else ""),
        duration=options.duration,
        focus=options.focus,
        metrics=options.enable_ai_core_metrics == "true" and options.trace_level == "fine",
        seed=options.seed,
        options=options_from(options.set, {"steps": 2 if quick else options.steps, "capture": "none" if lightweight else "level1"}),
    )
    catalogue = shipped_catalogue()
    collected = collect_model(wanted, chip(catalogue, options.soc))
    return _written(options, console, model, collected, quick=quick)


def _written(options: Options, console: Console, model: str, collected: Collected, *, quick: bool) -> int:
    session = collected.session
    stem = Path(model).stem if Path(model).suffix else model
    own = Path(f"{stem}_quick.prof" if quick else f"{stem}.prof")
    output = options.output or (own if options.force else free_name(own))
    target = output if output.suffix == ".prof" else output / f"{stem}.prof"
    write_new(target, to_bytes(session), force=options.force, keep=(Path(model),))
    remember(workspace(), capture=output, model=model)
    for remark in collected.remarks:
        console.remark(remark.zh, remark.en)
    payload: dict[str, Any] = {
        "file": str(target),
        "files": [str(target)],
        "origin": session.meta.origin,
        "simulator": session.meta.simulator,
        "model": session.meta.model.name,
        "soc": session.meta.soc.id,
        "kernels": len(session.tables["kernels"]),
        "operators": collected.operators,
        "operators_costed": collected.costed,
        "operators_by_bytes": list(collected.by_bytes),
        "stability": msgspec.to_builtins(collected.stability) if collected.stability is not None else None,
        "remarks": [remark.pick(console.lang) for remark in collected.remarks],
    }
    _say(console, payload, Text(f"已写入 {target}（仿真）", f"wrote {target} (simulated)"))
    return ExitCode.DONE


def _measured(options: Options, console: Console) -> int:
    """A command under msprof: its capture in a folder, and a session file where one is asked for."""
    if options.backend == "simulated":
        raise UsageError("a command cannot be simulated", allowed="--model FILE with --backend simulated")
    if options.model or options.input_shape:
        raise UsageError("a command brings its own model", allowed="either --model FILE or -- CMD ..")
    output = options.output or free_name(Path("msprof_capture"))
    folder = output.with_name(f"{output.stem}_msprof") if output.suffix == ".prof" else output
    if output.suffix == ".prof" and output.exists() and not options.force:
        raise KbError(f"{output} exists", allowed="a new file", do="choose another name or add --force")
    console.remark(f"在 msprof 下运行 {options.command[0]} ..", f"running {options.command[0]} under msprof ..")
    sessions = measure_command(options.command, folder, os.environ)
    files = [str(folder)]
    if output.suffix == ".prof":
        files = list(_prof_files(output, sessions, force=options.force))
    remember(workspace(), capture=output)
    payload = {"file": files[0], "files": files, "origin": sessions[0].meta.origin, "capture": str(folder), "sessions": len(sessions)}
    _say(console, payload, Text(f"已写入 {', '.join(files)}（实测）", f"wrote {', '.join(files)} (measured)"))
    return ExitCode.DONE


def _prof_files(output: Path, sessions: tuple[Session, ...], *, force: bool) -> tuple[str, ...]:
    if not sessions:
        raise NotFoundError("the capture holds no session", do="look into its folder")
    made = []
    for number, session in enumerate(sessions):
        path = output if len(sessions) == 1 else output.with_name(f"{output.stem}-{number}{output.suffix}")
        write_new(path, to_bytes(session), force=force)
        made.append(str(path))
    return tuple(made)


def _say(console: Console, payload: dict[str, Any], said: Text) -> None:
    if console.as_json:
        console.json(payload)
    else:
        console.say(said.zh, said.en)


COMMAND = Command(
    "Capture a model on the simulated backend, or a command on this Ascend host with msprof.",
    Options,
    run,
    (
        "profiler collect --model net.onnx --output net.prof",
        'profiler collect --model sd3_converted.om --input_shape "1,3,1024,1024" --data_types "operator, memory" --duration 60s',
        "profiler collect --model det.onnx --dim batch=1 --soc_version Ascend310P3 --output det.prof",
        "profiler collect --local --quick_mode true",
        "profiler collect --output run.prof -- python train.py",
    ),
)
