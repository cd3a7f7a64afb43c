"""``profiler collect-pipeline``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode, UsageError
from kb.session.codec import to_bytes
from kb.workflow.collect import seconds_from
from kb.workflow.location import shipped_catalogue
from kb.workflow.pipeline import collect_pipeline, overload, wanted_pipeline
from kb.workflow.recent import remember
from kb.workflow.simulate import DEFAULT_SOC, chip
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import free_name, write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which pipeline, how long, and what to record."""

    pipeline: Annotated[str, Flag("--pipeline", "A built-in pipeline (kb simulate list) or a JSON file.", "NAME|FILE.json")]
    output: Annotated[
        Path | None, Flag("--output", "New FILE.prof, or a new folder; default <pipeline>.prof here.", "PATH", short="-o")
    ] = None
    data_types: Annotated[str, Flag("--data_types", "node_latency, queue_depth, resource_util; default all.", "LIST")] = ""
    duration: Annotated[str, Flag("--duration", "Simulated time.", "TIME")] = "10m"
    rate: Annotated[float | None, Flag("--rate", "Requests a second instead of the pipeline's own.", "N", least=0)] = None
    trace: Annotated[Path | None, Flag("--trace", "Arrival times: CSV with time_ms, or a line of ms a request.", "FILE.csv")] = None
    concurrency: Annotated[tuple[str, ...], Flag("--concurrency", "Workers of a node; may be given often.", "NODE=N")] = ()
    soc: Annotated[str, Flag("--soc", "Chip of nodes that run a simulated model.", "SOC")] = DEFAULT_SOC
    seed: Annotated[int, Flag("--seed", "Seed of arrivals and service times.", "N")] = 1
    force: Annotated[bool, Flag("--force", "Overwrite the output file.")] = False


def run(options: Options, console: Console) -> int:
    """Simulate and write the capture."""
    catalogue = shipped_catalogue()
    spec = wanted_pipeline(options.pipeline, rate=options.rate, trace=options.trace, concurrency=dict(map(_workers, options.concurrency)))
    session = collect_pipeline(
        spec,
        chip(catalogue, options.soc),
        seconds=seconds_from(options.duration),
        seed=options.seed,
        data_types=options.data_types,
    )
    own = Path(f"{spec.name}.prof")
    output = options.output or (own if options.force else free_name(own))
    target = output if output.suffix == ".prof" else output / f"{spec.name}.prof"
    write_new(target, to_bytes(session), force=options.force)
    remember(workspace(), capture=output, pipeline=options.pipeline)
    requests = len(session.tables["marks"]) if "marks" in session.tables else 0
    if spec.note.en:
        console.remark(spec.note.zh, spec.note.en)
    warning = overload(session)
    if warning is not None:
        console.remark(warning.zh, warning.en)
    if console.as_json:
        console.json({"file": str(target), "files": [str(target)], "origin": session.meta.origin, "simulator": session.meta.simulator,
                      "pipeline": spec.name, "nodes": len(spec.nodes), "requests": requests})  # fmt: skip
    else:
        console.say(f"已写入 {target}：{requests} 个请求（仿真）", f"wrote {target}: {requests} requests (simulated)")
    return ExitCode.DONE


def _workers(text: str) -> tuple[str, int]:
    name, _, count = text.partition("=")
    if not count.strip().isdigit():
        raise UsageError(f"cannot read {text!r}", allowed="NODE=N with a whole number, as in tts=8")
    return name.strip(), int(count)


COMMAND = Command(
    "Run a pipeline of services on the simulated backend and record latency, queues and utilisation of its nodes.",
    Options,
    run,
    (
        'profiler collect-pipeline --pipeline multilingual_gen --data_types "node_latency, queue_depth"',
        "profiler collect-pipeline --pipeline poetry_poster --duration 10m --output pipeline_diagnosis.prof",
        "profiler collect-pipeline --pipeline mine.json --trace arrivals.csv --output mine.prof",
    ),
)
