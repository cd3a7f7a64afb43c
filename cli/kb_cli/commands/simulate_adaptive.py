"""``kb simulate adaptive``"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Final

from kb.domain.pipeline import ArrivalSpec
from kb.domain.quantity import parse_quantity
from kb.errors import ExitCode, UsageError
from kb.report.document import Block, Bullets, Document, Heading, Note, TableBlock
from kb.report.labels import labels
from kb.report.numbers import duration, percent, rate
from kb.report.payload import plain
from kb.report.plain import PlainRenderer
from kb.tune.adaptive import REASONS, Served, Setting, Space
from kb.workflow.adaptation import Comparison, compare_serving
from kb.workflow.location import shipped_catalogue
from kb.workflow.simulate import DEFAULT_SOC, options_from
from kb.workflow.subject import subject
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console

_MOVES = 12


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """A model, a stream of requests, and what the engine may change."""

    model: Annotated[str, Argument("A model file or a built-in name; a request is one sample of its step.", "MODEL")]
    rate: Annotated[str, Flag("--rate", "Mean rate of requests, as 150/s.", "RATE")] = "100/s"
    arrivals: Annotated[str, Flag("--arrivals", "How requests come.", choices=("poisson", "constant", "bursts"))] = "poisson"
    burst_factor: Annotated[float, Flag("--burst-factor", "Rate inside a burst over that outside.", "X")] = 5.0
    seconds: Annotated[float, Flag("--seconds", "Length of the stream.", "S")] = 20.0
    max_latency: Annotated[str, Flag("--max-latency", "Latency to keep at the 99th percentile.", "TIME")] = "100ms"
    devices: Annotated[int, Flag("--devices", "Devices there are.", "N")] = 4
    batch_min: Annotated[int, Flag("--batch-min", "Smallest batch.", "N")] = 8
    batch_max: Annotated[int, Flag("--batch-max", "Largest batch.", "N")] = 64
    batch_step: Annotated[int, Flag("--batch-step", "Notch of the batch.", "N")] = 4
    interval: Annotated[int, Flag("--interval", "Batches between two looks at the load.", "N")] = 20
    soc: Annotated[str, Flag("--soc", "Chip: a name, CORESxMHZ, or a JSON file of your own.", "SOC")] = DEFAULT_SOC
    seed: Annotated[int, Flag("--seed", "Seed of the stream.", "N", least=0)] = 1
    set: Annotated[tuple[str, ...], Flag("--set", "Any other option of the simulator; may be given often.", "NAME=VALUE")] = ()


def run(options: Options, console: Console) -> int:
    """Serve the stream with the smallest setting, and with the engine."""
    limit = parse_quantity(options.max_latency).to("ns")
    _check(options, limit)
    found = subject(options.model, shipped_catalogue(), soc=options.soc, seed=options.seed, options=options_from(options.set, {}))
    if found.remark.en:
        console.remark(found.remark.zh, found.remark.en)
    space = Space(
        batches=tuple(range(options.batch_min, options.batch_max + 1, options.batch_step)),
        stages=(1, 2, 3, 4),
        tensors=(1, 2, 4),
        devices=options.devices,
    )
    arrivals = ArrivalSpec(
        kind="constant" if options.arrivals == "constant" else "bursts" if options.arrivals == "bursts" else "poisson",
        rate=parse_quantity(options.rate).to("/s"),
        factor=options.burst_factor,
        period_s=5.0,
        burst_s=1.0,
    )
    done = compare_serving(found.setup, arrivals, seconds=options.seconds, limit_ns=limit, space=space, interval=options.interval)
    if console.as_json:
        console.json(_payload(done, limit))
    else:
        console.text(PlainRenderer().render(_document(done, options, limit, console)))
    return ExitCode.DONE


def _check(options: Options, limit: float) -> None:
    counts = {
        "--devices": options.devices,
        "--batch-min": options.batch_min,
        "--batch-step": options.batch_step,
        "--interval": options.interval,
    }
    wrong = [f"{flag} {value}" for flag, value in counts.items() if value < 1]
    if options.batch_max < options.batch_min:
        wrong.append(f"--batch-max {options.batch_max} below --batch-min {options.batch_min}")
    if not 0 < options.seconds <= 3600 or not 0 < limit < math.inf:
        wrong.append("--seconds or --max-latency out of range")
    if wrong:
        raise UsageError("; ".join(wrong), allowed="counts from 1 up, --seconds up to 3600, a latency above zero")


def _document(done: Comparison, options: Options, limit: float, console: Console) -> Document:
    words = labels(console.lang)
    header = (
        "", words.either("吞吐", "throughput"), "P50", "P99", words.either(f"超过 {duration(limit)}", f"beyond {duration(limit)}"),
        words.either("利用率", "utilisation"), words.either("最长队列", "longest queue"), words.either("设备·秒", "device seconds"),
        words.either("最后的设置", "last setting"),
    )  # fmt: skip
    rows = ((words.either("固定", "fixed"), *_cells(done.fixed)), (words.either("自适应", "adaptive"), *_cells(done.adaptive)))
    blocks: list[Block] = [
        Heading(2, words.either(f"自适应并行：{options.model}", f"Adaptive parallelism: {options.model}")),
        Note("simulated", words("simulated")),
        TableBlock(header, rows, right=(1, 2, 3, 4, 5, 6, 7)),
    ]
    moves = [
        f"{move.at_ns / 1e9:.2f} s: {_said(move.before)} → {_said(move.after)} ({REASONS[move.reason].pick(console.lang)}; "
        f"P99 {duration(move.window.p99_ns)}, {words.either('队列', 'queue')} {move.window.queue:.0f})"
        for move in done.adaptive.moves[:_MOVES]
    ]
    if len(done.adaptive.moves) > _MOVES:
        moves.append(words.either(f"另有 {len(done.adaptive.moves) - _MOVES} 次调整", f"{len(done.adaptive.moves) - _MOVES} more moves"))
    blocks.append(Bullets(tuple(moves or (words.either("没有需要调整的", "nothing had to be changed"),))))
    if done.cuts:
        blocks.append(Heading(3, words.either("剪去的设置", "Settings cut")))
        blocks.append(Bullets(tuple(f"{cut.knob} = {cut.value}: {cut.reason.pick(console.lang)}" for cut in done.cuts)))
    return Document(tuple(blocks), lang=console.lang)


def _cells(served: Served) -> tuple[str, ...]:
    return (
        f"{rate(served.throughput)} /s",
        duration(served.p50_ns),
        duration(served.p99_ns),
        percent(served.late),
        percent(served.utilization),
        str(served.most_queued),
        f"{served.device_seconds:.1f}",
        _said(served.last),
    )


def _said(setting: Setting) -> str:
    return f"batch {setting.batch}, stages {setting.stages}, TP {setting.tensor}"


_STRATEGIES: Final = {"batch": "increase_batch", "stages": "change_pipeline_parallel", "tensor": "change_tensor_parallel"}
"""The catalogue strategy behind each thing the engine moves."""


def _outcome(done: Comparison) -> dict[str, Any]:
    """What the engine's moves did, as an outcome of the strategies they are."""
    moved = [
        strategy
        for name, strategy in _STRATEGIES.items()
        if any(getattr(move.before, name) != getattr(move.after, name) for move in done.adaptive.moves)
    ]
    before, after = done.fixed.p99_ns, done.adaptive.p99_ns
    result = "no_gain" if not moved else "improved" if after < before else "worse"
    return {
        "strategies": moved,
        "metric": "latency_p99",
        "before_ns": before,
        "after_ns": after,
        "result": result,
        "provenance": "simulated",
    }


def _payload(done: Comparison, limit: float) -> dict[str, Any]:
    return {
        "outcome": _outcome(done),
        "origin": "simulated",
        "limit_ns": limit,
        "change_ns": done.change_ns,
        "begin": plain(done.begin),
        "fixed": plain(done.fixed),
        "adaptive": plain(done.adaptive),
        "cuts": [plain(cut) for cut in done.cuts],
    }


COMMAND = Command(
    "Serve a simulated stream of requests with a fixed setting and with the engine that adapts batch, stages and TP.",
    Options,
    run,
    (
        "kb simulate adaptive bert-large --soc 310p3 --rate 600/s --max-latency 200ms",
        "kb simulate adaptive llama3-8b-decode --rate 200/s --arrivals bursts --devices 8 --json",
    ),
)
