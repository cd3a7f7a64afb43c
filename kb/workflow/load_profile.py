"""Job: a language model served under load, and the energy of a simulated model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from kb.domain.pipeline import ArrivalSpec
from kb.domain.soc import Soc
from kb.errors import UsageError
from kb.profile.simulated.energy.footprint import Green, green, idle_power, step_cost
from kb.profile.simulated.graph_file import packed
from kb.profile.simulated.load.arrivals import arrival_times
from kb.profile.simulated.load.serving import Cost, ServerSpec, ServingFigures, StepTimes, serve, step_times
from kb.profile.simulated.models.names import MODELS
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import Setup
from kb.workflow.collect import Wanted, file_graph, is_model_file, refuse_shapes

MOST_SECONDS = 86_400.0


@dataclass(frozen=True)
class Served:
    """Figures at one rate in requests a second."""

    rate: float
    figures: ServingFigures


def served(
    model: str,
    soc: Soc,
    arrivals: ArrivalSpec,
    server: ServerSpec,
    *,
    seconds: float,
    seed: int,
    options: Options,
    sweep: tuple[float, ...] = (),
) -> tuple[Served, ...]:
    """Serve ``model`` (as llama3-8b: its prefill and decode are simulated) at the rate of ``arrivals`` or at each of ``sweep``.

    Raises UsageError for a model that has no prefill and decode.
    """
    names = f"{model}-prefill", f"{model}-decode"
    if any(name not in MODELS for name in names):
        known = sorted(name.removesuffix("-decode") for name in MODELS if name.endswith("-decode"))
        raise UsageError(f"{model} cannot be served token by token", allowed=", ".join(known))
    if not 0 < seconds <= MOST_SECONDS or seed < 0:
        raise UsageError(f"{seconds:g} s with seed {seed} cannot be simulated", allowed=f"up to {MOST_SECONDS:g} s, seeds from 0 up")
    times = _times(names, soc, server, replace(options, steps=2, noise=0.0))
    found = []
    for rate in sweep or (arrivals.rate,):
        spec = arrivals if arrivals.kind == "trace" else replace(arrivals, rate=rate)
        arrived = arrival_times(spec, seconds, np.random.default_rng([seed, 0]))
        shown = len(arrived) / seconds if arrivals.kind == "trace" else rate
        found.append(Served(shown, serve(arrived, seconds, server, times, seed)))
    return tuple(found)


def _times(names: tuple[str, str], soc: Soc, server: ServerSpec, options: Options) -> StepTimes:
    """Time and power of prefill and decode steps as the simulator gives them."""

    def prefill(tokens: int) -> Cost:
        return step_cost(Setup(model=names[0], soc=soc, options=replace(options, sequence=tokens)))

    def decode(batch: int) -> Cost:
        context = server.prompt + server.output // 2
        return step_cost(Setup(model=names[1], soc=soc, options=replace(options, batch=batch, context=context)))

    return step_times(prefill, decode, server, idle_w=idle_power(soc))


def footprint_of(wanted: Wanted, soc: Soc, *, grid_g_per_kwh: float, site_overhead: float) -> Green:
    """Energy, carbon and low-carbon settings of a built-in model or a model file. Raises UsageError for shapes of a built-in one."""
    setup = Setup(model=wanted.model, soc=soc, options=wanted.options, seed=wanted.seed)
    if is_model_file(wanted.model):
        graph = file_graph(wanted)
        options = replace(wanted.options, batch=graph.batch)
        setup = Setup(model=Path(wanted.model).stem, soc=soc, options=options, seed=wanted.seed, graph=packed(graph))
    else:
        refuse_shapes(wanted)
    return green(setup, grid_g_per_kwh=grid_g_per_kwh, site_overhead=site_overhead)
