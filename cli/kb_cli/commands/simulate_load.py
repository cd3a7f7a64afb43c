"""``kb simulate load``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from kb.domain.pipeline import ArrivalSpec
from kb.errors import ExitCode, UsageError
from kb.profile.simulated.load.arrivals import read_trace
from kb.profile.simulated.load.serving import ServerSpec
from kb.workflow.collect import seconds_from
from kb.workflow.load_profile import Served, served
from kb.workflow.location import shipped_catalogue
from kb.workflow.simulate import DEFAULT_SOC, chip, options_from
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console

_SHOWN = ("throughput", "ttft_p50_ms", "ttft_p99_ms", "tpot_p50_ms", "latency_p50_ms", "latency_p99_ms", "batch_mean", "energy_1000_kj")

_HEADS = {"throughput": "requests/s"}


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """A language model, how requests come, and how the server batches."""

    model: Annotated[str, Argument("A decoder family, for example llama3-8b; a wrong name lists all.", "MODEL")]
    rate: Annotated[tuple[str, ...], Flag("--rate", "Requests a second; given often, every rate is tried.", "N")] = ("1",)
    arrivals: Annotated[str, Flag("--arrivals", "How requests come.", choices=("poisson", "constant", "bursts"))] = "poisson"
    burst_factor: Annotated[float, Flag("--burst-factor", "Rate inside a burst over the rate between.", "N")] = 4.0
    trace: Annotated[Path | None, Flag("--trace", "Arrival times: CSV with time_ms, or a line of ms a request.", "FILE.csv")] = None
    duration: Annotated[str, Flag("--duration", "Simulated time.", "TIME")] = "5m"
    max_batch: Annotated[int, Flag("--max-batch", "Requests that run together.", "N")] = 16
    prompt: Annotated[int, Flag("--prompt", "Mean tokens of a prompt.", "N")] = 512
    output_tokens: Annotated[int, Flag("--output-tokens", "Mean tokens of an answer.", "N")] = 128
    soc: Annotated[str, Flag("--soc", "Chip: a name, CORESxMHZ, or a JSON file of your own.", "SOC")] = DEFAULT_SOC
    seed: Annotated[int, Flag("--seed", "Seed of arrivals and lengths.", "N", least=0)] = 1
    set: Annotated[tuple[str, ...], Flag("--set", "Any option of the simulator; may be given often.", "NAME=VALUE")] = ()


def run(options: Options, console: Console) -> int:
    """Serve at every rate and print what users would feel."""
    rates = tuple(map(_rate, options.rate))
    spec = (
        read_trace(options.trace)
        if options.trace is not None
        else ArrivalSpec(kind=_kind(options.arrivals), rate=rates[0], factor=options.burst_factor)
    )
    found = served(
        options.model,
        chip(shipped_catalogue(), options.soc),
        spec,
        ServerSpec(batch=options.max_batch, prompt=options.prompt, output=options.output_tokens),
        seconds=seconds_from(options.duration),
        seed=options.seed,
        options=options_from(options.set, {}),
        sweep=() if options.trace is not None else rates,
    )
    if console.as_json:
        console.json({"model": options.model, "soc": options.soc, "origin": "simulated", "loads": [_payload(item) for item in found]})
        return ExitCode.DONE
    console.say(f"{options.model}（{options.soc}，仿真）", f"{options.model} on {options.soc} (simulated)")
    console.line("  ".join(["rate/s".rjust(8), *(_HEADS.get(name, name).rjust(14) for name in _SHOWN)]))
    for item in found:
        cells = [f"{getattr(item.figures, name):14.2f}" for name in _SHOWN]
        unstable = "" if item.figures.stable else "  " + ("排队只会变长" if console.lang == "zh" else "the queue only grows")
        console.line("  ".join([f"{item.rate:8.2f}", *cells]) + unstable)
    return ExitCode.DONE


def _kind(text: str) -> Any:
    return text


def _rate(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f"no rate {text!r}", allowed="requests a second, as in 2.5") from error


def _payload(item: Served) -> dict[str, Any]:
    figures: dict[str, Any] = msgspec.to_builtins(item.figures)
    return {"rate_per_s": item.rate, **figures}


COMMAND = Command(
    "Serve a language model under load: continuous batching of simulated prefill and decode steps, P50 and P99 of what users feel.",
    Options,
    run,
    (
        "kb simulate load llama3-8b --rate 1 --rate 2 --rate 4 --set fused_attention=true --set graph_launch=true",
        "kb simulate load qwen2.5-7b --trace arrivals.csv --max-batch 32",
    ),
)
