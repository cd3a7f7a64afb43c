"""``kb simulate list``"""

from __future__ import annotations

from dataclasses import dataclass

from kb.errors import ExitCode
from kb.workflow.location import shipped_catalogue
from kb.workflow.pipeline import pipeline_names
from kb.workflow.simulate import DEFAULT_SOC, model_families
from kb_cli.command import Command, Common
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Nothing to choose."""


def run(_options: Options, console: Console) -> int:
    """Print models with their family and parallel dimensions, pipelines, and chips."""
    models, pipelines = model_families(), pipeline_names()
    chips = sorted(shipped_catalogue().socs)
    if console.as_json:
        console.json({"models": models, "pipelines": list(pipelines), "socs": chips, "default_soc": DEFAULT_SOC})
        return ExitCode.DONE
    console.say("模型（kb simulate model NAME）：", "models (kb simulate model NAME):")
    width = max(len(str(entry["name"])) for entry in models)
    for entry in models:
        splits = ", ".join(entry["dimensions"])
        console.line(f"  {entry['name']:<{width}}  {entry['family']}{f'  [{splits}]' if splits else ''}")
    console.say("流水线（profiler collect-pipeline --pipeline NAME）：", "pipelines (profiler collect-pipeline --pipeline NAME):")
    for name in pipelines:
        console.line(f"  {name}")
    console.say(f"芯片（--soc）：{', '.join(chips)}", f"chips (--soc): {', '.join(chips)}")
    return ExitCode.DONE


COMMAND = Command(
    "List what can be simulated: built-in models, pipelines and chips. Model files (.onnx, .om, .json) work everywhere a model does.",
    Options,
    run,
    ("kb simulate list", "kb simulate list --json"),
)
