"""``kb simulate energy``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from kb.errors import ExitCode
from kb.profile.simulated.energy.footprint import GRID_G_PER_KWH, SITE_OVERHEAD
from kb.workflow.collect import Wanted
from kb.workflow.load_profile import footprint_of
from kb.workflow.location import shipped_catalogue
from kb.workflow.simulate import DEFAULT_SOC, chip, options_from
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """A model, a chip, and the grid that feeds it."""

    model: Annotated[str, Argument("Built-in model or model file (.onnx, .om, .json).", "MODEL")]
    soc: Annotated[str, Flag("--soc", "Chip: a name, CORESxMHZ, or a JSON file of your own.", "SOC")] = DEFAULT_SOC
    grid: Annotated[float, Flag("--grid", "Carbon intensity of the grid, g CO2 a kWh.", "N", least=0, most=10000)] = GRID_G_PER_KWH
    overhead: Annotated[float, Flag("--overhead", "Energy of the site over that of the machines.", "N", least=1, most=10)] = SITE_OVERHEAD
    input_shape: Annotated[tuple[str, ...], Flag("--input_shape", "Sizes of inputs of a model file.", "SHAPES")] = ()
    dim: Annotated[tuple[str, ...], Flag("--dim", "Size of a symbolic dimension.", "NAME=SIZE")] = ()
    set: Annotated[tuple[str, ...], Flag("--set", "Any option of the simulator; may be given often.", "NAME=VALUE")] = ()


_ZH = {"request": "请求", "token": "词元", "sample": "样本"}


def run(options: Options, console: Console) -> int:
    """Print energy and carbon now, and what would save some with its price in latency."""
    wanted = Wanted(model=options.model, input_shape=options.input_shape, dims=options.dim, options=options_from(options.set, {}))
    found = footprint_of(wanted, chip(shipped_catalogue(), options.soc), grid_g_per_kwh=options.grid, site_overhead=options.overhead)
    if console.as_json:
        payload: dict[str, Any] = msgspec.to_builtins(found)
        console.json({"model": options.model, "soc": options.soc, "origin": "simulated", **payload})
        return ExitCode.DONE
    now = found.now
    console.say(
        f"{options.model}（{options.soc}，仿真；功耗曲线是假设）：每步 {now.step_ms:.2f} ms，{now.power_w:.0f} W，"
        f"{now.energy_step_j:.3g} J；"
        f"每 1000 个{_ZH[now.unit]} {now.energy_1000_kj:.3g} kJ，{now.carbon_1000_g:.3g} g CO2（电网 {found.grid_g_per_kwh:g} g/kWh）",
        f"{options.model} on {options.soc} (simulated; power curves are assumptions): {now.step_ms:.2f} ms a step at {now.power_w:.0f} W, "
        f"{now.energy_step_j:.3g} J; 1,000 {now.unit}s {now.energy_1000_kj:.3g} kJ, {now.carbon_1000_g:.3g} g CO2 "
        f"(grid {found.grid_g_per_kwh:g} g/kWh)",
    )
    for item in found.suggestions:
        console.line(
            f"  {item.what.pick(console.lang)}  [--set {item.option}={item.value}]: "
            + (
                f"能耗与碳 {item.energy_change:+.1%}，单步延迟 {item.latency_change:+.1%}"
                if console.lang == "zh"
                else f"energy and carbon {item.energy_change:+.1%}, step latency {item.latency_change:+.1%}"
            )
        )
    if not found.suggestions:
        console.say("没有能再省 1 % 以上的设置", "no setting saves another 1 %")
    return ExitCode.DONE


COMMAND = Command(
    "Energy and carbon of a simulated model, and settings that emit less with what they cost in latency.",
    Options,
    run,
    ("kb simulate energy sd3 --grid 580", "kb simulate energy det.onnx --input_shape 1,3,640,640 --soc Ascend310P"),
)
