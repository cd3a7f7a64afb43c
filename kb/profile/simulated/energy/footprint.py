"""Energy of a simulated step, what a thousand requests emit, and settings that emit less with what they cost in latency.

Power is the thermal model's (assumed figures, said so); carbon is energy x the grid's intensity x the overhead of the site.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from kb.domain.soc import Soc
from kb.domain.text import Text
from kb.errors import UsageError
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import Setup, simulate
from kb.profile.simulated.thermal import Activity, power, thermals_of
from kb.session.session import Session

GRID_G_PER_KWH: Final = 500.0
"""g CO2 a kWh unless the user says: the order of today's world average (assumption; set your own)."""
SITE_OVERHEAD: Final = 1.3
"""Energy of the whole site over that of its machines (assumption)."""
REQUESTS: Final = 1000
_UNITS: Final[Mapping[str, Literal["request", "token", "sample"]]] = MappingProxyType({"decode": "token", "training": "sample"})
_J_PER_KWH: Final = 3.6e6
CLOCKS: Final = (0.9, 0.8, 0.7, 0.6)
WORTH: Final = 0.01


class Footprint(msgspec.Struct, frozen=True, kw_only=True):
    """``requests``: samples of a step, each a whole request, but one token of it in decode (``unit``). Energy of the chip alone;
    carbon of the site."""

    step_ms: float
    requests: int
    unit: Literal["request", "token", "sample"]
    power_w: float
    energy_step_j: float
    energy_1000_kj: float
    carbon_1000_g: float


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """A setting, what it emits, and what it costs: changes relative to now (negative = less)."""

    what: Text
    option: str
    value: str
    footprint: Footprint
    energy_change: float
    latency_change: float


class Green(msgspec.Struct, frozen=True, kw_only=True):
    """The footprint now, and suggestions that save energy, the most saving first."""

    now: Footprint
    suggestions: tuple[Suggestion, ...]
    grid_g_per_kwh: float
    site_overhead: float


def green(setup: Setup, *, grid_g_per_kwh: float = GRID_G_PER_KWH, site_overhead: float = SITE_OVERHEAD) -> Green:
    """Simulate the setup and every low-carbon setting. Raises UsageError for a negative intensity or an overhead below 1."""
    if not grid_g_per_kwh >= 0 or not site_overhead >= 1:
        raise UsageError(f"grid {grid_g_per_kwh}, overhead {site_overhead}", allowed="intensity from 0 up, overhead from 1 up")
    quiet = replace(setup, options=replace(setup.options, steps=2, noise=0.0, sample_s=0.0))
    now = footprint(quiet, grid_g_per_kwh, site_overhead)
    made = []
    for what, option, options in _settings(quiet):
        found = footprint(replace(quiet, options=options), grid_g_per_kwh, site_overhead)
        change = found.energy_1000_kj / now.energy_1000_kj - 1.0
        if change < -WORTH:
            made.append(
                Suggestion(
                    what=what,
                    option=option,
                    value=str(getattr(options, option)),
                    footprint=found,
                    energy_change=change,
                    latency_change=found.step_ms / now.step_ms - 1.0,
                )
            )
    ordered = tuple(sorted(made, key=lambda suggestion: suggestion.energy_change))
    return Green(now=now, suggestions=ordered, grid_g_per_kwh=grid_g_per_kwh, site_overhead=site_overhead)


def footprint(setup: Setup, grid_g_per_kwh: float, site_overhead: float) -> Footprint:
    """The footprint of a setup's second step."""
    session, truth = simulate(setup)
    seconds, watts = truth.steps[-1].step_ns / 1e9, _watts(session)
    energy = watts * seconds
    thousand = energy / setup.options.batch * REQUESTS
    return Footprint(
        step_ms=seconds * 1e3,
        requests=setup.options.batch,
        unit=_UNITS.get(session.meta.model.phase or "", "request"),
        power_w=watts,
        energy_step_j=energy,
        energy_1000_kj=thousand / 1e3,
        carbon_1000_g=thousand / _J_PER_KWH * grid_g_per_kwh * site_overhead,
    )


def _watts(session: Session) -> float:
    counters = session.tables["counters"]
    return float(counters["value"][counters["name"] == session.code("Power [W]")].mean())


def step_cost(setup: Setup) -> tuple[float, float]:
    """Seconds of a setup's last step, and W meanwhile."""
    session, truth = simulate(setup)
    return truth.steps[-1].step_ns / 1e9, _watts(session)


def idle_power(soc: Soc) -> float:
    """W of a chip without work."""
    constants = load_constants()
    return power(Activity(0.0, 0.0, 0.0), 1.0, thermals_of(soc.family, constants), constants)


def _settings(setup: Setup) -> Iterator[tuple[Text, str, Options]]:
    """Settings that may save energy: lower clocks, larger batches, fusion, graph launch, one precision down."""
    options = setup.options
    for clock in CLOCKS:
        if clock < options.clock_cap:
            yield (
                Text(f"低频运行：时钟上限 {clock:.0%}", f"run slower: clock capped at {clock:.0%}"),
                "clock_cap",
                replace(options, clock_cap=clock),
            )
    if not setup.graph:
        for factor in (2, 4):
            batch = options.batch * factor
            yield Text(f"批量 {batch}", f"batch of {batch}"), "batch", replace(options, batch=batch)
    if not options.graph_launch:
        yield Text("整图下发", "launch the whole graph at once"), "graph_launch", replace(options, graph_launch=True)
    if not options.fused_attention:
        yield Text("融合注意力", "fused attention"), "fused_attention", replace(options, fused_attention=True)
    if not options.fused_elementwise:
        yield Text("融合逐元素算子", "fused elementwise kernels"), "fused_elementwise", replace(options, fused_elementwise=True)
    if options.precision != "int8":
        yield Text("INT8 量化（需校验精度）", "INT8 (check the accuracy)"), "precision", replace(options, precision="int8")
